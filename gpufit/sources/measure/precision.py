"""The precisions as found: dtypes in the files, in memory, in the operations that ran, and in the cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
import torch
from torch.nn.modules import module as torch_module
from torch.utils._python_dispatch import TorchDispatchMode

from gpufit.memory.replay import Category
from gpufit.profile.peaks import Phase
from gpufit.profile.precision import ComputeDtype, DtypeShare, Precision, Quantization
from gpufit.sources.measure.drivers.base import Driver
from gpufit.sources.measure.storages import Storage, dtype_name, storage_of, storages_within, tensors_within, unfolds
from gpufit.sources.model_files.gguf import is_block_type
from gpufit.sources.model_files.record import dtype_shares
from gpufit.units import format_size

_DEQUANTISING_MATMULS = {"_weight_int8pack_mm", "_weight_int4pack_mm", "gemv_4bit", "gemm_4bit"}
"""Operations that multiply by quantised weights after dequantising them inside the kernel."""

_MATMULS = _DEQUANTISING_MATMULS | {
    "mm", "addmm", "bmm", "baddbmm", "linear", "matmul", "_int_mm", "_scaled_mm", "_grouped_mm", "int8_scaled_mm",
    "int8_mixed_scaled_mm",
}  # fmt: skip
"""Operations that multiply by weights."""

_QUANTISED = {"int8", "uint8", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float4_e2m1fn_x2"}
"""Dtypes of weights that are numbers only together with their scales."""

_VIEWS = {
    "view", "_unsafe_view", "t", "transpose", "expand", "slice", "select", "unsqueeze", "squeeze", "detach", "alias",
    "permute", "split", "unbind", "as_strided", "lift_fresh", "reshape", "_reshape_alias", "empty", "empty_like",
}  # fmt: skip
"""Operations that compute nothing."""


@dataclass
class _Seen:
    """What one family of operations took and gave, by dtype."""

    results: Counter[str] = field(default_factory=Counter)
    inputs: Counter[str] = field(default_factory=Counter)


class DtypeTrace(TorchDispatchMode):  # type: ignore[misc]
    """Counts, for each family of operations, the dtypes that go in and come out while the mode is on.

    Operations on wrapper tensors (quantised, sharded) are seen as those on the plain tensors inside.
    """

    def __init__(self, weights: Iterable[int] = ()) -> None:
        """`weights`: addresses of storages whose casts are to be noted."""
        super().__init__()
        self.seen: dict[str, _Seen] = {}
        self.casts: Counter[tuple[str, str]] = Counter()
        """(from, to) -> bytes made by casting weights."""
        self._weights = frozenset(weights)
        self._modules: list[str] = []

    def __enter__(self) -> DtypeTrace:
        self._hooks = [
            torch_module.register_module_forward_pre_hook(self._enter_module),
            torch_module.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        super().__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        for hook in self._hooks:
            hook.remove()

    def _enter_module(self, module: torch.nn.Module, args: Any) -> None:
        self._modules.append(type(module).__name__)

    def _leave_module(self, module: torch.nn.Module, args: Any, output: Any) -> None:
        self._modules.pop()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if unfolds(types):
            return NotImplemented
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name not in _VIEWS:
            made = next((one for one in tensors_within([result]) if one.is_floating_point()), None)
            if made is not None:
                self._note(name, list(tensors_within([args, kwargs])), made)
        return result

    def _note(self, name: str, taken: list[torch.Tensor], made: torch.Tensor) -> None:
        seen = self.seen.setdefault(self._family(name), _Seen())
        seen.results[dtype_name(made.dtype)] += 1
        numbers = [dtype_name(one.dtype) for one in taken]
        if name in _DEQUANTISING_MATMULS:
            numbers = numbers[:1]  # the products are in the dtype of what the weights are multiplied with
        seen.inputs.update(one for one in numbers if one in _QUANTISED or "float" in one)
        if name == "_to_copy" or "dequant" in name:
            source = next((one for one in map(storage_of, taken) if one and one.address in self._weights), None)
            if source is not None and source.dtype != dtype_name(made.dtype):
                self.casts[source.dtype, dtype_name(made.dtype)] += made.numel() * made.element_size()

    def _family(self, name: str) -> str:
        within = next((module for module in reversed(self._modules) if "Norm" in module or "Rotary" in module), "")
        if "Rotary" in within:  # its products are of positions, not of weights
            return "rotary"
        if "dot_product" in name or "flash_attention" in name:
            return "attention"
        if name in _MATMULS:
            return "matmul"
        if "softmax" in name:
            return "softmax"
        if name == "embedding":
            return "embedding"
        return "norm" if within or "norm" in name else "other"


_COUNTER = "int64"
"""The dtype in which cache layers count their tokens: part of what they hold, but no precision of keys and values."""


@dataclass
class _Probe:
    """The watch of a probe: keeps the dtype of the logits and what the cache holds when prefill ends."""

    logits: str | None = None
    cache: tuple[Storage, ...] = ()

    def label(self, thing: Any, category: Category) -> None:
        if category == "kv_cache":
            self.cache = tuple(storages_within(thing).values())
        elif category == "outputs" and self.logits is None and isinstance(thing, torch.Tensor):
            self.logits = dtype_name(thing.dtype)

    def phase_began(self, phase: Phase) -> None:
        """Nothing to note."""

    def step_began(self) -> None:
        """Nothing to note."""

    def phase_ended(self, phase: Phase, cached_tokens: int) -> None:
        """Nothing to note."""


def observe(
    model: Any,
    driver: Driver,
    stored: tuple[DtypeShare, ...],
    weights: Iterable[Storage],
    config: Any,
    autocast: str | None = None,
) -> Precision:
    """Run the driver's smallest shape and say what precision everything was in.

    `autocast` is the dtype of the autocast that the driver runs under, for the words alone.
    """
    probe = _Probe()
    held = list(weights)
    with DtypeTrace(storage.address for storage in held) as trace:
        driver.run(model, driver.probe, probe)
    compute = [
        ComputeDtype(
            family=family, dtypes=_frequent(seen.results), calls=seen.results.total(), inputs=_frequent(seen.inputs)
        )
        for family, seen in sorted(trace.seen.items())
    ]
    if probe.logits is not None:
        compute.append(ComputeDtype(family="logits", dtypes=(probe.logits,), calls=1))
    precision = Precision(
        stored=stored,
        resident=dtype_shares((storage.dtype, storage.size_bytes) for storage in held),
        compute=tuple(compute),
        kv=dtype_shares((one.dtype, one.size_bytes) for one in probe.cache if one.dtype != _COUNTER),
        quantization=quantization_of(config) or _of_blocks(stored),
    )
    return msgspec.structs.replace(precision, findings=findings(precision, trace.casts, autocast))


def _frequent(counts: Counter[str]) -> tuple[str, ...]:
    return tuple(name for name, _ in counts.most_common())


def quantization_of(config: Any) -> Quantization | None:
    """The quantisation that the model's config declares."""
    declared = getattr(config, "quantization_config", None)
    if declared is None:
        return None
    raw = declared if isinstance(declared, dict) else declared.to_dict()
    method = str(getattr(raw.get("quant_method"), "value", raw.get("quant_method", "unknown")))
    scalars = dict(_scalars(raw))
    for name in ("quant_method", "gguf_file", "dequantize"):  # transformers' own notes, not the method's parameters
        scalars.pop(name, None)
    return Quantization(method=method, parameters=scalars)


