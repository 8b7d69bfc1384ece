"""Number formats: the families that catalog rows speak of, and what a compute capability implies. Pure."""

from __future__ import annotations

from typing import Literal

Family = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8"]
"""A number format whatever its spelling or sub-format: `float8_e4m3fn` and `fp8_e5m2` are both `fp8`."""
Estimated = Literal["fp32", "tf32", "bf16", "fp16", "fp8", "fp4", "int8", "fp16_fp16_accumulate", "fp8_fp16_accumulate"]
"""What a row may hold a computed peak for."""

_NAMES: dict[str, Family] = {
    "fp32": "fp32",
    "float32": "fp32",
    "float": "fp32",
    "tf32": "tf32",
    "bf16": "bf16",
    "bfloat16": "bf16",
    "fp16": "fp16",
    "float16": "fp16",
    "half": "fp16",
    "int8": "int8",
    "mxfp8": "fp8",
    "mxfp4": "fp4",
    "nvfp4": "fp4",
}
_PREFIXES: dict[str, Family] = {"fp8": "fp8", "float8": "fp8", "fp4": "fp4", "float4": "fp4"}

_SINCE: dict[Family, tuple[int, int]] = {
    "fp32": (3, 0),
    "fp16": (7, 0),
    "int8": (7, 2),
    "tf32": (8, 0),
    "bf16": (8, 0),
    "fp8": (8, 9),
    "fp4": (10, 0),
}
"""The first compute capability whose tensor cores take a format (fp32: whose plain units do)."""


def family(dtype: str) -> Family | None:
    """The family of a dtype as torch, engines or people write it; None for one that rows say nothing about."""
    name = dtype.strip().lower().removeprefix("torch.")
    if name in _NAMES:
        return _NAMES[name]
    return next((found for prefix, found in _PREFIXES.items() if name.startswith(prefix)), None)


def implied_by(compute_capability: str | None, wanted: Family) -> bool:
    """Whether an NVIDIA compute capability alone says that the card takes a format."""
    if compute_capability is None:
        return False
    major, minor = compute_capability.split(".")
    return (int(major), int(minor)) >= _SINCE[wanted]
