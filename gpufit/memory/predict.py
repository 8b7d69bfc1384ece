"""A profile asked about a shape: parts, a point and an interval for every phase, with the evidence.

Inside the domain that was measured a prediction keeps the profile's evidence; outside it says `scaled` and the
interval widens with the distance. A profile too small for a model answers for the cells it measured, and no others;
one with a model always answers from it, so that more context or more sequences never seem to need less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from gpufit.errors import UsageError
from gpufit.memory.terms import TERMS, Shape
from gpufit.profile.record import (
    Evidence,
    Measured,
    MemoryModel,
    PartModel,
    Parts,
    Phase,
    PhaseModel,
    PhasePeak,
    Profile,
    weakest,
)

SMALLEST_GROWTH_ERROR = 0.005
"""No fit is trusted further than this, however well it met the cells it was tested on (assumed)."""

ERROR_SAFETY_FACTOR = 2.0
"""The interval is this many times the worst error seen, since a few cells do not show the worst (assumed)."""


@dataclass(frozen=True)
class PhasePrediction:
    """What one phase allocates at a shape."""

    phase: Phase
    parts: Parts
    lower_bytes: int
    """Lower bound of `allocated`."""
    upper_bytes: int
    """Upper bound of `allocated`."""
    evidence: Evidence

    @property
    def allocated_bytes(self) -> int:
        """The point: the sum of the parts."""
        return self.parts.total_bytes


def predict(profile: Profile, shape: Shape) -> tuple[PhasePrediction, ...]:
    """Every phase of the profile at a shape, `load` first.

    Raises UsageError when the profile holds neither that cell nor a model that could answer.
    """
    load = _exact(profile.load)
    if profile.memory_model is None:
        measured = _measured_phases(profile, shape)
        if measured is not None:
            return (load, *(_exact(peak) for peak in measured))
        raise UsageError(
            f"the profile has too few measured cells ({len(profile.measured_cells)}) to answer for context "
            f"{shape.context_tokens} at concurrency {shape.concurrency}: measure at least two contexts and two "
            "concurrencies (gpufit profile --resume with more of each)"
        )
    model = profile.memory_model
    return (load, *(_predict_phase(profile, model, one, shape) for one in model.phases))


def predict_parts(models: Sequence[PartModel], phase: Phase, shape: Shape, window: int | None) -> Parts:
    """The parts of a phase at a shape, each the sum of its terms, rounded to whole bytes."""
    tokens = shape.tokens_in(phase)
    sizes = {
        model.part: round(
            math.fsum(
                one.bytes_per_unit * TERMS[one.term](shape.concurrency, tokens, window or 0)
                for one in model.coefficients
            )
        )
        for model in models
    }
    return Parts(**sizes)


def growth_of(parts: Parts) -> int:
    """What grows with the workload: everything but weights and buffers, in bytes."""
    return parts.total_bytes - parts.weights_bytes - parts.buffers_bytes


def distance_outside(model: MemoryModel, shape: Shape) -> float:
    """How far a shape lies beyond what was measured: 1 inside, else the largest ratio of its sizes to the domain's."""
    return max(
        1.0,
        shape.cached_tokens / model.max_cached_tokens,
        shape.total_tokens / model.max_total_tokens,
        shape.concurrency / model.max_concurrency,
    )


def _measured_phases(profile: Profile, shape: Shape) -> tuple[PhasePeak, ...] | None:
    key = (shape.context_tokens, shape.new_tokens, shape.concurrency)
    for cell in profile.measured_cells:
        if cell.key == key and isinstance(cell.outcome, Measured):
            return cell.outcome.phases
    return None


def _exact(peak: PhasePeak) -> PhasePrediction:
    return PhasePrediction(
        phase=peak.phase,
        parts=peak.parts,
        lower_bytes=peak.allocated_bytes,
        upper_bytes=peak.allocated_bytes,
        evidence=peak.evidence,
    )


def _predict_phase(profile: Profile, model: MemoryModel, one: PhaseModel, shape: Shape) -> PhasePrediction:
    parts = predict_parts(one.parts, one.phase, shape, profile.model.sliding_window)
    distance = distance_outside(model, shape)
    error = ERROR_SAFETY_FACTOR * max(one.worst_growth_error, SMALLEST_GROWTH_ERROR) * (1 + math.log2(distance))
    margin = math.ceil(growth_of(parts) * error)
    return PhasePrediction(
        phase=one.phase,
        parts=parts,
        lower_bytes=max(parts.total_bytes - margin, parts.weights_bytes + parts.buffers_bytes),
        upper_bytes=parts.total_bytes + margin,
        evidence=weakest([profile.evidence, Evidence.SCALED]) if distance > 1 else profile.evidence,
    )
