"""The weights as they stand in memory after loading, from the files' headers or from the config's shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.loaded import tensors_of_config
from gpufit.architecture.quantization.matching import Matched, tensors_of_files
from gpufit.architecture.quantization.method import Method
from gpufit.architecture.quantization.registry import at_load, declared, full_name, method_name, method_of
from gpufit.architecture.quantization.transformers_load import FP8_CAPABILITY, LINEAR_ONLY, resident
from gpufit.architecture.record import Architecture
from gpufit.architecture.tensors import LoadedTensor
from gpufit.errors import UnreadableInputError, UsageError
from gpufit.profile.precision import DtypeShare
from gpufit.sources.model_files.record import ModelHeaders

CALIBRATED = ("gptq", "awq", "mxfp4", "fbgemm_fp8", "compressed-tensors-fp8")
"""Methods that no engine applies while it loads: what does is another program, before it."""


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


def weights_in_memory(
    headers: ModelHeaders, model: Architecture, dtype: str, quantization: str | None = None
) -> Weights:
    """The tensors once the model is loaded in a dtype (`BF16`), by the quantisation that its config tells of, or that
    is applied at load, on a card that computes FP8 and without the packages that keep MXFP4 and GGUF packed.

    Raises UnreadableInputError for a damaged or unknown quantisation, UsageError for one that is asked for of a model
    that is quantised otherwise.
    """
    own = GGUF if headers.format == "gguf" else declared(headers.config, headers.config_where)
    applied = applied_quantization(headers, quantization, own)
    method = method_of(applied, dtype)
    if quantization is not None and own is None and applied is not None:
        experts = method_name(applied) not in LINEAR_ONLY
        found, notes = tensors_of_config(model, method, dtype, experts=experts), quantised_notes(quantization, headers)
    else:
        found, notes = _told(headers, model, method, dtype)
    buffers = tuple(one for one in found if one.weight is None and one.name.endswith(BUFFERS))
    weights = [one for one in found if one not in buffers]
    loaded = resident(model, weights, applied, dtype=dtype, capability=FP8_CAPABILITY)
    if loaded.refused:
        raise UnreadableInputError(f"{headers.name}: {loaded.refused}")
    return Weights(loaded.tensors, buffers, method, loaded.notes, notes)


BUFFERS = (".position_ids", ".token_type_ids")
"""How the names of stored tensors end that transformers registers as buffers."""

GGUF = Config({"quant_method": "gguf"}, "a GGUF file")


def applied_quantization(headers: ModelHeaders, asked: str | None, own: Config | None) -> Config | None:
    """The quantisation that weights are in after loading: the config's own, or the one that `--quantization` names.

    Raises UsageError where the files hold another one.
    """
    if asked is None:
        return own
    if headers.format == "gguf":
        raise UsageError(f"--quantization {asked}: {headers.name} is quantised already (GGUF); leave the option out")
    return at_load(asked, own, headers.name)


def quantised_notes(name: str, headers: ModelHeaders) -> tuple[str, ...]:
    """What the user should know of weights that `--quantization` quantises, in words."""
    files = "" if headers.tensors else " (no weight files: shapes are the config's)"
    notes = [f"--quantization {name}: sizes by that method's usual settings, for the layers it reaches{files}"]
    if full_name(name) in CALIBRATED:
        notes.append(f"{name} needs a checkpoint quantised beforehand, whose own settings may differ: name that one")
    return tuple(notes)


def _told(
    headers: ModelHeaders, model: Architecture, method: Method | None, dtype: str
) -> tuple[tuple[LoadedTensor, ...], tuple[str, ...]]:
    if not headers.tensors:
        return tensors_of_config(model, method, dtype), ()
    matched = tensors_of_files(model, headers.tensors, method, gguf=headers.format == "gguf")
    return matched.tensors, unmatched_notes(matched, "counted whole")


def unmatched_notes(matched: Matched, unknown: str) -> tuple[str, ...]:
    """Where files and shapes differ, in words; `unknown` is what becomes of tensors that no rule knows."""
    notes = []
    names = [name for name in matched.unknown if not name.endswith(BUFFERS)]
    if names:
        notes.append(f"{_counted(len(names), 'tensor')} that no shape rule knows ({names[0]}): {unknown}")
    if matched.missing:
        notes.append(
            f"{_counted(len(matched.missing), 'weight')} that the config implies and no file holds "
            f"({matched.missing[0]}): not counted"
        )
    return tuple(notes)


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
