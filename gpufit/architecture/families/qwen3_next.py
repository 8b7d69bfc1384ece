"""Qwen3-Next and Qwen 3.5 / 3.6: three layers of gated delta-rule attention to one of full attention.

Shapes and defaults: qwen3_next, qwen3_5 and qwen3_5_moe in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
A full layer's query projection carries an output gate beside the queries. A linear layer keeps the last inputs of its
convolution (kernel width of transformers' cache) in the model's dtype, and one key x value matrix a value head.
The checkpoints hold a layer for multi-token prediction under `mtp`, as vLLM's qwen3_next_mtp and qwen3_5_mtp read it:
https://github.com/vllm-project/vllm/tree/main/vllm/model_executor/models
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpufit.architecture.blocks import (
    Layers,
    Weights,
    belonging,
    convolution,
    experts,
    gated_mlp,
    linear,
    norm,
    router,
    scalars,
)
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, Widths, decoder, every, kinds, of_kind, rotary_share, widths
from gpufit.architecture.families.qwen import shared_expert, sparse_of
from gpufit.architecture.record import Architecture, AttentionCache, Component, Experts, Split, StateCache

_NEXT = Usual(
    hidden=2048, layers=48, heads=16, kv_heads=2, head_dim=256, intermediate=5632, vocabulary=151936, positions=32768
)
_FIVE = Usual(
    hidden=4096, layers=32, heads=16, kv_heads=4, head_dim=256, intermediate=12288, vocabulary=248320, positions=32768
)
_FIVE_MOE = Usual(
    hidden=2048, layers=40, heads=16, kv_heads=2, head_dim=256, intermediate=512, vocabulary=248320, positions=32768
)
USUAL = {"qwen3_next": _NEXT, "qwen3_5_text": _FIVE, "qwen3_5_moe_text": _FIVE_MOE}
_CLASSES = {
    "qwen3_next": "Qwen3NextForCausalLM",
    "qwen3_5_text": "Qwen3_5ForCausalLM",
    "qwen3_5_moe_text": "Qwen3_5MoeForCausalLM",
}
_AT = "model.layers.{layer}"


@dataclass(frozen=True, slots=True)
class _Linear:
    """Widths of the linear layers."""

    key_heads: int
    key_dim: int
    value_heads: int
    value_dim: int
    kernel: int

    @property
    def keys(self) -> int:
        return self.key_heads * self.key_dim

    @property
    def values(self) -> int:
        return self.value_heads * self.value_dim

    @property
    def channels(self) -> int:
        return 2 * self.keys + self.values


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    family = config.text("model_type")
    w = _widths(config, family)
    usual = every(
        w.layers,
        config.count("full_attention_interval", default=4),
        one="full_attention",
        others="linear_attention",
    )
    types = kinds(config, w.layers, usual)
    full, straight = of_kind(types, "full_attention"), of_kind(types, "linear_attention")
    inner = _linear_widths(config)
    mixture, mlps = _mlps(config, w, family, w.stack)
    whole = Whole(
        model_type=family,
        class_name=_CLASSES[family],
        tied=config.flag("tie_word_embeddings"),
        rotary_dim=rotary_share(config, w.head_dim, 0.25),
    )
    layers = (
        *(_full(config, w, full) if full else ()),
        *(_straight(w, inner, straight, packed=family == "qwen3_next") if straight else ()),
        *mlps,
        *norm(f"{_AT}.input_layernorm", w.hidden, w.stack),
        *norm(f"{_AT}.post_attention_layernorm", w.hidden, w.stack),
    )
    caches = (
        AttentionCache(len(full), w.kv_heads, w.head_dim, w.head_dim),
        StateCache(len(straight), inner.channels * inner.kernel, inner.value_heads * inner.key_dim * inner.value_dim),
    )
    predictor, notes = _predictor(config, w, family)
    return decoder(
        config,
        w,
        whole,
        layers,
        tuple(one for one in caches if one.layers),
        experts=mixture,
        extra=predictor,
        notes=notes,
    )


def _widths(config: Config, family: str) -> Widths:
    if family == "qwen3_5_moe_text" and not config.has("intermediate_size"):
        inner = config.count("moe_intermediate_size", default=512)
        return widths(config.with_values(intermediate_size=inner), USUAL[family])
    return widths(config, USUAL[family])


def _linear_widths(config: Config) -> _Linear:
    return _Linear(
        config.count("linear_num_key_heads", default=16),
        config.count("linear_key_head_dim", default=128),
        config.count("linear_num_value_heads", default=32),
        config.count("linear_value_head_dim", default=128),
        config.count("linear_conv_kernel_dim", default=4),
    )


def _full(config: Config, w: Widths, layers: Layers, at: str = _AT) -> Weights:
    bias = config.flag("attention_bias")
    here = f"{at}.self_attn"
    kv = w.kv_heads * w.head_dim
    return (
        *linear(
            f"{here}.q_proj", 2 * w.heads * w.head_dim, w.hidden, Split.COLUMN, layers, bias=bias, fused="qkv_proj"
        ),
        *linear(f"{here}.k_proj", kv, w.hidden, Split.KV_HEADS, layers, bias=bias, fused="qkv_proj"),
        *linear(f"{here}.v_proj", kv, w.hidden, Split.KV_HEADS, layers, bias=bias, fused="qkv_proj"),
        *linear(f"{here}.o_proj", w.hidden, w.heads * w.head_dim, Split.ROW, layers, bias=bias),
        *norm(f"{here}.q_norm", w.head_dim, layers),
        *norm(f"{here}.k_norm", w.head_dim, layers),
    )


def _straight(w: Widths, inner: _Linear, layers: Layers, *, packed: bool) -> Weights:
    here = f"{_AT}.linear_attn"
    outs = (
        {"in_proj_qkvz": inner.channels + inner.values, "in_proj_ba": 2 * inner.value_heads}
        if packed
        else {
            "in_proj_qkv": inner.channels,
            "in_proj_z": inner.values,
            "in_proj_b": inner.value_heads,
            "in_proj_a": inner.value_heads,
        }
    )
    return (
        *(one for name, out in outs.items() for one in linear(f"{here}.{name}", out, w.hidden, Split.COLUMN, layers)),
        *convolution(f"{here}.conv1d", (inner.channels, 1, inner.kernel), layers, split=Split.COLUMN),
        scalars(f"{here}.A_log", (inner.value_heads,), layers),
        scalars(f"{here}.dt_bias", (inner.value_heads,), layers),
        *norm(f"{here}.norm", inner.value_dim, layers),
        *linear(f"{here}.out_proj", w.hidden, inner.values, Split.ROW, layers),
    )


def _mlps(config: Config, w: Widths, family: str, stack: Layers, at: str = _AT) -> tuple[Experts | None, Weights]:
    if family == "qwen3_5_text":
        return None, gated_mlp(f"{at}.mlp", stack, hidden=w.hidden, intermediate=w.intermediate)
    count = config.count("num_experts", default=512 if family == "qwen3_next" else 256)
    inner = config.count("moe_intermediate_size", default=512)
    shared = config.count("shared_expert_intermediate_size", default=512)
    sparse = sparse_of(config, w, config.count("decoder_sparse_step", default=1)) if stack == w.stack else stack
    dense = tuple(one for one in stack if one not in set(sparse))
    weights = (
        *router(f"{at}.mlp.gate", count, w.hidden, sparse),
        *experts(f"{at}.mlp.experts", sparse, count=count, hidden=w.hidden, intermediate=inner),
        *shared_expert(f"{at}.mlp", sparse, w.hidden, shared),
    )
    plain = gated_mlp(f"{at}.mlp", dense, hidden=w.hidden, intermediate=w.intermediate) if dense else ()
    if not sparse:
        return None, plain
    per_token = config.count("num_experts_per_tok", default=10 if family == "qwen3_next" else 8)
    return Experts(len(sparse), count, per_token, inner, shared), (*weights, *plain)


def _predictor(config: Config, w: Widths, family: str) -> tuple[Weights, tuple[str, ...]]:
    """The layers under `mtp`, each a full-attention layer, behind one projection of two hidden states."""
    usual = 1 if family == "qwen3_next" else 0
    count = config.count("mtp_num_hidden_layers", "num_nextn_predict_layers", default=usual, least=0, most=64)
    if not count:
        return (), ()
    stack, at = tuple(range(count)), "mtp.layers.{layer}"
    _, mlps = _mlps(config, replace(w, layers=count + w.layers), family, stack, at)
    found = (
        *linear("mtp.fc", w.hidden, 2 * w.hidden, Split.REPLICATED),
        *norm("mtp.pre_fc_norm_embedding", w.hidden),
        *norm("mtp.pre_fc_norm_hidden", w.hidden),
        *norm("mtp.norm", w.hidden),
        *_full(config, w, stack, at),
        *mlps,
        *norm(f"{at}.input_layernorm", w.hidden, stack),
        *norm(f"{at}.post_attention_layernorm", w.hidden, stack),
    )
    notes = ("one layer for multi-token prediction, which the config does not name",) if family == "qwen3_next" else ()
    return belonging(found, Component.PREDICTOR), notes
