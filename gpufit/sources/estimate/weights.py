"""The weights as they stand in memory after loading, from the files' headers or from the config's shapes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from gpufit.architecture.record import Architecture, Component
from gpufit.profile.record import DtypeShare
from gpufit.sources.model_files.record import ModelHeaders

FLOATS = ("F64", "F32", "F16", "BF16")
"""Stored dtypes that loading casts to the one asked for."""


@dataclass(frozen=True)
class Block:
    """Tensors of one size in memory."""

    dtype: str
    """As safetensors names it."""
    size_bytes: int
    """Of one."""
    count: int


def resident_blocks(headers: ModelHeaders, model: Architecture, dtype: str, element_bytes: int) -> tuple[Block, ...]:
    """What stands in memory once the model is loaded in a dtype (`BF16`, of so many bytes an element)."""
    found = _of_files(headers, dtype, element_bytes) if headers.tensors else _of_shapes(model, dtype, element_bytes)
    counted = Counter(found)
    return tuple(
        Block(kind, size, count) for (kind, size), count in sorted(counted.items(), key=lambda one: -one[0][1])
    )


def _of_files(headers: ModelHeaders, dtype: str, element_bytes: int) -> Iterable[tuple[str, int]]:
    for tensor in headers.tensors:
        elements = 1
        for side in tensor.shape:
            elements *= side
        if headers.format == "gguf" or tensor.dtype in FLOATS:
            yield dtype, elements * element_bytes
        else:
            yield tensor.dtype, tensor.size_bytes


def _of_shapes(model: Architecture, dtype: str, element_bytes: int) -> Iterable[tuple[str, int]]:
    for weight in model.weights:
        if weight.parameter and weight.component is not Component.PREDICTOR:
            kept_wide = weight.dtype == "F32"
            for _ in range(weight.copies):
                yield ("F32", weight.elements * 4) if kept_wide else (dtype, weight.elements * element_bytes)


def shares(blocks: Iterable[Block]) -> tuple[DtypeShare, ...]:
    """Bytes by dtype, largest first."""
    totals: dict[str, list[int]] = {}
    for one in blocks:
        total = totals.setdefault(one.dtype, [0, 0])
        total[0] += one.size_bytes * one.count
        total[1] += one.count
    ordered = sorted(totals.items(), key=lambda item: (-item[1][0], item[0]))
    return tuple(DtypeShare(dtype=dtype, size_bytes=size, tensors=count) for dtype, (size, count) in ordered)
