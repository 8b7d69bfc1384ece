"""The tensors that stand for a model's weights, in a file or in memory; several for one that is quantised."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass

from gpufit.architecture.record import Weight

DTYPE_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8,
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
    "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32,
    "I64": 64, "U64": 64, "F64": 64, "C64": 64,
}  # fmt: skip
"""Bits of one element: https://github.com/huggingface/safetensors/blob/main/safetensors/src/tensor.rs (`bitsize`)."""

FLOATS = ("BF16", "F16", "F32", "F64")
"""Dtypes that a model computes in, which loading may exchange for one another."""


def element_bytes(shape: tuple[int, ...], dtype: str) -> int:
    """Bytes of a tensor of this shape and safetensors dtype."""
    return -(-math.prod(shape) * DTYPE_BITS[dtype] // 8)


class Axis(enum.Enum):
    """What a dimension of a stored tensor counts, so that an engine knows where to divide it."""

    OUT = "out"
    """Outputs of the matrix, or blocks or packs of them."""
    IN = "in"
    """Its inputs, or groups or packs of them."""
    EXPERTS = "experts"
    OTHER = "other"
    """Neither: a packed row of both, parts of one element, one number for all."""


@dataclass(frozen=True, slots=True)
class StoredAs:
    """One of the tensors that stand for a weight."""

    suffix: str
    """What follows the name of the module: `.qweight`."""
    dtype: str
    """As safetensors names it: `I32`."""
    shape: tuple[int, ...]
    axes: tuple[Axis, ...]
    """What each dimension counts."""

    @property
    def size_bytes(self) -> int:
        """Bytes of one copy."""
        return element_bytes(self.shape, self.dtype)


@dataclass(frozen=True, slots=True)
class LoadedTensor:
    """A tensor of a model, or the same one in several layers and experts."""

    name: str
    """With `{layer}` and `{expert}` for their numbers, as the checkpoint names it."""
    dtype: str
    """As safetensors or GGUF names it: `BF16`, `Q4_K`."""
    shape: tuple[int, ...]
    size_bytes: int
    """Of one copy."""
    layers: tuple[int, ...] = ()
    """Layers that have it; empty for a tensor outside any stack of layers."""
    experts: int = 1
    """Tensors of this shape under this name in each layer."""
    weight: Weight | None = None
    """What it stands for, alone or with others; None where no shape rule knows it."""
    axes: tuple[Axis, ...] = ()
    """What each dimension counts; empty where that is not known, as in a GGUF block."""

    @property
    def copies(self) -> int:
        """How many tensors of this shape there are under this name, over layers and experts."""
        return max(len(self.layers), 1) * self.experts

    @property
    def total_bytes(self) -> int:
        """Bytes of all copies."""
        return self.size_bytes * self.copies


def total_bytes(tensors: Iterable[LoadedTensor]) -> int:
    """Bytes of all copies of all tensors."""
    return sum(one.total_bytes for one in tensors)


def module_of(name: str) -> str:
    """The module that a weight's name belongs to; a stacked parameter without `.weight` is its own."""
    return name.removesuffix(".weight")


def axes_of(weight: Weight) -> tuple[Axis, ...]:
    """What the dimensions of a weight in its own layout count."""
    if len(weight.shape) == 1:
        return (Axis.OUT,)
    if len(weight.shape) == 3 and not weight.name.endswith(".weight"):
        # Stacked parameters of experts are turned: https://github.com/huggingface/transformers, gpt_oss and llama4.
        return (Axis.EXPERTS, Axis.IN, Axis.OUT)
    if len(weight.shape) == 3:
        return (Axis.EXPERTS, Axis.OUT, Axis.IN)
    return (Axis.OUT, Axis.IN) + (Axis.OTHER,) * (len(weight.shape) - 2)


def as_it_is(weight: Weight, dtype: str) -> StoredAs:
    """A weight that is not quantised, in a dtype."""
    return StoredAs(weight.name[len(module_of(weight.name)) :], dtype, weight.shape, axes_of(weight))
