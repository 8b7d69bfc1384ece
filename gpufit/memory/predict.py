"""A profile asked about a shape: parts, a point and an interval for every phase, with the evidence.

Inside the domain that was measured a prediction keeps the profile's evidence; outside it says `scaled` and the
interval widens with the distance. A profile too small for a model answers for the cells it measured, and no others;
one with a model always answers from it, so that more context or more sequences never seem to need less.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from gpufit.errors import UsageError
from gpufit.memory.terms import Knees, Shape, ShapeUnits, Units, units_at
from gpufit.profile.cells import Measured
from gpufit.profile.evidence import Evidence, weakest
from gpufit.profile.memory_model import MemoryModel, MomentModel, PartModel, PhaseModel
from gpufit.profile.peaks import Parts, Phase, PhasePeak
from gpufit.profile.record import Profile
from gpufit.units import counted

SMALLEST_GROWTH_ERROR = 0.01
"""No fit of what grows is trusted further than this, however well it met the cells it was tested on (assumed)."""

UNTESTED_SCRATCH_ERROR = 0.30
"""What rules that no run has tested say of temporaries and activations is trusted to this share, either way (assumed:
the kernels of a card take scratch that no arithmetic shows; `benchmarks/accuracy.py` counts the rows it holds for)."""

ERROR_SAFETY_FACTOR = 2.0
"""The interval is this many times the worst error seen, since a few cells do not show the worst (assumed)."""

UNTESTED_GROWTH_ERROR = ERROR_SAFETY_FACTOR * SMALLEST_GROWTH_ERROR
"""What such rules say of all that grows is trusted to this share, either way."""


@dataclass(frozen=True)
class MomentPrediction:
    """What one moment of a phase allocates at a shape."""

    parts: Parts
    lower_bytes: int
    """Lower bound; that of a moment which the cells merely do not rule out is 0."""
    upper_bytes: int


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
    site: str = ""
    """Where in the model the peak lies; empty where nobody looked."""
    moments: tuple[MomentPrediction, ...] = ()
    """Every moment that may be the peak, on this device or on another that takes more for some parts of it; the highest
    of their bounds are the phase's."""

    @property
    def allocated_bytes(self) -> int:
        """The point: the sum of the parts."""
        return self.parts.total_bytes

    @property
    def moments_as_upper_bounds(self) -> tuple[MomentPrediction, ...]:
        """The moments for a question that needs no more than this one, whose lower bounds they do not bear on."""
        return tuple(replace(moment, lower_bytes=0) for moment in self.moments)


