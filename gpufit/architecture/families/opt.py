"""OPT: learned positions, two of them reserved, and an MLP without a gate.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/opt
Only OPT 350M embeds at another width than it computes, and normalises after its blocks.
"""

from __future__ import annotations

from dataclasses import replace

from gpufit.architecture.blocks import Weights, attention, linear, norm, plain_mlp, positions
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, decoder, widths
from gpufit.architecture.record import Architecture, Kind, Split

_USUAL = Usual(hidden=768, layers=12, heads=12, intermediate=3072, vocabulary=50272)
_RESERVED = 2
_AT = "model.decoder.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of an OPT."""
    w = widths(
        config.with_values(intermediate_size=config.width("ffn_dim", usual=3072), num_key_value_heads=None), _USUAL
    )
    bias = config.flag("enable_bias", default=True)
    normed = config.flag("layer_norm_elementwise_affine", default=True)
    before = config.flag("do_layer_norm_before", default=True) and not config.flag("_remove_final_layer_norm")
    embedded = config.count("word_embed_proj_dim", default=w.hidden)
    layers: Weights = (
        *attention(
            f"{_AT}.self_attn",
            w.stack,
            hidden=w.hidden,
            heads=w.heads,
            kv_heads=w.heads,
            head_dim=w.head_dim,
            bias=bias,
            out_bias=bias,
            out_name="out_proj",
        ),
        *plain_mlp(f"{_AT}.", w.stack, hidden=w.hidden, intermediate=w.intermediate, names=("fc1", "fc2"), bias=bias),
    )
    if normed:
        for name in ("self_attn_layer_norm", "final_layer_norm"):
            layers = (*layers, *norm(f"{_AT}.{name}", w.hidden, w.stack, bias=True))
    whole = Whole(
        model_type="opt",
        class_name="OPTForCausalLM",
        tied=config.flag("tie_word_embeddings", default=True),
        embed="model.decoder.embed_tokens",
        final="model.decoder.final_layer_norm" if before and normed else "",
        final_bias=True,
        gated=False,
        rotary_dim=0,
    )
    rows = (w.positions or 0) + _RESERVED
    extra: Weights = (positions("model.decoder.embed_positions", rows, w.hidden),)
    if embedded != w.hidden:
        extra = (
            *extra,
            *linear("model.decoder.project_in", w.hidden, embedded, Split.REPLICATED),
            *linear("model.decoder.project_out", embedded, w.hidden, Split.REPLICATED),
        )
    built = decoder(config, w, whole, layers, (w.full_cache,), extra=extra)
    if embedded == w.hidden:
        return built
    narrow = tuple(
        replace(one, shape=(w.vocabulary, embedded))
        if one.kind in (Kind.EMBEDDING, Kind.HEAD) and one.shape[0] == w.vocabulary
        else one
        for one in built.weights
    )
    return replace(built, weights=narrow)
