"""gpt-oss: experts stacked in one tensor, attention sinks, and every other layer slides.

Shapes and defaults: https://github.com/huggingface/transformers/tree/main/src/transformers/models/gpt_oss
The stacked tensors are (experts, in, out), as transformers holds them dequantised; the published ones are MXFP4.
"""

from __future__ import annotations

from dataclasses import replace

from gpufit.architecture.blocks import router, scalars, stacked
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import (
    Block,
    Usual,
    Whole,
    attention_layers,
    decoder,
    every,
    kinds,
    of_kind,
    widths,
    windowed_caches,
)
from gpufit.architecture.record import Architecture, Experts, Split

_USUAL = Usual(
    hidden=2880, layers=36, heads=64, kv_heads=8, head_dim=64, intermediate=2880, vocabulary=201088, positions=131072
)


def build(config: Config) -> Architecture:
    """The shapes of a gpt-oss."""
    w = widths(config, _USUAL)
    count = config.count("num_local_experts", default=128)
    bias = config.flag("attention_bias", default=True)
    at = "model.layers.{layer}"
    inner = w.intermediate
    layers = (
        *attention_layers(w, Block(qkv_bias=bias, out_bias=bias), w.stack),
        scalars(f"{at}.self_attn.sinks", (w.heads,), w.stack),
        *router(f"{at}.mlp.router", count, w.hidden, w.stack, bias=True),
        stacked(f"{at}.mlp.experts.gate_up_proj", (count, w.hidden, 2 * inner), w.stack, Split.COLUMN),
        stacked(f"{at}.mlp.experts.gate_up_proj_bias", (count, 2 * inner), w.stack, Split.COLUMN),
        stacked(f"{at}.mlp.experts.down_proj", (count, inner, w.hidden), w.stack, Split.ROW),
        stacked(f"{at}.mlp.experts.down_proj_bias", (count, w.hidden), w.stack, Split.REPLICATED),
    )
    usual = every(w.layers, 2, one="full_attention", others="sliding_attention")
    sliding = len(of_kind(kinds(config, w.layers, usual), "sliding_attention"))
    whole = Whole(model_type="gpt_oss", class_name="GptOssForCausalLM", tied=config.flag("tie_word_embeddings"))
    built = decoder(
        config,
        w,
        whole,
        layers,
        windowed_caches(w, sliding, config.count("sliding_window", default=128)),
        experts=Experts(w.layers, count, config.count("num_experts_per_tok", "experts_per_token", default=4), inner),
    )
    # Its configs name no dtype; what the published checkpoints do not quantise is bfloat16.
    return replace(built, dtype="bfloat16")
