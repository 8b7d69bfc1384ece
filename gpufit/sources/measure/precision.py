"""The precisions as found: dtypes in the files, in memory, in the operations that ran, and in the cache."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.modules import module as torch_module
from torch.utils._python_dispatch import TorchDispatchMode

from gpufit.memory.replay import Category
from gpufit.profile.record import ComputeDtype, DtypeShare, Phase, Precision, Quantization
from gpufit.sources.measure.convert import CONVERTED_FROM
from gpufit.sources.measure.drivers.base import Driver
from gpufit.sources.measure.storages import Storage, dtype_name, storages_within, tensors_within
from gpufit.sources.model_files.gguf import is_block_type
from gpufit.sources.model_files.record import dtype_shares

_MATMULS = {
    "mm", "addmm", "bmm", "baddbmm", "linear", "matmul", "_int_mm", "_scaled_mm", "_grouped_mm",
    "_weight_int8pack_mm", "_weight_int4pack_mm", "gemv_4bit", "int8_scaled_mm", "int8_mixed_scaled_mm",
}  # fmt: skip
"""Operations that multiply by weights."""

_VIEWS = {
    "view", "_unsafe_view", "t", "transpose", "expand", "slice", "select", "unsqueeze", "squeeze", "detach", "alias",
    "permute", "split", "unbind", "as_strided", "lift_fresh", "reshape", "_reshape_alias", "empty", "empty_like",
}  # fmt: skip
"""Operations that compute nothing."""


class DtypeTrace(TorchDispatchMode):  # type: ignore[misc]
    """Counts, for each family of operations, the dtype of every floating-point result while the mode is on."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[str, Counter[str]] = {}
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
        if any(kind is not torch.Tensor and not issubclass(kind, torch.nn.Parameter) for kind in types):
            return NotImplemented
        result = func(*args, **(kwargs or {}))
        name = func.overloadpacket.__name__
        if name not in _VIEWS:
            for tensor in tensors_within(result if not isinstance(result, torch.Tensor) else [result]):
                if tensor.is_floating_point():
                    self.seen.setdefault(self._family(name), Counter())[dtype_name(tensor.dtype)] += 1
                    break
        return result

    def _family(self, name: str) -> str:
        if "dot_product" in name or "flash_attention" in name:
            return "attention"
        if name in _MATMULS:
            return "matmul"
        if "softmax" in name:
            return "softmax"
        if name == "embedding":
            return "embedding"
        for module in reversed(self._modules):
            if "Norm" in module:
                return "norm"
            if "Rotary" in module:
                return "rotary"
        return "norm" if "norm" in name else "other"


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

    def phase_ended(self, phase: Phase, cached_tokens: int) -> None:
        """Nothing to note."""


def observe(
    model: Any, driver: Driver, stored: tuple[DtypeShare, ...], weights: Iterable[Storage], config: Any
) -> Precision:
    """Run the driver's smallest shape and say what precision everything was in."""
    probe = _Probe()
    with DtypeTrace() as trace:
        driver.run(model, driver.probe, probe)
    compute = [
        ComputeDtype(family=family, dtypes=tuple(name for name, _ in counts.most_common()), calls=counts.total())
        for family, counts in sorted(trace.seen.items())
    ]
    if probe.logits is not None:
        compute.append(ComputeDtype(family="logits", dtypes=(probe.logits,), calls=1))
    resident = dtype_shares((storage.dtype, storage.size_bytes) for storage in weights)
    kv = dtype_shares((one.dtype, one.size_bytes) for one in probe.cache)
    quantization = quantization_of(config)
    return Precision(
        stored=stored,
        resident=resident,
        compute=tuple(compute),
        kv=kv,
        quantization=quantization,
        findings=findings(stored, resident, tuple(compute), quantization),
    )


def quantization_of(config: Any) -> Quantization | None:
    """The quantisation that the model's config declares."""
    declared = getattr(config, "quantization_config", None) or getattr(config, CONVERTED_FROM, None)
    if declared is None:
        return None
    raw = declared if isinstance(declared, dict) else declared.to_dict()
    method = str(getattr(raw.get("quant_method"), "value", raw.get("quant_method", "unknown")))
    scalars = {key: str(value) for key, value in sorted(raw.items()) if isinstance(value, bool | int | float | str)}
    for name in ("quant_method", "gguf_file", "dequantize"):  # transformers' own notes, not the method's parameters
        scalars.pop(name, None)
    return Quantization(method=method, parameters=scalars)


_SAME = {
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8_e4m3fn",
    "I8": "int8",
    "U8": "uint8",
}
"""Names of a dtype in a file and in torch."""


def findings(
    stored: tuple[DtypeShare, ...],
    resident: tuple[DtypeShare, ...],
    compute: tuple[ComputeDtype, ...],
    quantization: Quantization | None,
) -> tuple[str, ...]:
    """What differs between the columns, in words."""
    said = []
    if stored and resident and _SAME.get(stored[0].dtype, stored[0].dtype) != resident[0].dtype:
        why = "blocks dequantised at load" if is_block_type(stored[0].dtype) or quantization else "converted at load"
        said.append(f"stored {stored[0].dtype}, resident {resident[0].dtype}: {why}")
    matmul = next((one.dtypes[0] for one in compute if one.family == "matmul"), None)
    if resident and matmul and matmul != resident[0].dtype:
        said.append(f"resident {resident[0].dtype}, matrix products in {matmul}")
    return tuple(said)