class Predictor:
    """A profile's answers, each shape computed once: judging a catalog asks for the same shapes again and again."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self._known: dict[Shape, tuple[PhasePrediction, ...]] = {}

    def at(self, shape: Shape) -> tuple[PhasePrediction, ...]:
        """What `predict` says of a shape. Raises UsageError as it does."""
        found = self._known.get(shape)
        if found is None:
            found = self._known[shape] = predict(self.profile, shape)
        return found


def predict(profile: Profile, shape: Shape) -> tuple[PhasePrediction, ...]:
    """Every phase of the profile at a shape, `load` first.

    Raises UsageError when the profile holds neither that cell nor a model that could answer.
    """
    _check_decode_was_seen(profile, shape)
    if profile.memory_model is None:
        seen = observed(profile, shape)
        if seen is not None:
            return seen
        raise UsageError(_no_answer(profile, shape))
    model = profile.memory_model
    return (_exact(profile.load), *(_predict_phase(profile, model, one, shape) for one in model.phases))


def _no_answer(profile: Profile, shape: Shape) -> str:
    """Why a profile without a memory model does not answer, in words."""
    many, asked = len(profile.measured_cells), f"context {shape.context_tokens} at concurrency {shape.concurrency}"
    if profile.complete:
        return f"the profile has too few measured cells ({many}) to answer for {asked}: {_more_cells(profile)}"
    answer = f"{counted(many, 'cell')} {'answers' if many == 1 else 'answer'}"
    return f"the profile is unfinished: only its {answer} so far, not {asked}; gpufit profile --resume finishes it"


def _more_cells(profile: Profile) -> str:
    """How a profile of too few cells comes to more."""
    if profile.evidence is Evidence.SIMULATED:
        return "simulate at least two contexts and two concurrencies (gpufit simulate, with more of each)"
    return "measure at least two contexts and two concurrencies (gpufit profile --resume with more of each)"


def observed(profile: Profile, shape: Shape) -> tuple[PhasePrediction, ...] | None:
    """Every phase as it was where the profile ran this very cell, its bounds no wider than that; None where it did
    not."""
    phases = _measured_phases(profile, shape)
    return None if phases is None else (_exact(profile.load), *(_exact(peak) for peak in phases))


def _check_decode_was_seen(profile: Profile, shape: Shape) -> None:
    """A profile without a decode phase would pass over what new tokens take, and so promise too much."""
    model = profile.memory_model
    if model is None or not profile.model.generates or shape.new_tokens < 2:
        return
    if all(one.phase is not Phase.DECODE for one in model.phases):
        raise UsageError(
            f"the profile saw no decoding, so it cannot answer for {shape.new_tokens} new tokens: ask for 1, or "
            "measure again with more (gpufit profile --new-tokens 8)"
        )


def predict_parts(models: Sequence[PartModel], units: Units) -> Parts:
    """The parts of a moment, each the sum of its terms, rounded to whole bytes."""
    return Parts(**{model.part: round(_size(model, units)) for model in models})


def _size(model: PartModel, units: Units) -> float:
    return math.fsum(one.bytes_per_unit * units[one.term] for one in model.coefficients)


def moments_at(moments: Sequence[MomentModel], units: ShapeUnits) -> list[tuple[str, Parts]]:
    """(site, parts) of every modelled moment."""
    return [(moment.site, predict_parts(moment.parts, units.of(moment.site))) for moment in moments]


def highest_moment(moments: Sequence[MomentModel], units: ShapeUnits) -> tuple[str, Parts]:
    """(site, parts) of the moment that is the phase's peak; nothing at all where no moment is modelled."""
    return _highest(moments_at(moments, units))


def _highest(moments: Sequence[tuple[str, Parts]]) -> tuple[str, Parts]:
    return max(moments, key=lambda moment: moment[1].total_bytes, default=("", Parts()))


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
        shape.new_tokens / (model.max_new_tokens or max(shape.new_tokens, 1)),
    )


def is_inside(model: MemoryModel, shape: Shape) -> bool:
    """Whether a shape lies within what was measured, neither beyond it nor below."""
    return distance_outside(model, shape) == 1 and shape.context_tokens >= model.min_context_tokens


def untested_margin_bytes(parts: Parts) -> int:
    """Half the width of the interval of what rules say and no run has tested."""
    scratch = parts.temporaries_bytes + parts.activations_bytes
    return math.ceil(UNTESTED_GROWTH_ERROR * growth_of(parts) + UNTESTED_SCRATCH_ERROR * scratch)


def untested_margin_share() -> float:
    """The same for a byte of scratch more."""
    return UNTESTED_GROWTH_ERROR + UNTESTED_SCRATCH_ERROR


def margin_bytes(one: PhaseModel, growth: int, distance: float) -> int:
    """Half the width of the interval: the worst miss seen, in proportion where more grows than was seen to grow.

    Doubling the distance from what was measured adds the same again (a rule of gpufit's own: assumed).
    """
    miss = max(one.worst_miss_bytes, SMALLEST_GROWTH_ERROR * one.largest_growth_bytes)
    reach = max(1.0, growth / max(one.largest_growth_bytes, 1))
    return math.ceil(ERROR_SAFETY_FACTOR * miss * reach * (1 + math.log2(distance)))


def least_growth_bytes(growth: int, margin: int, distance: float) -> int:
    """The lower bound of what grows: as far below the point as the upper bound is above.

    Beyond what was measured it is below by the same ratio instead; the margin grows faster than the point there, and
    taken off it a question far enough away would seem to need nothing at all.
    """
    if distance > 1:
        return growth * growth // max(growth + margin, 1)
    return max(growth - margin, 0)


