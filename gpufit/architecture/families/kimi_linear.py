"""Kimi Linear: delta-rule attention with a gate a channel, latent attention among it, experts.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/kimi_linear
The published configs list the linear layers, counted from 1, under `linear_attn_config`. A linear layer keeps the last
inputs of three convolutions and one key x value matrix a head.
"""

from __future__ import annotations

from dataclasses import replace

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    convolution,
    correction,
    experts,
    gated_mlp,
    linear,
    norm,
    router,
    scalars,
)
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, Widths, chosen, decoder, every, kinds, of_kind, widths
from gpufit.architecture.families.latent import Latent, latent_attention
from gpufit.architecture.record import Architecture, Cache, Experts, LatentCache, Split, StateCache

_USUAL = Usual(hidden=2304, layers=27, heads=32, intermediate=9216, vocabulary=163840, positions=1048576)
_AT = "model.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of a Kimi Linear."""
    w = widths(config, _USUAL)
    seeing = _seeing(config, w)
    straight = chosen(w.stack, seeing)
    inner = config.section("linear_attn_config") or config
    heads = inner.count("num_heads", "linear_num_heads", default=32)
    dim = inner.count("head_dim", default=128) if inner is not config else config.count("linear_head_dim", default=128)
    kernel = inner.count("short_conv_kernel_size", "linear_conv_kernel_dim", default=4)
    rank = config.count("kv_lora_rank", default=512)
    rope = config.count("qk_rope_head_dim", default=64, least=0)
    mixture, mlps = _mlps(config, w)
    layers = (
        *norm(f"{_AT}.input_layernorm", w.hidden, w.stack),
        *norm(f"{_AT}.post_attention_layernorm", w.hidden, w.stack),
        *(latent_attention(f"{_AT}.self_attn", w, _latent(config, rank, rope), seeing, ()) if seeing else ()),
        *(delta(w, straight, heads, dim, kernel) if straight else ()),
        *mlps,
    )
    caches: tuple[Cache, ...] = (
        LatentCache(len(seeing), rank, rope),
        StateCache(len(straight), 3 * heads * dim * kernel, heads * dim * dim),
    )
    whole = Whole(
        model_type="kimi_linear",
        class_name="KimiLinearForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        rotary_dim=0,
    )
    built = decoder(config, w, whole, layers, tuple(one for one in caches if one.layers), experts=mixture)
    it = _latent(config, rank, rope)
    return replace(built, head_dim=it.nope + it.rope)


def _seeing(config: Config, w: Widths) -> Layers:
    """The layers of latent attention: each fourth, unless the config lists them."""
    inner = config.section("linear_attn_config")
    named = None if inner is None else inner.counts("full_attn_layers", 1)
    if named is not None:
        return tuple(one for one in w.stack if one + 1 in set(named))
    usual = every(w.layers, 4, one="full_attention", others="linear_attention")
    if w.layers:
        usual = (*usual[:-1], "full_attention")
    return of_kind(kinds(config, w.layers, usual), "full_attention")


def _latent(config: Config, rank: int, rope: int) -> Latent:
    nope, value = config.count("qk_nope_head_dim", default=128), config.count("v_head_dim", default=128)
    return Latent(q_rank=None, kv_rank=rank, nope=nope, rope=rope, value=value)


def delta(
    w: Widths, layers: Layers, heads: int, dim: int, kernel: int, *, decay: tuple[int, ...] | None = None
) -> Weights:
    """A linear layer; `decay` is the shape of its decay where it is not Kimi's."""
    at, wide = f"{_AT}.self_attn", heads * dim
    return (
        *(
            one
            for side in ("q", "k", "v")
            for one in (
                *linear(f"{at}.{side}_proj", wide, w.hidden, Split.COLUMN, layers),
                *convolution(f"{at}.{side}_conv1d", (wide, 1, kernel), layers, split=Split.COLUMN),
            )
        ),
        *(
            one
            for gate in ("f", "g")
            for one in (
                *linear(f"{at}.{gate}_a_proj", dim, w.hidden, Split.REPLICATED, layers),
                *linear(f"{at}.{gate}_b_proj", wide, dim, Split.COLUMN, layers),
            )
        ),
        *linear(f"{at}.b_proj", heads, w.hidden, Split.COLUMN, layers),
        scalars(f"{at}.A_log", decay or (1, 1, heads, 1), layers),
        scalars(f"{at}.dt_bias", (wide,), layers),
        *norm(f"{at}.o_norm", dim, layers),
        *linear(f"{at}.o_proj", w.hidden, wide, Split.ROW, layers),
    )


def _mlps(config: Config, w: Widths) -> tuple[Experts | None, Weights]:
    first = config.count("first_k_dense_replace", default=1, least=0)
    usual = tuple("sparse" if one >= first else "dense" for one in w.stack)
    sparse = of_kind(kinds(config, w.layers, usual, "mlp_layer_types"), "sparse")
    dense = chosen(w.stack, sparse)
    at = f"{_AT}.block_sparse_moe"
    # Published checkpoints call a dense layer's MLP `mlp`.
    plain = gated_mlp(f"{_AT}.mlp", dense, hidden=w.hidden, intermediate=w.intermediate) if dense else ()
    if not sparse:
        return None, plain
    count, inner = config.count("num_experts", default=256), config.count("moe_intermediate_size", default=1024)
    shared = inner * config.count("num_shared_experts", default=1, least=0)
    weights = (
        *router(f"{at}.gate", count, w.hidden, sparse, upcast=True),
        correction(f"{at}.gate.e_score_correction_bias", count, sparse),
        *experts(f"{at}.experts", sparse, count=count, hidden=w.hidden, intermediate=inner, names=("w1", "w3", "w2")),
        *(gated_mlp(f"{at}.shared_experts", sparse, hidden=w.hidden, intermediate=shared) if shared else ()),
    )
    per_token = config.count("num_experts_per_token", "num_experts_per_tok", default=8)
    return Experts(len(sparse), count, per_token, inner, shared), (*plain, *weights)
