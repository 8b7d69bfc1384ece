"""What carrying a profile to a card assumes, in words, with the figures of `memory.carry` and `memory.predict`."""

from __future__ import annotations

from gpufit.memory.carry import (
    CUBLAS_WORKSPACE_BYTES,
    CUBLAS_WORKSPACE_HOPPER_BYTES,
    FALLBACK_CONTEXT_BYTES,
    FALLBACK_CONTEXT_UPPER_BYTES,
    FRAGMENTATION_ALLOWANCE,
    LOADED_KERNELS_BYTES,
    LOADED_KERNELS_UPPER_BYTES,
    NO_DEVICE_UNCERTAINTY,
    ROCM_WORKSPACE_BYTES,
    SCRATCH_UNCERTAINTY,
)
from gpufit.memory.predict import UNTESTED_GROWTH_ERROR, UNTESTED_SCRATCH_ERROR
from gpufit.profile.environment import DeviceInfo
from gpufit.units import MIB

_FRAGMENTATION = f"upper bound: {FRAGMENTATION_ALLOWANCE:.0%} of allocated for fragmentation"
_UNTESTED = (
    "arithmetic that no run of this model has tested: temporaries and activations carry an interval of "
    f"{UNTESTED_SCRATCH_ERROR:.0%} either way, and all that grows one of {UNTESTED_GROWTH_ERROR:.0%}"
)


def rules(measured_on: DeviceInfo, *, untested: bool = False) -> tuple[str, ...]:
    """What was replaced or assumed on the way to another card, in words, for every report.

    `untested`: no run has tested the profile's memory model, so that its own interval holds what kernels do otherwise.
    """
    said = [
        "driver context: the catalog's figure for each card (where none is known the largest of any card, "
        f"{FALLBACK_CONTEXT_BYTES // MIB} MiB, and {FALLBACK_CONTEXT_UPPER_BYTES // MIB} MiB in the upper bound), plus "
        f"{LOADED_KERNELS_BYTES / MIB:.0f} MiB of loaded kernels ({LOADED_KERNELS_UPPER_BYTES / MIB:.0f} MiB in the "
        "upper bound)",
        f"matrix library workspace: {CUBLAS_WORKSPACE_BYTES / MIB:.1f} MiB before compute capability 9.0, "
        f"{CUBLAS_WORKSPACE_HOPPER_BYTES // MIB} MiB from there on, {ROCM_WORKSPACE_BYTES // MIB} MiB on ROCm; a "
        "larger one that the profile holds already stays",
        _FRAGMENTATION,
    ]
    if measured_on.kind == "cpu":
        said.append(
            f"measured on a CPU: temporaries and activations carry an interval of {SCRATCH_UNCERTAINTY:.0%} either "
            "way, since a card's kernels take other scratch"
        )
    if untested:
        said.append(_UNTESTED)
    elif measured_on.kind == "none":
        said.append(
            f"nothing ran on a device: temporaries and activations carry an interval of {NO_DEVICE_UNCERTAINTY:.0%} "
            "either way, for scratch inside a card's kernels and for the attention kernel it chooses"
        )
    return tuple(said)


def rules_without_card(*, untested: bool = False) -> tuple[str, ...]:
    """The same where no card was named."""
    return (
        f"no card named: a driver context of {FALLBACK_CONTEXT_BYTES // MIB} MiB and a matrix library workspace of "
        f"{CUBLAS_WORKSPACE_HOPPER_BYTES // MIB} MiB, the largest of any card reported, and "
        f"{LOADED_KERNELS_BYTES / MIB:.0f} MiB of loaded kernels are part of what is needed (--card names one)",
        _FRAGMENTATION,
        *([_UNTESTED] if untested else []),
    )
