"""Sizes of quantised models, against figures that engines printed on real cards: within 2 %, or with the reason why."""

from __future__ import annotations

from dataclasses import replace

import pytest
from facts.quantised_weights import GPT_OSS, ROWS, WIDTHS, Row

from gpufit.architecture.blocks import attention, embedding, norm
from gpufit.architecture.config import Config
from gpufit.architecture.quantization import mxfp4
from gpufit.architecture.quantization.loaded import tensors_of_config
from gpufit.architecture.quantization.registry import method_of, named
from gpufit.architecture.record import Kind, Split, Weight
from gpufit.architecture.registry import architecture_of
from gpufit.architecture.tensors import total_bytes

TOLERANCE = 0.02


def predicted(row: Row) -> float:
    """Bytes that the row's figure should hold."""
    architecture = architecture_of({"model_type": "llama", "torch_dtype": "bfloat16"} | WIDTHS[row.model], row.name)
    tensors = tensors_of_config(architecture, method_of(Config(row.method, row.name), architecture.dtype))
    table = architecture.vocabulary * architecture.hidden * 2
    weights = total_bytes(tensors) + table * (row.second_head - row.without_embeddings)
    a_token = 2 * sum(one.elements_per_token for one in architecture.caches)
    return weights / row.ranks + a_token * row.cache_tokens + row.also_bytes


@pytest.mark.parametrize("row", [row for row in ROWS if not row.worse], ids=lambda row: row.name)
def test_a_printed_figure_is_met_within_two_percent(row: Row) -> None:
    assert predicted(row) == pytest.approx(row.measured_bytes, rel=TOLERANCE)


@pytest.mark.parametrize("row", [row for row in ROWS if row.worse], ids=lambda row: row.name)
def test_a_row_with_an_excuse_needs_it_and_is_never_above_the_figure(row: Row) -> None:
    # Every reason is something beside the weights, so a prediction above the figure would be another fault.
    assert predicted(row) < row.measured_bytes * (1 - TOLERANCE)


@pytest.mark.parametrize(("layers", "experts", "kernel", "gib", "source"), GPT_OSS)
def test_gpt_oss_with_the_padding_of_its_kernels(
    layers: int, experts: int, kernel: str, gib: float, source: str
) -> None:
    llama = architecture_of({"model_type": "llama", "torch_dtype": "bfloat16"} | WIDTHS["Llama-2-7B"], source)
    padding = mxfp4.MARLIN if kernel == "marlin" else mxfp4.TRITON_HOPPER
    plain = gpt_oss_experts(layers, experts)
    others = gpt_oss_others(layers, experts)
    printed, method = gib * 2**30, method_of(named("mxfp4"), "BF16")
    held = replace(llama, weights=(*(mxfp4.padded(one, padding) for one in plain), *others))
    assert total_bytes(tensors_of_config(held, method)) == pytest.approx(printed, rel=0.005)
    # Without the padding it would be 5 % off.
    assert total_bytes(tensors_of_config(replace(llama, weights=(*plain, *others)), method)) < printed * 0.96


HIDDEN = 2880


def stacked(name: str, shape: tuple[int, ...], kind: Kind, split: Split, layers: int) -> Weight:
    return Weight(f"model.layers.{{layer}}.mlp.{name}", shape, kind, split, layers=tuple(range(layers)))


def gpt_oss_experts(layers: int, experts: int) -> tuple[Weight, ...]:
    return (
        stacked("experts.gate_up_proj", (experts, HIDDEN, 2 * HIDDEN), Kind.EXPERT, Split.COLUMN, layers),
        stacked("experts.down_proj", (experts, HIDDEN, HIDDEN), Kind.EXPERT, Split.ROW, layers),
    )


def gpt_oss_others(layers: int, experts: int) -> tuple[Weight, ...]:
    """Everything that stays in 16 bits."""
    stack, at = tuple(range(layers)), "model.layers.{layer}"
    heads = {"hidden": HIDDEN, "heads": 64, "kv_heads": 8, "head_dim": 64}
    return (
        *attention(f"{at}.self_attn", stack, **heads, bias=True, out_bias=True),
        *norm(f"{at}.input_layernorm", HIDDEN, stack),
        *norm(f"{at}.post_attention_layernorm", HIDDEN, stack),
        stacked("router.weight", (experts, HIDDEN), Kind.ROUTER, Split.REPLICATED, layers),
        stacked("experts.gate_up_proj_bias", (experts, 2 * HIDDEN), Kind.BIAS, Split.COLUMN, layers),
        stacked("experts.down_proj_bias", (experts, HIDDEN), Kind.BIAS, Split.REPLICATED, layers),
        embedding("model.embed_tokens", 201_088, HIDDEN),
        embedding("lm_head", 201_088, HIDDEN),
    )
