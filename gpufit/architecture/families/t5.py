"""T5, mT5 and UMT5: an encoder and a decoder with relative positions, which set no limit.

Shapes and defaults: t5, mt5 and umt5 in https://github.com/huggingface/transformers/tree/main/src/transformers/models
T5 and mT5 have the table of relative positions in the first layer of a stack, UMT5 in every layer. The MLP is gated
where `feed_forward_proj` begins with `gated`. transformers ties the head unless told otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.architecture.blocks import Layers, Weights, belonging, embedding, head, linear, norm, positions
from gpufit.architecture.config import MOST_LAYERS, Config
from gpufit.architecture.record import Architecture, AttentionCache, Component, CrossAttentionCache, Split, Weight

_FAMILIES = {
    "t5": ("T5ForConditionalGeneration", (512, 6, 8, 2048, 32128), "relu"),
    "mt5": ("MT5ForConditionalGeneration", (512, 8, 6, 1024, 250112), "gated-gelu"),
    "umt5": ("UMT5ForConditionalGeneration", (512, 8, 6, 1024, 250112), "gated-gelu"),
}


@dataclass(frozen=True, slots=True)
class _Widths:
    hidden: int
    heads: int
    head_dim: int
    inner: int
    gated: bool
    buckets: int


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    family = config.text("model_type")
    class_name, (hidden, layers, heads, inner, rows), activation = _FAMILIES[family]
    it = _Widths(
        config.width("d_model", "hidden_size", usual=hidden),
        config.width("num_heads", "num_attention_heads", usual=heads),
        config.count("d_kv", "head_dim", default=64),
        config.width("d_ff", usual=inner),
        config.text("feed_forward_proj", default=activation).startswith("gated"),
        config.count("relative_attention_num_buckets", default=32),
    )
    vocabulary = config.width("vocab_size", usual=rows)
    encoding = config.width("num_layers", "num_hidden_layers", usual=layers, most=MOST_LAYERS)
    decoding = config.count("num_decoder_layers", default=encoding, most=MOST_LAYERS)
    tied = config.flag("tie_word_embeddings", default=True)
    everywhere = family == "umt5"
    weights = (
        embedding("shared", vocabulary, it.hidden),
        *belonging(_stack(it, "encoder", encoding, everywhere=everywhere), Component.ENCODER),
        *_stack(it, "decoder", decoding, everywhere=everywhere),
        *(() if tied else head("lm_head", vocabulary, it.hidden)),
    )
    return Architecture(
        model_type=family,
        class_name=class_name,
        weights=weights,
        caches=(
            AttentionCache(decoding, it.heads, it.head_dim, it.head_dim),
            CrossAttentionCache(decoding, it.heads, it.head_dim),
        ),
        layers=decoding,
        hidden=it.hidden,
        intermediate=it.inner,
        gated=it.gated,
        vocabulary=vocabulary,
        heads=it.heads,
        head_dim=it.head_dim,
        tied=tied,
        generates=True,
        decodes_apart=True,
    )


def _stack(it: _Widths, side: str, count: int, *, everywhere: bool) -> Weights:
    at, layers = f"{side}.block.{{layer}}.layer", tuple(range(count))
    cross = side == "decoder"
    last = 2 if cross else 1
    table = f"{at}.0.SelfAttention.relative_attention_bias"
    return (
        *_attention(it, f"{at}.0.SelfAttention", layers),
        *_in_layers(positions(table, it.buckets, it.heads), layers if everywhere else layers[:1]),
        *norm(f"{at}.0.layer_norm", it.hidden, layers),
        *(_attention(it, f"{at}.1.EncDecAttention", layers) if cross else ()),
        *(norm(f"{at}.1.layer_norm", it.hidden, layers) if cross else ()),
        *_mlp(it, f"{at}.{last}.DenseReluDense", layers),
        *norm(f"{at}.{last}.layer_norm", it.hidden, layers),
        *norm(f"{side}.final_layer_norm", it.hidden),
    )


def _in_layers(weight: Weight, layers: Layers) -> Weights:
    return (Weight(weight.name, weight.shape, weight.kind, Split.COLUMN, layers=layers),)


def _attention(it: _Widths, at: str, layers: Layers) -> Weights:
    wide = it.heads * it.head_dim
    return (
        *(one for name in ("q", "k", "v") for one in linear(f"{at}.{name}", wide, it.hidden, Split.COLUMN, layers)),
        *linear(f"{at}.o", it.hidden, wide, Split.ROW, layers),
    )


def _mlp(it: _Widths, at: str, layers: Layers) -> Weights:
    ins = ("wi_0", "wi_1") if it.gated else ("wi",)
    return (
        *(one for name in ins for one in linear(f"{at}.{name}", it.inner, it.hidden, Split.COLUMN, layers)),
        *linear(f"{at}.wo", it.hidden, it.inner, Split.ROW, layers),
    )
