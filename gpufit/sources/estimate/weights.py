"""The weights as they stand in memory after loading, from the files' headers or from the config's shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.loaded import tensors_of_config
from gpufit.architecture.quantization.matching import tensors_of_files
from gpufit.architecture.quantization.method import Method
from gpufit.architecture.quantization.registry import declared, method_of
from gpufit.architecture.quantization.transformers_load import FP8_CAPABILITY, resident
from gpufit.architecture.record import Architecture
from gpufit.architecture.tensors import LoadedTensor
from gpufit.errors import UnreadableInputError
from gpufit.profile.record import DtypeShare
from gpufit.sources.model_files.record import ModelHeaders


@dataclass(frozen=True)
class Weights:
    """A model's tensors in memory."""

    tensors: tuple[LoadedTensor, ...]
    buffers: tuple[LoadedTensor, ...]
    """What older checkpoints store that are no weights: tables of positions."""
    method: Method | None
    """How they are quantised; None where they are not."""
    findings: tuple[str, ...]
    """Where memory differs from the files, in words."""
    notes: tuple[str, ...]
    """What the user should know of how they were told, in words."""


def weights_in_memory(headers: ModelHeaders, model: Architecture, dtype: str) -> Weights:
    """The tensors once the model is loaded in a dtype (`BF16`), on a card that computes FP8 and without the packages
    that keep MXFP4 and GGUF packed. Raises UnreadableInputError for a damaged or unknown quantisation."""
    is_gguf = headers.format == "gguf"
    quantization = GGUF if is_gguf else declared(headers.config, headers.config_where)
    method = method_of(quantization, dtype)
    found, notes = _told(headers, model, method, dtype)
    buffers = tuple(one for one in found if one.weight is None and one.name.endswith(BUFFERS))
    weights = [one for one in found if one not in buffers]
    loaded = resident(model, weights, quantization, dtype=dtype, capability=FP8_CAPABILITY)
    if loaded.refused:
        raise UnreadableInputError(f"{headers.name}: {loaded.refused}")
    return Weights(loaded.tensors, buffers, method, loaded.notes, notes)


BUFFERS = (".position_ids", ".token_type_ids")
"""How the names of stored tensors end that transformers registers as buffers."""

GGUF = Config({"quant_method": "gguf"}, "a GGUF file")


def _told(
    headers: ModelHeaders, model: Architecture, method: Method | None, dtype: str
) -> tuple[tuple[LoadedTensor, ...], tuple[str, ...]]:
    if not headers.tensors:
        return tensors_of_config(model, method, dtype), ()
    matched = tensors_of_files(model, headers.tensors, method, gguf=headers.format == "gguf")
    notes = []
    unknown = [name for name in matched.unknown if not name.endswith(BUFFERS)]
    if unknown:
        counted = _counted(len(unknown), "tensor")
        notes.append(f"{counted} that no shape rule knows ({unknown[0]}): counted whole")
    if matched.missing:
        notes.append(
            f"{_counted(len(matched.missing), 'weight')} that the config implies and no file holds "
            f"({matched.missing[0]}): not counted"
        )
    return matched.tensors, tuple(notes)


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


def shares(tensors: Iterable[LoadedTensor]) -> tuple[DtypeShare, ...]:
    """Bytes by dtype, largest first."""
    totals: dict[str, list[int]] = {}
    for one in tensors:
        total = totals.setdefault(one.dtype, [0, 0])
        total[0] += one.total_bytes
        total[1] += one.copies
    ordered = sorted(totals.items(), key=lambda item: (-item[1][0], item[0]))
    return tuple(DtypeShare(dtype=dtype, size_bytes=size, tensors=count) for dtype, (size, count) in ordered)