def _measured_phases(profile: Profile, shape: Shape) -> tuple[PhasePeak, ...] | None:
    key = (shape.context_tokens, shape.new_tokens, shape.concurrency)
    for cell in profile.measured_cells:
        if cell.key == key and isinstance(cell.outcome, Measured):
            return cell.outcome.phases
    return None


def _exact(peak: PhasePeak) -> PhasePrediction:
    size = peak.allocated_bytes
    return PhasePrediction(
        phase=peak.phase,
        parts=peak.parts,
        lower_bytes=size,
        upper_bytes=size,
        evidence=peak.evidence,
        site=peak.site,
        moments=tuple(
            MomentPrediction(parts, parts.total_bytes, parts.total_bytes)
            for parts in [peak.parts, *(moment.parts for moment in peak.moments)]
        ),
    )


def _predict_phase(profile: Profile, model: MemoryModel, one: PhaseModel, shape: Shape) -> PhasePrediction:
    if model.untested:
        return predict_untested(one, shape, Knees.of(profile), profile.evidence)
    units = units_at(shape, one.phase, Knees.of(profile))
    at = moments_at(one.moments, units)
    site, parts = _highest(at)
    distance = distance_outside(model, shape)
    moments = tuple(_predict_moments(one, at, units, distance))
    lowest_context = replace(shape, context_tokens=max(shape.context_tokens, model.min_context_tokens))
    if lowest_context != shape:
        # Kernels may work otherwise on prompts shorter than any that was seen, so no less is promised for them.
        moments += _predict_phase(profile, model, one, lowest_context).moments_as_upper_bounds
    inside = is_inside(model, shape)
    evidence = profile.evidence if inside else weakest([profile.evidence, Evidence.SCALED])
    return _of_moments(one.phase, site, parts, moments, evidence)


def predict_untested(one: PhaseModel, shape: Shape, knees: Knees, evidence: Evidence) -> PhasePrediction:
    """What an engine's rules say of a phase at a shape; no run has tested them, so they reach as far as one likes."""
    units = units_at(shape, one.phase, knees)
    at = moments_at(one.moments, units)
    site, parts = _highest(at)
    return _of_moments(one.phase, site, parts, tuple(_untested_moments(one, at, units)), evidence)


def _of_moments(
    phase: Phase, site: str, parts: Parts, moments: tuple[MomentPrediction, ...], evidence: Evidence
) -> PhasePrediction:
    return PhasePrediction(
        phase=phase,
        parts=parts,
        lower_bytes=max((moment.lower_bytes for moment in moments), default=0),
        upper_bytes=max((moment.upper_bytes for moment in moments), default=0),
        evidence=evidence,
        site=site,
        moments=moments,
    )


def _untested_moments(
    one: PhaseModel, at: Sequence[tuple[str, Parts]], units: ShapeUnits
) -> Iterator[MomentPrediction]:
    for _, parts in at:
        margin = untested_margin_bytes(parts)
        yield MomentPrediction(parts, parts.total_bytes - margin, parts.total_bytes + margin)
    for alternative in one.alternatives:
        parts = predict_parts(alternative, units.usual)
        yield MomentPrediction(parts, 0, parts.total_bytes + untested_margin_bytes(parts))


def _predict_moments(
    one: PhaseModel, at: Sequence[tuple[str, Parts]], units: ShapeUnits, distance: float
) -> Iterator[MomentPrediction]:
    for _, parts in at:
        growth = growth_of(parts)
        margin = margin_bytes(one, growth, distance)
        least = least_growth_bytes(growth, margin, distance)
        yield MomentPrediction(parts, parts.total_bytes - growth + least, parts.total_bytes + margin)
    for alternative in one.alternatives:
        parts = predict_parts(alternative, units.usual)
        yield MomentPrediction(parts, 0, parts.total_bytes + margin_bytes(one, growth_of(parts), distance))
