"""Mixtral, MiniMax (Text 01, M1 and M2) and Phi 3.5 MoE: every layer has experts.

Shapes and defaults: mixtral, minimax, minimax_m2 and phimoe in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
The published checkpoints of MiniMax M2 hold no layer for multi-token prediction, whatever `use_mtp` says.
"""

from __future__ import annotations

from dataclasses import replace

from gpufit.architecture.blocks import Weights, correction, experts, linear, norm, router
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import (
    Block,
    Usual,
    Whole,
    Widths,
    attention_layers,
    decoder,
    every,
    kinds,
    of_kind,
    widths,
    windowed_caches,
)
from gpufit.architecture.record import Architecture, AttentionCache, Cache, Experts, Split, StateCache

_MIXTRAL = Usual(kv_heads=8, intermediate=14336, positions=131072)
_FAMILIES = {
    "mixtral": ("MixtralForCausalLM", _MIXTRAL, 8),
    "minimax": ("MiniMaxForCausalLM", _MIXTRAL, 8),
    "minimax_m2": (
        "MiniMaxM2ForCausalLM",
        Usual(
            hidden=3072,
            layers=62,
            heads=48,
            kv_heads=8,
            head_dim=128,
            intermediate=1536,
            vocabulary=200064,
            positions=196608,
        ),
        256,
    ),
    "phimoe": ("PhimoeForCausalLM", Usual(kv_heads=8, intermediate=6400, vocabulary=32064, positions=131072), 16),
}
_AT = "model.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    family = config.text("model_type")
    class_name, usual, usual_experts = _FAMILIES[family]
    w = widths(config, usual)
    count = config.count("num_local_experts", "num_experts", default=usual_experts)
    biased = family == "phimoe"
    attention_bias = biased and config.flag("attention_bias")
    block = Block(
        norm_bias=biased,
        qkv_bias=attention_bias,
        out_bias=attention_bias,
        qk_norm="all" if family == "minimax_m2" and config.flag("use_qk_norm", default=True) else "",
    )
    whole = Whole(
        model_type=family,
        class_name=class_name,
        tied=config.flag("tie_word_embeddings"),
        final_bias=biased,
        head_bias=biased and config.flag("lm_head_bias"),
        rotary_dim=config.maybe("rotary_dim") if family == "minimax_m2" else None,
    )
    layers, caches = _attentions(config, w, block, family)
    at = f"{_AT}.block_sparse_moe"
    mixture = (
        *router(f"{at}.gate", count, w.hidden, w.stack),
        *((correction(f"{at}.e_score_correction_bias", count, w.stack),) if family == "minimax_m2" else ()),
        *experts(
            f"{at}.experts",
            w.stack,
            count=count,
            hidden=w.hidden,
            intermediate=w.intermediate,
            names=("w1", "w3", "w2"),
        ),
    )
    built = decoder(
        config,
        w,
        whole,
        (*layers, *mixture),
        caches,
        experts=Experts(
            w.layers,
            count,
            config.count("num_experts_per_tok", default=8 if family == "minimax_m2" else 2),
            w.intermediate,
        ),
    )
    # Configs of MiniMax M2 name no dtype; what its published checkpoints do not quantise is bfloat16.
    return replace(built, dtype="bfloat16") if family == "minimax_m2" else built


def _attentions(config: Config, w: Widths, block: Block, family: str) -> tuple[Weights, tuple[Cache, ...]]:
    if family != "minimax":
        window = config.maybe("sliding_window") if family != "minimax_m2" else None
        return attention_layers(w, block, w.stack), windowed_caches(w, w.layers if window else 0, window)
    usual = every(w.layers, 2, one="linear_attention", others="full_attention")
    types = kinds(config, w.layers, _minimax_types(config, w) or usual)
    full, straight = of_kind(types, "full_attention"), of_kind(types, "linear_attention")
    plain = Block(before="", after="")
    weights = (
        *(attention_layers(w, plain, full) if full else ()),
        *(_lightning(w, straight) if straight else ()),
        *norm(f"{_AT}.input_layernorm", w.hidden, w.stack),
        *norm(f"{_AT}.post_attention_layernorm", w.hidden, w.stack),
    )
    caches: list[Cache] = []
    if full:
        caches.append(AttentionCache(len(full), w.kv_heads, w.head_dim, w.head_dim))
    if straight:
        caches.append(StateCache(len(straight), 0, w.heads * w.head_dim * w.head_dim, recurrent_float32=False))
    return weights, tuple(caches)


def _minimax_types(config: Config, w: Widths) -> tuple[str, ...]:
    """MiniMax Text 01 writes 0 for lightning attention and 1 for softmax attention, under `attn_type_list`."""
    found = config.counts("attn_type_list")
    if found is None or len(found) < w.layers:
        return ()
    return tuple("full_attention" if one else "linear_attention" for one in found[: w.layers])


def _lightning(w: Widths, layers: tuple[int, ...]) -> Weights:
    """Lightning attention, whose state is one key x value matrix a head (https://arxiv.org/abs/2501.08313)."""
    at, inner = f"{_AT}.self_attn", w.heads * w.head_dim
    return (
        *linear(f"{at}.qkv_proj", 3 * inner, w.hidden, Split.COLUMN, layers),
        *linear(f"{at}.output_gate", inner, w.hidden, Split.COLUMN, layers),
        *linear(f"{at}.out_proj", w.hidden, inner, Split.ROW, layers),
        *norm(f"{at}.norm", inner, layers),
    )
