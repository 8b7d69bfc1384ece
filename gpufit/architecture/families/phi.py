"""Phi 1, 1.5 and 2, StarCoder 2 and Nemotron: decoders whose MLP has no gate.

Shapes and defaults: phi, starcoder2 and nemotron in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
A config of `phi-msft` uses GPT-2's keys, and its published checkpoints Phi's names and shapes.
"""

from __future__ import annotations

from gpufit.architecture.blocks import Weights, plain_mlp
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import (
    Block,
    Usual,
    Whole,
    Widths,
    attention_layers,
    decoder,
    rotary_share,
    widths,
    windowed_caches,
)
from gpufit.architecture.record import Architecture

_PHI = Usual(hidden=2048, layers=24, intermediate=8192, vocabulary=51200)
_CODER = Usual(hidden=3072, layers=30, heads=24, kv_heads=2, intermediate=12288, vocabulary=49152, positions=4096)
_NEMOTRON = Usual(hidden=6144, heads=48, intermediate=24576, vocabulary=256000, positions=4096)
_AT = "model.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    family = config.text("model_type")
    return {"starcoder2": _coder, "nemotron": _nemotron}.get(family, _phi)(config)


def _mlp(w: Widths, names: tuple[str, str], *, bias: bool) -> Weights:
    return plain_mlp(f"{_AT}.mlp.", w.stack, hidden=w.hidden, intermediate=w.intermediate, names=names, bias=bias)


def _phi(config: Config) -> Architecture:
    family = config.text("model_type")
    if family == "phi-msft" and not config.has("n_inner", "intermediate_size"):
        hidden = config.count("n_embd", "hidden_size")
        config = config.with_values(intermediate_size=4 * hidden)
    w = widths(config, _PHI)
    block = Block(after="", norm_bias=True, qkv_bias=True, out_bias=True, out_name="dense", qk_norm="")
    layers = (*attention_layers(w, block, w.stack), *_mlp(w, ("fc1", "fc2"), bias=True))
    whole = Whole(
        model_type=family,
        class_name="PhiForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        final="model.final_layernorm",
        final_bias=True,
        head_bias=True,
        gated=False,
        rotary_dim=config.maybe("rotary_dim") or rotary_share(config, w.head_dim, 0.5),
    )
    return decoder(config, w, whole, layers, (w.full_cache,))


def _coder(config: Config) -> Architecture:
    w = widths(config, _CODER)
    bias = config.flag("use_bias", default=True)
    layers = (
        *attention_layers(w, Block(norm_bias=True, qkv_bias=bias, out_bias=bias), w.stack),
        *_mlp(w, ("c_fc", "c_proj"), bias=bias),
    )
    whole = Whole(
        model_type="starcoder2",
        class_name="Starcoder2ForCausalLM",
        tied=config.flag("tie_word_embeddings", default=True),
        final_bias=True,
        gated=False,
    )
    return decoder(config, w, whole, layers, windowed_caches(w, w.layers, config.maybe("sliding_window")))


def _nemotron(config: Config) -> Architecture:
    w = widths(config, _NEMOTRON)
    bias = config.flag("attention_bias")
    layers = (
        *attention_layers(w, Block(norm_bias=True, qkv_bias=bias, out_bias=bias), w.stack),
        *_mlp(w, ("up_proj", "down_proj"), bias=config.flag("mlp_bias")),
    )
    whole = Whole(
        model_type="nemotron",
        class_name="NemotronForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        final_bias=True,
        gated=False,
        rotary_dim=rotary_share(config, w.head_dim, 0.5),
    )
    return decoder(config, w, whole, layers, (w.full_cache,))
