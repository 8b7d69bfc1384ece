"""A profile's prediction on the device that is here, to be held against a run on it. Pure.

What the allocator hands out is compared, so the driver's context stays out of it. The matrix library's workspace is
taken off or added where the two devices differ in it, and what kernels take otherwise widens the interval by the shares
of `memory.carry`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from gpufit.memory.carry import CPU_ATTENTION, NO_DEVICE_UNCERTAINTY, SCRATCH_UNCERTAINTY, device_workspace_bytes
from gpufit.memory.predict import ERROR_SAFETY_FACTOR, SMALLEST_GROWTH_ERROR, PhasePrediction
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.record import Profile
from gpufit.units import MIB

REPEAT_ERROR = ERROR_SAFETY_FACTOR * SMALLEST_GROWTH_ERROR
"""Half the interval of a phase of which a profile has one figure and no model (loading; a profile of few cells), as a
share of it: no fit is trusted further than that of what grows, either (assumed)."""

REPEAT_LEAST_BYTES = MIB
"""And never less than this: loading makes small things that no order hangs on (position ids, the copy of a norm), and
neither arithmetic nor fake tensors tell of them (assumed)."""


@dataclass(frozen=True)
class Expected:
    """What one phase is expected to allocate on the device that is here, in bytes."""

    phase: Phase
    parts: Parts
    lower_bytes: int
    upper_bytes: int


def expected_here(profile: Profile, prediction: PhasePrediction, here: DeviceInfo) -> Expected:
    """A predicted phase on another device than the profile's, or on the same."""
    workspace = 0
    if prediction.phase is not Phase.LOAD:
        workspace = device_workspace_bytes(here) - device_workspace_bytes(profile.environment.device)
    parts = _with_workspace(prediction.parts, workspace)
    share = _scratch_share(profile, here)
    bounds = [
        _bounds(_with_workspace(one.parts, workspace), one.parts, (one.lower_bytes, one.upper_bytes), share)
        for one in prediction.moments
    ]
    lower = max((low for low, _ in bounds), default=0)
    upper = max((high for _, high in bounds), default=0)
    if prediction.lower_bytes == prediction.upper_bytes:
        margin = max(math.ceil(REPEAT_ERROR * parts.total_bytes), REPEAT_LEAST_BYTES)
        lower, upper = min(lower, parts.total_bytes - margin), max(upper, parts.total_bytes + margin)
    return Expected(prediction.phase, parts, max(lower, 0), upper)


def _bounds(parts: Parts, before: Parts, given: tuple[int, int], share: float) -> tuple[int, int]:
    """The bounds of a moment, moved as its parts were and widened by what kernels may take otherwise."""
    moved = parts.total_bytes - before.total_bytes
    spread = math.ceil(share * (parts.temporaries_bytes + parts.activations_bytes))
    return given[0] + moved - spread, given[1] + moved + spread


def _with_workspace(parts: Parts, workspace: int) -> Parts:
    """Temporaries with so much more of a library's workspace, or less; never less than nothing."""
    return msgspec.structs.replace(parts, temporaries_bytes=max(parts.temporaries_bytes + workspace, 0))


def _scratch_share(profile: Profile, here: DeviceInfo) -> float:
    """The share of temporaries and activations by which kernels here may differ from those of the profile."""
    if profile.memory_model is not None and profile.memory_model.untested:
        return 0.0  # the prediction's own interval holds it
    ran = profile.environment.device.kind
    for_cpu = ran == "cpu" or (ran == "none" and profile.engine.attention == CPU_ATTENTION)
    if for_cpu != (here.kind == "cpu"):
        return SCRATCH_UNCERTAINTY
    return NO_DEVICE_UNCERTAINTY if ran == "none" else 0.0
