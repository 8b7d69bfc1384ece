"""The weights as they stand in memory after loading, from the files' headers or from the config's shapes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from gpufit.architecture.quantization.loaded import tensors_of_config
from gpufit.architecture.quantization.matching import tensors_of_files
from gpufit.architecture.quantization.method import Method
from gpufit.architecture.quantization.registry import declared, method_of
from gpufit.architecture.record import Architecture, Component
from gpufit.architecture.tensors import DTYPE_BITS, FLOATS, LoadedTensor
from gpufit.profile.record import DtypeShare
from gpufit.sources.model_files.record import ModelHeaders


@dataclass(frozen=True)
class Weights:
    """A model's tensors in memory."""

    tensors: tuple[LoadedTensor, ...]
    method: Method | None
    """How they are quantised; None where they are not."""
    notes: tuple[str, ...]
    """What the user should know of how they were told, in words."""


def weights_in_memory(headers: ModelHeaders, model: Architecture, dtype: str) -> Weights:
    """The tensors once the model is loaded in a dtype (`BF16`). Raises UnreadableInputError for a damaged or unknown
    quantisation."""
    method = method_of(declared(headers.config, headers.config_where), dtype)
    found, notes = _told(headers, model, method, dtype)
    kept = (one for one in found if one.weight is None or _is_loaded(one))
    resident = tuple(_cast(one, dtype, headers.format == "gguf") for one in kept)
    return Weights(resident, method, notes)


def _told(
    headers: ModelHeaders, model: Architecture, method: Method | None, dtype: str
) -> tuple[tuple[LoadedTensor, ...], tuple[str, ...]]:
    if not headers.tensors:
        return tensors_of_config(model, method, dtype), ()
    matched = tensors_of_files(model, headers.tensors, method, gguf=headers.format == "gguf")
    notes = []
    if matched.unknown:
        notes.append(
            f"{_counted(len(matched.unknown), 'tensor')} that no shape rule knows ({matched.unknown[0]}): counted whole"
        )
    if matched.missing:
        notes.append(
            f"{_counted(len(matched.missing), 'weight')} that the config implies and no file holds "
            f"({matched.missing[0]}): not counted"
        )
    return matched.tensors, tuple(notes)


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


def _is_loaded(tensor: LoadedTensor) -> bool:
    weight = tensor.weight
    return weight is None or (weight.parameter and weight.component is not Component.PREDICTOR)


def _cast(tensor: LoadedTensor, dtype: str, is_gguf: bool) -> LoadedTensor:
    """A tensor in memory: floats in the dtype asked for, blocks of GGUF dequantised to it, all else as stored."""
    wide = tensor.weight is not None and (tensor.weight.upcast or tensor.weight.dtype == "F32")
    if not is_gguf and tensor.dtype not in FLOATS:
        return tensor
    loaded = "F32" if wide else dtype
    return replace(tensor, dtype=loaded, size_bytes=math.prod(tensor.shape) * DTYPE_BITS[loaded] // 8)


def shares(tensors: Iterable[LoadedTensor]) -> tuple[DtypeShare, ...]:
    """Bytes by dtype, largest first."""
    totals: dict[str, list[int]] = {}
    for one in tensors:
        total = totals.setdefault(one.dtype, [0, 0])
        total[0] += one.total_bytes
        total[1] += one.copies
    ordered = sorted(totals.items(), key=lambda item: (-item[1][0], item[0]))
    return tuple(DtypeShare(dtype=dtype, size_bytes=size, tensors=count) for dtype, (size, count) in ordered)