def _of_blocks(stored: Iterable[DtypeShare]) -> Quantization | None:
    """GGUF, where the file holds its blocks: what is loaded is a converted copy, whose config knows nothing of it."""
    return Quantization(method="gguf") if any(is_block_type(share.dtype) for share in stored) else None


def _scalars(declared: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """(dotted key, value as text) of every plain value; an object in torchao's notation by its type and its data."""
    for key, value in sorted(declared.items()):
        place = within if key in ("_type", "_data") else f"{within}.{key}" if within else key
        if isinstance(value, Mapping):
            yield from _scalars(value, place)
        elif isinstance(value, bool | int | float | str) and key != "_version":
            yield place, str(value)


_PACKED = {"I8", "U8", "F8_E4M3", "F8_E5M2", "F4"}
"""Dtypes of quantised weights in files."""

_WHY_DEQUANTISED = {
    "F8_E4M3": ", as transformers does on a device without FP8 matrix products (none below compute capability 8.9)"
}
"""https://github.com/huggingface/transformers/blob/v5.0.0/src/transformers/quantizers/quantizer_finegrained_fp8.py"""

_SAME = {
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "I8": "int8",
    "U8": "uint8",
}
"""Names of a dtype in a file and in torch."""


def findings(precision: Precision, casts: Mapping[tuple[str, str], int], autocast: str | None) -> tuple[str, ...]:
    """What differs between the columns, in words.

    `casts`: bytes made in one small forward by casting weights, by (from, to). That norms and softmax compute in
    float32 is how these models are written, and no finding.
    """
    matmul = next((one for one in precision.compute if one.family == "matmul"), None)
    said = [*_at_load(precision)]
    if autocast is not None:
        said.append(_under_autocast(autocast, casts))
    elif matmul is not None:
        said += _in_products(precision.resident, matmul, casts)
    cached = [share.dtype for share in precision.kv if "float" in share.dtype]
    if len(cached) > 1 and autocast is not None:
        kinds = " and ".join(cached)
        said.append(f"KV cache in {kinds}: autocast casts only part of what is cached")
    return tuple(said)


def is_quantised(resident: Iterable[DtypeShare]) -> bool:
    """Whether some of the weights in memory are quantised."""
    return any(share.dtype in _QUANTISED for share in resident)


def _at_load(precision: Precision) -> Iterator[str]:
    """What loading did to the weights."""
    stored, resident, quantization = precision.stored, precision.resident, precision.quantization
    if not stored or not resident:
        return
    as_stored = {_SAME.get(share.dtype, share.dtype) for share in stored}
    quantised = next((share.dtype for share in resident if share.dtype in _QUANTISED), None)
    first = _SAME.get(stored[0].dtype, stored[0].dtype)
    if quantised is not None and quantised not in as_stored and quantization is not None:
        yield f"stored {stored[0].dtype}, resident {quantised}: quantised at load by {quantization.method}"
    elif is_block_type(stored[0].dtype):
        yield f"stored {stored[0].dtype}, resident {resident[0].dtype}: blocks dequantised at load"
    elif quantised is None and (packed := next((one.dtype for one in stored if one.dtype in _PACKED), None)):
        yield f"stored {packed}, resident {resident[0].dtype}: dequantised at load" + _WHY_DEQUANTISED.get(packed, "")
    elif first != resident[0].dtype and quantised is None:
        yield f"stored {stored[0].dtype}, resident {resident[0].dtype}: converted at load"


def _in_products(
    resident: tuple[DtypeShare, ...], matmul: ComputeDtype, casts: Mapping[tuple[str, str], int]
) -> Iterator[str]:
    """What the matrix products compute in, where that is not the dtype of the weights."""
    quantised = next((share.dtype for share in resident if share.dtype in _QUANTISED), None)
    if quantised is None:
        if resident and resident[0].dtype != matmul.dtypes[0]:
            yield f"resident {resident[0].dtype}, matrix products in {matmul.dtypes[0]}"
        return
    if quantised in matmul.inputs:
        return
    made = ", ".join(f"{format_size(size)} as {to}" for (source, to), size in casts.items() if source == quantised)
    yield f"weights {quantised}, matrix products in {matmul.dtypes[0]}: dequantised in every forward" + (
        f" ({made})" if made else ""
    )


def _under_autocast(autocast: str, casts: Mapping[tuple[str, str], int]) -> str:
    copies = sum(size for (_, to), size in casts.items() if to == autocast)
    if not copies:
        return f"autocast to {autocast}: no weight had to be cast"
    return (
        f"autocast to {autocast}: keeps a copy of every weight it casts until the run ends, "
        f"{format_size(copies)} of temporaries"
    )
