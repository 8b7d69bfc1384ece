"""Granite 3 MoE, with or without a shared expert, and DBRX: experts stacked in a few tensors.

Shapes and defaults: granitemoe, granitemoeshared and dbrx in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
Granite stacks (experts, out, in); DBRX writes all experts' rows one under another.
"""

from __future__ import annotations

from gpufit.architecture.blocks import Weights, linear, norm, router, stacked
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Block, Usual, Whole, Widths, attention_layers, decoder, widths
from gpufit.architecture.record import Architecture, Experts, Split

_DBRX = Usual(hidden=2048, layers=24, heads=16, vocabulary=32000)


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    return _dbrx(config) if config.text("model_type") == "dbrx" else _granite(config)


def stacked_experts(config: Config, w: Widths, *, usual: int, shared: int) -> tuple[Experts | None, Weights]:
    """Granite's routed experts; none where their number is 0."""
    count = config.count("num_local_experts", default=usual, least=0)
    if not count:
        return None, ()
    at = "model.layers.{layer}.block_sparse_moe"
    weights = (
        *router(f"{at}.router.layer", count, w.hidden, w.stack),
        stacked(f"{at}.input_linear.weight", (count, 2 * w.intermediate, w.hidden), w.stack, Split.COLUMN),
        stacked(f"{at}.output_linear.weight", (count, w.hidden, w.intermediate), w.stack, Split.ROW),
    )
    return Experts(w.layers, count, config.count("num_experts_per_tok", default=2), w.intermediate, shared), weights


def shared_mlp(w: Widths, intermediate: int) -> Weights:
    """The expert that every token goes through; none where its width is 0."""
    if not intermediate:
        return ()
    at = "model.layers.{layer}.shared_mlp"
    return (
        *linear(f"{at}.input_linear", 2 * intermediate, w.hidden, Split.COLUMN, w.stack),
        *linear(f"{at}.output_linear", w.hidden, intermediate, Split.ROW, w.stack),
    )


def _granite(config: Config) -> Architecture:
    family = config.text("model_type")
    w = widths(config, Usual())
    bias = config.flag("attention_bias")
    shared = config.count("shared_intermediate_size", default=0, least=0) if family == "granitemoeshared" else 0
    mixture, routed = stacked_experts(config, w, usual=8, shared=shared)
    whole = Whole(
        model_type=family,
        class_name="GraniteMoeSharedForCausalLM" if family == "granitemoeshared" else "GraniteMoeForCausalLM",
        tied=config.flag("tie_word_embeddings"),
    )
    layers = (*attention_layers(w, Block(qkv_bias=bias, out_bias=bias), w.stack), *routed, *shared_mlp(w, shared))
    return decoder(config, w, whole, layers, (w.full_cache,), experts=mixture)


def _dbrx(config: Config) -> Architecture:
    seen, ffn = config.part("attn_config"), config.part("ffn_config")
    inner, count = ffn.count("ffn_hidden_size", default=3584), ffn.count("moe_num_experts", default=4)
    w = widths(
        config.with_values(
            num_hidden_layers=config.width("n_layers", usual=24),
            num_key_value_heads=seen.count("kv_n_heads", default=1),
            intermediate_size=inner,
            max_position_embeddings=config.count("max_seq_len", default=2048),
        ),
        _DBRX,
    )
    at = "transformer.blocks.{layer}"
    out = (w.heads + 2 * w.kv_heads) * w.head_dim
    shape = (count * inner, w.hidden)
    layers = (
        *norm(f"{at}.norm_attn_norm.norm_1", w.hidden, w.stack),
        *norm(f"{at}.norm_attn_norm.norm_2", w.hidden, w.stack),
        *linear(f"{at}.norm_attn_norm.attn.Wqkv", out, w.hidden, Split.COLUMN, w.stack),
        *linear(f"{at}.norm_attn_norm.attn.out_proj", w.hidden, w.heads * w.head_dim, Split.ROW, w.stack),
        *router(f"{at}.ffn.router.layer", count, w.hidden, w.stack),
        *(stacked(f"{at}.ffn.experts.mlp.{name}", shape, w.stack, Split.COLUMN) for name in ("w1", "v1", "w2")),
    )
    whole = Whole(
        model_type="dbrx",
        class_name="DbrxForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        embed="transformer.wte",
        final="transformer.norm_f",
    )
    per_token = ffn.count("moe_top_k", default=1)
    return decoder(config, w, whole, layers, (w.full_cache,), experts=Experts(w.layers, count, per_token, inner))
