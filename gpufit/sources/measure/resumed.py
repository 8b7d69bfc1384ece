"""Whether a run may go on with an earlier profile, and what was then asked for in all. Pure."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpufit.errors import UsageError
from gpufit.profile.record import Profile
from gpufit.profile.workload import Workload
from gpufit.sources.measure.protocol import Loaded
from gpufit.units import format_size

_SETTINGS = (
    "new_tokens", "seed", "dtype_requested", "logits_kept", "images", "image_size", "cache_implementation",
    "kv_cache_dtype", "quantization", "compute_dtype", "memory_limit_bytes", "tensor_parallel_size",
    "expert_parallel",
)  # fmt: skip
"""What of a workload changes the bytes of a cell, beside its place in the grid."""


def check_same_settings(earlier: Profile, asked: Workload, attention: str | None, output: Path) -> None:
    """A resumed run must be the same run: settings that change the bytes may not differ. Raises UsageError for one that
    does."""
    if attention is not None and attention != earlier.engine.attention:
        raise UsageError(
            f"{output} was measured with {earlier.engine.attention} attention, not {attention}; leave "
            "--attn-implementation out, or choose another -o FILE"
        )
    for name in _SETTINGS:
        before, now = getattr(earlier.workload, name), getattr(asked, name)
        if before != now:
            setting, *sizes = _setting(name, before, now)
            raise UsageError(
                f"{output} was measured with {setting} {sizes[0]}, not {sizes[1]}; "
                "repeat that setting, or choose another -o FILE"
            )


def check_same_surroundings(earlier: Profile, loaded: Loaded, output: Path) -> None:
    """Device, engine and torch must be the same, too. Raises UsageError for one that is not."""
    pairs = {
        "device": (earlier.environment.device.name, loaded.environment.device.name),
        "engine": (earlier.engine, loaded.engine),
        "torch": (earlier.environment.versions.get("torch"), loaded.environment.versions.get("torch")),
    }
    for name, (before, now) in pairs.items():
        if before != now:
            raise UsageError(
                f"{output} was measured with another {name} ({_said(before)}, now {_said(now)}); "
                "cells of both would not belong together: choose another -o FILE"
            )


def joined(earlier: Workload, now: Workload) -> Workload:
    """The workload of a resumed profile: both grids."""
    return msgspec.structs.replace(
        earlier,
        contexts_tokens=tuple(sorted({*earlier.contexts_tokens, *now.contexts_tokens})),
        concurrencies=tuple(sorted({*earlier.concurrencies, *now.concurrencies})),
    )


def _setting(name: str, *values: int | str | None) -> tuple[str, ...]:
    """A setting's name and values in words."""
    if not name.endswith("_bytes"):
        return (name.replace("_", " "), *map(str, values))
    sizes = ("none" if value is None else format_size(int(value)) for value in values)
    return (name.removesuffix("_bytes").replace("_", " "), *sizes)


def _said(value: object) -> str:
    if isinstance(value, msgspec.Struct):
        return " ".join(str(one) for one in msgspec.structs.astuple(value))
    return str(value)
