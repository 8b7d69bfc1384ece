"""Qwen2-Audio and Voxtral: Whisper's encoder before a language model.

Shapes and defaults: qwen2_audio and voxtral in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
"""

from __future__ import annotations

from gpufit.architecture.blocks import belonging, linear
from gpufit.architecture.config import Config
from gpufit.architecture.families.towers import as_tower, audio_encoder, depth
from gpufit.architecture.joined import LLAVA_NAMES, joined, text_part
from gpufit.architecture.record import Architecture, Component, Split


def build(config: Config) -> Architecture:
    """The shapes of one of these models."""
    if config.text("model_type") == "voxtral":
        return _voxtral(config)
    text = text_part(config, "qwen2")
    audio = config.part("audio_config")
    hidden = audio.count("d_model", default=1280)
    heard = audio_encoder(
        audio,
        mels=audio.count("num_mel_bins", default=128),
        hidden=hidden,
        inner=audio.count("encoder_ffn_dim", default=5120),
        layers=depth(audio, "encoder_layers", usual=32),
    )
    projector = linear("multi_modal_projector.linear", text.hidden, hidden, Split.REPLICATED, bias=True)
    return joined(
        config,
        text,
        class_name="Qwen2AudioForConditionalGeneration",
        text_names=LLAVA_NAMES,
        towers=(*as_tower(heard, "audio_tower.", Component.AUDIO), *belonging(projector, Component.PROJECTOR)),
    )


def _voxtral(config: Config) -> Architecture:
    """Voxtral, which joins four frames to one before its projector."""
    nested = config.part("text_config")
    usual = {
        "vocab_size": 131072,
        "hidden_size": 3072,
        "intermediate_size": 8192,
        "num_hidden_layers": 30,
        "num_key_value_heads": 8,
        "max_position_embeddings": 131072,
        "head_dim": 128,
    }
    filled = config if nested.values else config.with_values(text_config=usual)
    text = text_part(filled, "llama")
    audio = config.part("audio_config")
    hidden, inner = audio.count("hidden_size", default=1280), audio.count("intermediate_size", default=5120)
    heard = audio_encoder(
        audio,
        mels=audio.count("num_mel_bins", default=128),
        hidden=hidden,
        inner=inner,
        layers=depth(audio, "num_hidden_layers", usual=32),
    )
    at = "multi_modal_projector"
    projector = (
        *linear(f"{at}.linear_1", text.hidden, inner, Split.REPLICATED),
        *linear(f"{at}.linear_2", text.hidden, text.hidden, Split.REPLICATED),
    )
    return joined(
        config,
        text,
        class_name="VoxtralForConditionalGeneration",
        text_names=LLAVA_NAMES,
        towers=(*as_tower(heard, "audio_tower.", Component.AUDIO), *belonging(projector, Component.PROJECTOR)),
    )
