"""BART, mBART, Pegasus and Marian: an encoder and a decoder of tokens with positions of their own.

Shapes and defaults: bart, mbart, pegasus and marian in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
BART and mBART reserve two positions; Pegasus and Marian compute theirs (and transformers stores them). Embeddings are
tied unless told otherwise. A row of biases over the vocabulary is stored as a buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.architecture.blocks import Weights, attention, belonging, embedding, head, norm, plain_mlp, positions
from gpufit.architecture.config import MOST_LAYERS, Config
from gpufit.architecture.record import (
    Architecture,
    AttentionCache,
    Component,
    CrossAttentionCache,
    Kind,
    Split,
    Weight,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    class_name: str
    reserved: int
    embedding_norm: bool
    final_norm: bool
    vocabulary: int = 50265


_FAMILIES = {
    "bart": _Family(class_name="BartForConditionalGeneration", reserved=2, embedding_norm=True, final_norm=False),
    "mbart": _Family(class_name="MBartForConditionalGeneration", reserved=2, embedding_norm=True, final_norm=True),
    "pegasus": _Family(class_name="PegasusForConditionalGeneration", reserved=0, embedding_norm=False, final_norm=True),
    "marian": _Family(class_name="MarianMTModel", reserved=0, embedding_norm=False, final_norm=False, vocabulary=58101),
}


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two stacks."""

    name: str
    layers: tuple[int, ...]
    heads: int
    inner: int


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    model_type = config.text("model_type")
    family = _FAMILIES[model_type]
    hidden = config.width("d_model", "hidden_size", usual=1024)
    vocabulary = config.width("vocab_size", usual=family.vocabulary)
    limit = config.count("max_position_embeddings", default=1024)
    tied = config.flag("tie_word_embeddings", default=True)
    encoder, decoder = _side(config, "encoder"), _side(config, "decoder")
    head_dim = config.share(hidden, decoder.heads, "hidden width")
    stacks = tuple(
        one
        for side, component in ((encoder, Component.ENCODER), (decoder, Component.DECODER))
        for one in belonging(_stack(config, family, side, hidden, limit), component)
    )
    weights = (
        embedding("model.shared", vocabulary, hidden),
        *stacks,
        *(() if tied else head("lm_head", vocabulary, hidden)),
        Weight("final_logits_bias", (1, vocabulary), Kind.BIAS, Split.VOCABULARY, parameter=False),
    )
    count = len(decoder.layers)
    return Architecture(
        model_type=model_type,
        class_name=family.class_name,
        weights=weights,
        caches=(
            AttentionCache(count, decoder.heads, head_dim, head_dim),
            CrossAttentionCache(count, decoder.heads, head_dim),
        ),
        layers=count,
        hidden=hidden,
        intermediate=max(encoder.inner, decoder.inner),
        gated=False,
        vocabulary=vocabulary,
        heads=decoder.heads,
        head_dim=head_dim,
        tied=tied,
        generates=True,
        decodes_apart=True,
        position_limit=limit,
    )


def _side(config: Config, name: str) -> _Side:
    layers = config.width(f"{name}_layers", usual=12, most=MOST_LAYERS)
    return _Side(
        name,
        tuple(range(layers)),
        config.width(f"{name}_attention_heads", usual=16),
        config.width(f"{name}_ffn_dim", usual=4096),
    )


def _stack(config: Config, family: _Family, side: _Side, hidden: int, limit: int) -> Weights:
    at = f"model.{side.name}"
    here = f"{at}.layers.{{layer}}"
    names = ("self_attn", "encoder_attn") if side.name == "decoder" else ("self_attn",)
    head_dim = config.share(hidden, side.heads, "hidden width")
    found: Weights = (positions(f"{at}.embed_positions", limit + family.reserved, hidden),)
    for name in names:
        found = (
            *found,
            *attention(
                f"{here}.{name}",
                side.layers,
                hidden=hidden,
                heads=side.heads,
                kv_heads=side.heads,
                head_dim=head_dim,
                bias=True,
                out_bias=True,
                out_name="out_proj",
            ),
            *norm(f"{here}.{name}_layer_norm", hidden, side.layers, bias=True),
        )
    return (
        *found,
        *plain_mlp(f"{here}.", side.layers, hidden=hidden, intermediate=side.inner, names=("fc1", "fc2")),
        *norm(f"{here}.final_layer_norm", hidden, side.layers, bias=True),
        *(norm(f"{at}.layernorm_embedding", hidden, bias=True) if family.embedding_norm else ()),
        *(norm(f"{at}.layer_norm", hidden, bias=True) if family.final_norm else ()),
    )
