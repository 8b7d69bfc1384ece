"""MXFP4 as gpt-oss has it: experts alone, two codes a byte, a scale of one byte for 32 inputs.

Layout and modules: https://github.com/huggingface/transformers/blob/main/src/transformers/integrations/mxfp4.py
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.method import Names, is_matrix, matrix_of, share
from gpufit.architecture.record import Kind, Weight
from gpufit.architecture.tensors import Axis, StoredAs

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
    """Multiples that a kernel needs of an expert's widths."""

    hidden: int
    intermediate: int


TRITON = Padding(hidden=32, intermediate=64)
"""Triton's kernels on Hopper and before: whole blocks of the hidden width, the inner one in whole tiles."""

MARLIN = Padding(hidden=256, intermediate=128)
"""Marlin's kernels, which cards without FP4 use.

Both: https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/quantization/mxfp4.py (`create_weights`)
"""


def padded(weight: Weight, padding: Padding) -> Weight:
    """The expert's weight as a kernel holds it: gpt-oss's widths of 2,880 are 45 tiles of 64 but not whole ones of 128.

    A stacked pair of gate and up has the inner width twice among its outputs.
    """
    matrix = matrix_of(weight)
    down = weight.name.removesuffix(".weight").endswith("down_proj")
    halves = 1 if down else 2 if "gate_up" in weight.name else 1
    inner, hidden = (matrix.into, matrix.out) if down else (matrix.out // halves, matrix.into)
    inner = share(inner, padding.intermediate) * padding.intermediate * halves
    hidden = share(hidden, padding.hidden) * padding.hidden
    out, into = (hidden, inner) if down else (inner, hidden)
    turned = len(weight.shape) == 3 and not weight.name.endswith(".weight")
    return replace(weight, shape=(*matrix.stack, into, out) if turned else (*matrix.stack, out, into))
