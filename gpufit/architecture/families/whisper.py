"""Whisper: an encoder of sound and a decoder of text, which caches keys and values of 1,500 encoder positions.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/whisper
"""

from __future__ import annotations

from gpufit.architecture.blocks import Weights, belonging, embedding, head, norm, plain_mlp, positions, renamed
from gpufit.architecture.config import MOST_LAYERS, Config
from gpufit.architecture.families.towers import audio_attention, audio_encoder
from gpufit.architecture.record import Architecture, AttentionCache, Component, CrossAttentionCache


def build(config: Config) -> Architecture:
    """The shapes of a Whisper. Its decoder takes prompt and new tokens in one sequence; sound goes to the encoder."""
    hidden = config.width("d_model", "hidden_size", usual=384)
    heads = config.width("decoder_attention_heads", usual=6)
    inner = config.width("decoder_ffn_dim", usual=1536)
    count = config.width("decoder_layers", usual=4, most=MOST_LAYERS)
    vocabulary = config.width("vocab_size", usual=51865)
    limit = config.count("max_target_positions", default=448)
    tied = config.flag("tie_word_embeddings", default=True)
    head_dim = config.share(hidden, heads, "hidden width")
    heard = audio_encoder(
        config,
        mels=config.count("num_mel_bins", default=80),
        hidden=hidden,
        inner=config.width("encoder_ffn_dim", usual=1536),
        layers=tuple(range(config.width("encoder_layers", usual=4, most=MOST_LAYERS))),
    )
    weights = (
        *belonging(renamed(heard, ("", "model.encoder.")), Component.ENCODER),
        embedding("model.decoder.embed_tokens", vocabulary, hidden),
        positions("model.decoder.embed_positions", limit, hidden),
        *_decoder_layers(hidden, inner, tuple(range(count))),
        *norm("model.decoder.layer_norm", hidden, bias=True),
        *(() if tied else head("proj_out", vocabulary, hidden)),
    )
    return Architecture(
        model_type="whisper",
        class_name="WhisperForConditionalGeneration",
        weights=weights,
        caches=(
            AttentionCache(count, heads, head_dim, head_dim),
            CrossAttentionCache(count, heads, head_dim, config.count("max_source_positions", default=1500)),
        ),
        layers=count,
        hidden=hidden,
        intermediate=inner,
        gated=False,
        vocabulary=vocabulary,
        heads=heads,
        head_dim=head_dim,
        tied=tied,
        generates=True,
        position_limit=limit,
    )


def _decoder_layers(hidden: int, inner: int, layers: tuple[int, ...]) -> Weights:
    at = "model.decoder.layers.{layer}"
    return (
        *audio_attention(f"{at}.self_attn", hidden, layers),
        *norm(f"{at}.self_attn_layer_norm", hidden, layers, bias=True),
        *audio_attention(f"{at}.encoder_attn", hidden, layers),
        *norm(f"{at}.encoder_attn_layer_norm", hidden, layers, bias=True),
        *plain_mlp(f"{at}.", layers, hidden=hidden, intermediate=inner, names=("fc1", "fc2")),
        *norm(f"{at}.final_layer_norm", hidden, layers, bias=True),
    )
