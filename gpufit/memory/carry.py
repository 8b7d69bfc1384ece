"""Carrying a prediction to another card: what belongs to the device is replaced, each figure with its source.

    need = context + other + allocated          (and, in the upper bound, an allowance for fragmentation)

Capacity, driver context and library workspaces belong to the card; weights, cache, inputs and outputs belong to
the model and stay; what kernels take as scratch belongs to both, so it stays as a point and widens the interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpufit.catalog.record import Card
from gpufit.memory.predict import PhasePrediction
from gpufit.profile.record import DeviceInfo, Evidence, Parts, Phase, weakest
from gpufit.units import MIB

CUBLAS_WORKSPACE_BYTES = 8_519_680
"""cuBLAS before Hopper, a handle and stream: `:4096:2:16:8`. https://github.com/pytorch/pytorch/issues/91564"""

CUBLAS_WORKSPACE_HOPPER_BYTES = 32 * MIB
"""cuBLAS from compute capability 9.0 on. https://github.com/pytorch/pytorch/issues/175344"""

ROCM_WORKSPACE_BYTES = 128 * MIB
"""rocBLAS' larger setting; hipBLASLt takes 76 to 80 MiB. https://github.com/pytorch/pytorch/issues/145130"""

LOADED_KERNELS_BYTES = 99_000_000
"""Kernels loaded at first use, on top of the bare context: an A100 process held 434 MB outside the allocator
after load and 533 MB after a forward. https://github.com/huggingface/optimum-benchmark, examples/running-llamas"""

LOADED_KERNELS_UPPER_BYTES = 166_000_000
"""The largest such step seen: 543 to 709 MB on an H100 with FP8 kernels (same source)."""

FALLBACK_CONTEXT_BYTES = 612 * MIB
"""For a card whose context nobody has reported: the largest reported for any card, B200's.
https://github.com/unslothai/unsloth/pull/8669"""

FALLBACK_CONTEXT_UPPER_BYTES = 942 * MIB
"""The same for the upper bound: the highest report for any card, an A100 that loads every kernel at the start.
https://github.com/stas00/ml-engineering, training/performance"""

FRAGMENTATION_ALLOWANCE = 0.02
"""Reserved over requested bytes at an 8B model's peak, in a replay of the caching allocator's documented rules
(1 x 2048 tokens; 1.2 % to 2.0 % where the allocator did not hoard what it had freed). Upper bound only."""

SCRATCH_UNCERTAINTY = 0.30
"""Temporaries and activations seen on a CPU against a card: CPU kernels took 28 % more than the tensors alone in a
bf16 run (194,320 B against 151,696 B), and a card's kernels take scratch of their own. Both ways, CPU runs only."""


@dataclass(frozen=True)
class PhaseNeed:
    """What one phase needs of one card, in bytes."""

    phase: Phase
    parts: Parts
    context_bytes: int
    """Driver context and loaded kernels."""
    other_bytes: int
    """Library memory outside the allocator."""
    need_bytes: int
    need_lower_bytes: int
    need_upper_bytes: int
    """Fragmentation allowance included."""
    evidence: Evidence

    @property
    def allocated_bytes(self) -> int:
        """What the allocator hands out at the peak, the card's workspaces included."""
        return self.parts.total_bytes


def carry_to_card(prediction: PhasePrediction, measured_on: DeviceInfo, same_card: bool, card: Card) -> PhaseNeed:
    """The need of one predicted phase on `card`; `same_card` says that it was measured on that very card."""
    if same_card and measured_on.context_bytes is not None:
        return _need(prediction, prediction.parts, 0, measured_on.context_bytes, 0, prediction.evidence)
    context = card_context_bytes(card)
    context_spread = card_context_upper_bytes(card) - context + LOADED_KERNELS_UPPER_BYTES - LOADED_KERNELS_BYTES
    workspace = 0 if prediction.phase is Phase.LOAD else workspace_bytes(card) - _workspace_measured(measured_on)
    parts = _with_workspace(prediction.parts, max(workspace, 0))
    scratch = parts.temporaries_bytes + parts.activations_bytes if measured_on.kind == "cpu" else 0
    return _need(
        prediction,
        parts,
        math.ceil(scratch * SCRATCH_UNCERTAINTY),
        context + LOADED_KERNELS_BYTES,
        context_spread,
        weakest([prediction.evidence, Evidence.SCALED]),
    )


