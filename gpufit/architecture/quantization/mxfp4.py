"""MXFP4 as gpt-oss has it: experts alone, two codes a byte, a scale of one byte for 32 inputs.

Layout and modules: https://github.com/huggingface/transformers/blob/main/src/transformers/integrations/mxfp4.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.method import Names, is_matrix, matrix_of, share
from gpufit.architecture.record import Kind, Weight
from gpufit.architecture.tensors import Axis, StoredAs, axes_of, module_of

BLOCK = 32
"""Inputs that share a scale."""


@dataclass(frozen=True)
class Mxfp4:
    """MXFP4 for the experts; everything else stays."""

    skipped: Names

    @property
    def name(self) -> str:
        """The method in words."""
        return "MXFP4 (experts)"

    def stands_for(self, weight: Weight, module: str) -> tuple[StoredAs, ...] | None:
        """Codes and scales of the experts of a layer."""
        if weight.kind is not Kind.EXPERT or not is_matrix(weight) or module in self.skipped:
            return None
        matrix = matrix_of(weight)
        out, blocks = (matrix.out, Axis.OUT), (share(matrix.into, BLOCK), Axis.IN)
        return (
            matrix.stored("_blocks", "U8", out, blocks, (BLOCK // 2, Axis.OTHER)),
            matrix.stored("_scales", "U8", out, blocks),
        )


def of_config(config: Config) -> Mxfp4:
    """The method that a `quantization_config` of MXFP4 describes. Raises UnreadableInputError."""
    return Mxfp4(Names(config.items("modules_to_not_convert") or (), config.where))


@dataclass(frozen=True, slots=True)
class Padding:
    """Multiples that a kernel needs of an expert's widths; gpt-oss's of 2,880 are none of these."""

    hidden: int = 1
    intermediate: int = 1
    inputs: int = 1
    """Of the inputs of either matrix, whichever width they are."""


MARLIN = Padding(hidden=256, intermediate=128)
"""Marlin's kernels, which cards without FP4 use.

https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/quantization/mxfp4.py (`create_weights`).
gpt-oss-120b: 65.897 GiB against 65.965 printed, https://github.com/vllm-project/vllm/issues/23278
"""

TRITON_HOPPER = Padding(inputs=256)
"""Triton's value layout on compute capability 9.0: rows of codes in whole 128 bytes.

https://github.com/triton-lang/triton/blob/main/python/triton_kernels/triton_kernels/tensor_details/layout_details/hopper_value.py.
gpt-oss-20b and 120b: 13.447 and 64.551 GiB against 13.47 and 64.38 printed,
https://github.com/llm-d-incubation/llm-d-planner/blob/e50305af90f0812e77e1827f3bc740fe75b76370/docs/empirical-vllm-memory-results.md
"""


def padded(weight: Weight, padding: Padding) -> Weight:
    """The expert's weight as a kernel holds it. A stacked pair of gate and up has the inner width twice."""
    matrix = matrix_of(weight)
    module = module_of(weight.name)
    down = module.endswith(("down_proj", ".w2"))
    halves = 2 if "gate_up" in module else 1
    inner, hidden = (matrix.into, matrix.out) if down else (matrix.out // halves, matrix.into)
    inner, hidden = up_to(inner, padding.intermediate) * halves, up_to(hidden, padding.hidden)
    out, into = (hidden, up_to(inner, padding.inputs)) if down else (inner, up_to(hidden, padding.inputs))
    turned = axes_of(weight)[-1] is Axis.OUT
    return replace(weight, shape=(*matrix.stack, into, out) if turned else (*matrix.stack, out, into))


def up_to(size: int, multiple: int) -> int:
    """The next whole multiple."""
    return share(size, multiple) * multiple
