"""Qwen 2 and 3, dense and with experts, and OLMoE, whose experts are laid out alike.

Shapes and defaults: qwen2, qwen3, qwen2_moe, qwen3_moe and olmoe in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
Layers slide only with `use_sliding_window`, and then those from `max_window_layers` on.
"""

from __future__ import annotations

from gpufit.architecture.blocks import Layers, Weights, experts, gated_mlp, linear, router
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import (
    Block,
    Usual,
    Whole,
    Widths,
    attention_layers,
    chosen,
    decoder,
    dense_layers,
    kinds,
    of_kind,
    widths,
    windowed_caches,
)
from gpufit.architecture.record import Architecture, AttentionCache, Experts, Split
from gpufit.errors import UnreadableInputError

_DENSE = Usual(intermediate=22016, vocabulary=151936, positions=32768)
USUAL: dict[str, Usual] = {
    "qwen2": _DENSE,
    "qwen3": Usual(head_dim=128, kv_heads=32, intermediate=22016, vocabulary=151936, positions=32768),
    "qwen2_moe": Usual(hidden=2048, layers=24, heads=16, intermediate=5632, vocabulary=151936, positions=32768),
    "qwen3_moe": Usual(
        hidden=2048, layers=24, heads=32, kv_heads=4, intermediate=6144, vocabulary=151936, positions=32768
    ),
    "olmoe": Usual(hidden=2048, layers=16, heads=16, intermediate=2048, vocabulary=50304, positions=4096),
}

_CLASSES = {
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen2_moe": "Qwen2MoeForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
    "olmoe": "OlmoeForCausalLM",
}


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    return built(config, config.text("model_type"), USUAL[config.text("model_type")])


def built(config: Config, family: str, usual: Usual) -> Architecture:
    """The shapes of a family, with other defaults for what a nested config leaves out."""
    w = widths(config, usual)
    block = _block(config, family)
    whole = Whole(model_type=family, class_name=_CLASSES[family], tied=config.flag("tie_word_embeddings"))
    if not family.endswith("moe"):
        return decoder(config, w, whole, dense_layers(w, block, w.stack), _caches(config, w))
    mixture, weights = sparse_layers(config, w, family, block.at)
    dense = chosen(w.stack, weights[0].layers) if weights else w.stack
    layers = (
        *attention_layers(w, block, w.stack),
        *(gated_mlp(f"{block.at}.mlp", dense, hidden=w.hidden, intermediate=w.intermediate) if dense else ()),
        *weights,
    )
    return decoder(config, w, whole, layers, _caches(config, w), experts=mixture)


def _block(config: Config, family: str) -> Block:
    if family == "qwen2":
        return Block(qkv_bias=True)
    if family == "qwen2_moe":
        return Block(qkv_bias=config.flag("qkv_bias", default=True))
    bias = config.flag("attention_bias")
    return Block(qkv_bias=bias, out_bias=bias, qk_norm="all" if family == "olmoe" else "head")


def _caches(config: Config, w: Widths) -> tuple[AttentionCache, ...]:
    window = config.maybe("sliding_window", least=0) if config.flag("use_sliding_window") else None
    first = config.count("max_window_layers", default=28, least=0)
    usual = tuple("sliding_attention" if window and one >= first else "full_attention" for one in w.stack)
    return windowed_caches(w, len(of_kind(kinds(config, w.layers, usual), "sliding_attention")), window or None)


def sparse_of(config: Config, w: Widths, step: int) -> Layers:
    """The layers with experts: each `decoder_sparse_step`-th that `mlp_only_layers` does not name."""
    without = set(config.counts("mlp_only_layers") or ())
    return tuple(one for one in w.stack if (one + 1) % step == 0 and one not in without)


def sparse_layers(config: Config, w: Widths, family: str, at: str) -> tuple[Experts | None, Weights]:
    """The experts of a model and their weights, shared expert included."""
    count = config.count("num_experts", "num_local_experts", default=_usual_experts(family), least=0)
    layers = sparse_of(config, w, config.count("decoder_sparse_step", default=1)) if count else ()
    if not layers:
        return None, ()
    inner = w.intermediate
    if family != "olmoe":
        inner = config.count("moe_intermediate_size", default=768 if family == "qwen3_moe" else 1408)
    shared = config.count("shared_expert_intermediate_size", default=5632) if family == "qwen2_moe" else 0
    per_token = config.count("num_experts_per_tok", default=4 if family == "qwen2_moe" else 8)
    if per_token > count:
        raise UnreadableInputError(f"{config.where}: num_experts_per_tok is {per_token}, of {count} experts")
    weights = (
        *router(f"{at}.mlp.gate", count, w.hidden, layers),
        *experts(f"{at}.mlp.experts", layers, count=count, hidden=w.hidden, intermediate=inner),
        *(shared_expert(f"{at}.mlp", layers, w.hidden, shared) if shared else ()),
    )
    return Experts(len(layers), count, per_token, inner, shared), weights


def _usual_experts(family: str) -> int:
    return {"qwen2_moe": 60, "olmoe": 64}.get(family, 128)


def shared_expert(at: str, layers: Layers, hidden: int, intermediate: int) -> Weights:
    """The expert that every token goes through, and the gate that scales it."""
    return (
        *gated_mlp(f"{at}.shared_expert", layers, hidden=hidden, intermediate=intermediate),
        *linear(f"{at}.shared_expert_gate", 1, hidden, Split.REPLICATED, layers),
    )