def card_context_bytes(card: Card) -> int:
    """The card's bare driver context: its catalog figure, else the top of its range, else the largest of any card."""
    known = card.context_bytes if card.context_bytes is not None else card.context_upper_bytes
    return known if known is not None else FALLBACK_CONTEXT_BYTES


def card_context_upper_bytes(card: Card) -> int:
    """The highest report of the same, for the card or for any card; never below the figure itself."""
    known = card.context_upper_bytes
    return FALLBACK_CONTEXT_UPPER_BYTES if known is None else max(known, card_context_bytes(card))


def workspace_bytes(card: Card) -> int:
    """The matrix library's workspace on a card, which torch takes through its allocator."""
    if card.vendor == "AMD":
        return ROCM_WORKSPACE_BYTES
    return _cublas_workspace(card.compute_capability)


def rules(measured_on: DeviceInfo) -> tuple[str, ...]:
    """What was replaced or assumed on the way to another card, in words, for every report."""
    said = [
        "driver context: the catalog's figure for each card (where none is known the largest of any card, "
        f"{FALLBACK_CONTEXT_BYTES // MIB} MiB, and {FALLBACK_CONTEXT_UPPER_BYTES // MIB} MiB in the upper bound), plus "
        f"{LOADED_KERNELS_BYTES / 1e6:.0f} MB of loaded kernels ({LOADED_KERNELS_UPPER_BYTES / 1e6:.0f} MB in the "
        "upper bound)",
        f"matrix library workspace: {CUBLAS_WORKSPACE_BYTES / MIB:.1f} MiB before compute capability 9.0, "
        f"{CUBLAS_WORKSPACE_HOPPER_BYTES // MIB} MiB from there on, {ROCM_WORKSPACE_BYTES // MIB} MiB on ROCm",
        f"upper bound: {FRAGMENTATION_ALLOWANCE:.0%} of allocated for fragmentation",
    ]
    if measured_on.kind == "cpu":
        said.append(
            f"measured on a CPU: temporaries and activations carry an interval of {SCRATCH_UNCERTAINTY:.0%} either "
            "way, since a card's kernels take other scratch"
        )
    return tuple(said)


def _need(
    prediction: PhasePrediction, parts: Parts, scratch: int, context: int, context_spread: int, evidence: Evidence
) -> PhaseNeed:
    added = parts.total_bytes - prediction.allocated_bytes
    upper = prediction.upper_bytes + added + scratch
    need = context + parts.total_bytes
    return PhaseNeed(
        phase=prediction.phase,
        parts=parts,
        context_bytes=context,
        other_bytes=0,
        need_bytes=need,
        need_lower_bytes=max(context + prediction.lower_bytes + added - scratch, 0),
        need_upper_bytes=context + context_spread + upper + math.ceil(upper * FRAGMENTATION_ALLOWANCE),
        evidence=evidence,
    )


def _workspace_measured(device: DeviceInfo) -> int:
    """The workspace already inside the measured temporaries."""
    if device.kind == "cuda":
        return _cublas_workspace(device.compute_capability)
    return ROCM_WORKSPACE_BYTES if device.kind == "rocm" else 0


def _cublas_workspace(compute_capability: str | None) -> int:
    modern = compute_capability is not None and float(compute_capability) >= 9.0
    return CUBLAS_WORKSPACE_HOPPER_BYTES if modern else CUBLAS_WORKSPACE_BYTES


def _with_workspace(parts: Parts, workspace: int) -> Parts:
    import msgspec

    return msgspec.structs.replace(parts, temporaries_bytes=parts.temporaries_bytes + workspace)
