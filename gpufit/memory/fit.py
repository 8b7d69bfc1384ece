"""From measured cells to a memory model: non-negative terms, tested on cells that were held out.

A phase's peak is the highest of several moments, each at its own place of the model and each a plain sum of terms;
their maximum is not. So every moment is fitted by itself, and those that are the highest at some shape are kept.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from gpufit.memory.part_fit import CLOSE_ENOUGH, Point, Problem, fit_parts, part_model
from gpufit.memory.predict import growth_of, highest_moment, predict_parts
from gpufit.memory.terms import (
    CURVES,
    Knees,
    Shape,
    first_step_of,
    further_terms,
    units_at,
)
from gpufit.profile.cells import Cell, Measured
from gpufit.profile.memory_model import Coefficient, MemoryModel, MomentModel, PartModel, PhaseModel
from gpufit.profile.peaks import ELSEWHERE, END_OF_PHASE, FIRST_STEP, Moment, Parts, Phase, PhasePeak

FEWEST_CONTEXTS = 2
FEWEST_CONCURRENCIES = 2
FEWEST_CELLS = 4
"""With fewer, growth with context cannot be told from growth with concurrency, so no model is made."""

FEWEST_CONTEXTS_FOR_A_CURVE = 3
"""With two contexts any curve is also a straight line: both are then kept in mind."""

FEWEST_CELLS_TO_HOLD_OUT = 6
"""From here on two cells can be spared to test the fit: the largest, and one from the middle."""

GOOD_ENOUGH = 0.005
"""Held-out error, as a share of what grows, up to which a model is taken as it is (assumed: half of the least error
that an interval allows for)."""

SAME_HEIGHT = 1e-6
"""Moments within this share of each other are equally high: solvers differ in the last digits (assumed)."""

_ASSUMED_MASK = Coefficient(term="per_token_squared_beyond_window", bytes_per_unit=3.0)
"""What sliding attention is assumed to add where prompts fill the window and no two contexts show it: a mask of a byte
and its copy in a 16-bit dtype, of every sequence. So did Mistral and Gemma 3 under transformers 5.24 with sdpa."""

FARTHEST = (2**22, 2**14)
"""Tokens of a sequence and sequences at once up to which moments are compared (assumed)."""

CURVED_PARTS = ("activations_bytes", "temporaries_bytes")
"""Parts in which a mask or scores can lie."""


@dataclass(frozen=True)
class Sample:
    """One phase of one measured cell."""

    shape: Shape
    peak: PhasePeak

    @property
    def moments(self) -> tuple[Moment, ...]:
        """The moments seen; the peak alone where nobody looked at its sites."""
        return self.peak.moments or (Moment(site=self.peak.site, parts=self.peak.parts),)


def fit_memory_model(cells: Sequence[Cell], attention: str, knees: Knees) -> MemoryModel | None:
    """Fit every phase of the measured cells; None when they are too few or too alike to tell terms apart."""
    shapes = [_shape(cell) for cell in cells if isinstance(cell.outcome, Measured)]
    phases = []
    for phase in (Phase.PREFILL, Phase.DECODE, Phase.FORWARD):
        samples = _samples(cells, phase)
        if _tell_terms_apart(samples):
            phases.append(_fit_phase(phase, samples, attention, knees))
    if not phases:
        return None
    return MemoryModel(
        phases=tuple(phases),
        max_cached_tokens=max(shape.cached_tokens for shape in shapes),
        max_concurrency=max(shape.concurrency for shape in shapes),
        max_total_tokens=max(shape.total_tokens for shape in shapes),
        max_new_tokens=max(shape.new_tokens for shape in shapes) or None,
        min_context_tokens=min(shape.context_tokens for shape in shapes),
    )


def without_lesser_moments(cells: Iterable[Cell], model: MemoryModel) -> tuple[Cell, ...]:
    """The cells with the moments that the model is made of, and each phase's own peak.

    The others are the highest at no shape; dropped, they change no answer, and a profile stays a tenth of the size.
    """
    whole = tuple(cells)
    for one in model.phases:
        sites = {moment.site for moment in one.moments}
        common = _common_sites(_samples(whole, one.phase))
        whole = tuple(_without_lesser_moments(cell, one.phase, sites, common) for cell in whole)
    return whole


def _without_lesser_moments(cell: Cell, phase: Phase, sites: set[str], common: set[str]) -> Cell:
    if not isinstance(cell.outcome, Measured):
        return cell
    phases = []
    for peak in cell.outcome.phases:
        if peak.phase is phase and peak.moments:
            elsewhere = [one for one in peak.moments if one.site not in common]
            kept = {*sites, peak.site}
            if ELSEWHERE in sites and elsewhere:
                kept.add(max(elsewhere, key=lambda one: one.parts.total_bytes).site)
            moments = tuple(one for one in peak.moments if one.site in kept)
            left_out = peak.moments_left_out + len(peak.moments) - len(moments)
            peak = msgspec.structs.replace(peak, moments=moments, moments_left_out=left_out)
        phases.append(peak)
    return msgspec.structs.replace(cell, outcome=msgspec.structs.replace(cell.outcome, phases=tuple(phases)))


def _tell_terms_apart(seen: Sequence[Sample] | Sequence[Point]) -> bool:
    """Whether growth with context, growth with concurrency and what is constant can be told from each other."""
    return (
        _contexts(seen) >= FEWEST_CONTEXTS
        and len({one.shape.concurrency for one in seen}) >= FEWEST_CONCURRENCIES
        and len(seen) >= FEWEST_CELLS
    )


def _window_unseen(samples: Sequence[Sample], knees: Knees) -> bool:
    """Whether too few contexts fill the sliding window to tell what begins there, a line from a square."""
    filling = {sample.shape.context_tokens for sample in samples if sample.shape.context_tokens >= knees.window}
    return knees.window > 0 and len(filling) < FEWEST_CONTEXTS


def _contexts(seen: Sequence[Sample] | Sequence[Point]) -> int:
    return len({one.shape.context_tokens for one in seen})


def _shape(cell: Cell) -> Shape:
    return Shape(cell.context_tokens, cell.new_tokens, cell.concurrency)


def _samples(cells: Sequence[Cell], phase: Phase) -> list[Sample]:
    return [
        Sample(_shape(cell), peak)
        for cell in cells
        if isinstance(cell.outcome, Measured)
        for peak in cell.outcome.phases
        if peak.phase is phase
    ]


def _hold_out(samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """(fitted, held out): the largest cell tests extrapolation, one between tests interpolation.

    The one between is at a context that no other cell has, where there is such a one: at a context that was fitted, a
    cell tests growth with sequences alone. None is held out where the rest could no longer tell the terms apart, or a
    curve from a line that all of them could.
    """
    ordered = sorted(samples, key=lambda sample: (sample.shape.total_tokens, sample.shape.concurrency))
    if len(ordered) >= FEWEST_CELLS_TO_HOLD_OUT:
        needed = min(_contexts(ordered), FEWEST_CONTEXTS_FOR_A_CURVE)
        for between in _between(ordered):
            fitted = [sample for sample in ordered[:-1] if sample is not between]
            if _tell_terms_apart(fitted) and _contexts(fitted) >= needed:
                return fitted, [between, ordered[-1]]
    return ordered, []


def _between(ordered: Sequence[Sample]) -> list[Sample]:
    """Cells that may test interpolation, best first: alone at their context, not at the shortest nor at the longest."""
    contexts = [sample.shape.context_tokens for sample in ordered]
    inner = [sample for sample in ordered[:-1] if min(contexts) < sample.shape.context_tokens < max(contexts)]
    alone = [sample for sample in inner if contexts.count(sample.shape.context_tokens) == 1]
    together = [sample for sample in inner if sample not in alone]
    return [chosen[len(chosen) // 2] for chosen in (alone, together, ordered[:-1]) if chosen]


def _fit_phase(phase: Phase, samples: Sequence[Sample], attention: str, knees: Knees) -> PhaseModel:
    fitted, held_out = _hold_out(samples)
    curved = _contexts(fitted) >= FEWEST_CONTEXTS_FOR_A_CURVE
    reads_prompts = phase is not Phase.DECODE
    points = _points_by_site(fitted)
    # Two contexts cannot tell a curve from a line. Eager attention keeps its scores, so there the curve is looked for.
    moments = _highest_ones(_fit_moments(phase, points, knees, curved or attention == "eager"), phase, samples, knees)
    alternatives: tuple[tuple[PartModel, ...], ...] = ()
    if reads_prompts and not curved:
        alternatives += tuple(_bent_moments(moments, points, phase, knees))
    if reads_prompts and _window_unseen(fitted, knees):
        alternatives += tuple(_with_assumed_mask(one.parts) for one in moments)
    misses = {id(sample): _miss(sample, moments, phase, knees) for sample in samples}
    errors = {id(sample): misses[id(sample)] / sample.peak.allocated_bytes for sample in samples}
    of_growth = {id(sample): _miss_of_growth(sample, moments, phase, knees) for sample in samples}
    return PhaseModel(
        phase=phase,
        moments=moments,
        alternatives=alternatives,
        fitted_cells=len(fitted),
        held_out_cells=len(held_out),
        worst_fitted_error=max(errors[id(sample)] for sample in fitted),
        worst_held_out_error=max((errors[id(sample)] for sample in held_out), default=None),
        worst_held_out_growth_error=max((of_growth[id(sample)] for sample in held_out), default=None),
        worst_miss_bytes=max(
            max(misses[id(sample)], round(of_growth[id(sample)] * growth_of(sample.peak.parts))) for sample in samples
        ),
        largest_growth_bytes=max(growth_of(sample.peak.parts) for sample in samples),
    )


def _bent_moments(
    moments: Sequence[MomentModel], points: Mapping[str, Sequence[Point]], phase: Phase, knees: Knees
) -> Iterator[tuple[PartModel, ...]]:
    """The moments with as much of a curve as their points leave room for, in what a curve can lie in.

    A curve takes the place of every slope; where the points rule that out, the part stays as it is.
    """
    for moment in moments:
        for curve in CURVES:
            parts = []
            for part in moment.parts:
                targets = [getattr(point.parts, part.part) for point in points[moment.site]]
                problem = Problem(part.part, points[moment.site], targets, phase, knees)
                bent, miss = problem.solve(("constant", "per_sequence", curve))
                may_bend = part.part in CURVED_PARTS and miss <= max(CLOSE_ENOUGH, problem.miss(part))
                parts.append(part_model(part.part, bent) if may_bend else part)
            yield tuple(parts)


def _with_assumed_mask(parts: Sequence[PartModel]) -> tuple[PartModel, ...]:
    held = [one for one in parts if one.part == "temporaries_bytes"] or [
        PartModel(part="temporaries_bytes", coefficients=())
    ]
    masked = msgspec.structs.replace(held[0], coefficients=(*held[0].coefficients, _ASSUMED_MASK))
    return (*(one for one in parts if one.part != masked.part), masked)


def _fit_moments(phase: Phase, points: Mapping[str, Sequence[Point]], knees: Knees, curved: bool) -> list[MomentModel]:
    further = further_terms(phase, knees, curved)
    return [
        MomentModel(site=site, parts=tuple(fit_parts(seen, phase, knees, further)))
        if _tell_terms_apart(seen)
        else _floor(site, seen)
        for site, seen in points.items()
    ]


def _floor(site: str, points: Sequence[Point]) -> MomentModel:
    """A moment seen too seldom to know its growth: never less than the most that was seen of it."""
    highest = max(points, key=lambda point: point.parts.total_bytes).parts
    sizes = {name: getattr(highest, name) for name in Parts.NAMES}
    return MomentModel(
        site=site, parts=tuple(part_model(name, {"constant": float(size)}) for name, size in sizes.items() if size)
    )


def _common_sites(samples: Sequence[Sample]) -> set[str]:
    """The sites that every sample has whose moments are all there.

    A finished profile keeps few moments, so that a site is missing from its cells says nothing.
    """
    whole = [sample for sample in samples if not sample.peak.moments_left_out] or samples
    return set.intersection(*({moment.site for moment in sample.moments} for sample in whole))


def _points_by_site(samples: Sequence[Sample]) -> dict[str, list[Point]]:
    """Every site's moment in every sample; sites that some sample lacks are taken together, the highest of them.

    Cells whose sites nobody looked at tell of no site beside cells that do, unless these are too few.
    """
    looked_at = [sample for sample in samples if sample.peak.moments]
    if looked_at and len(looked_at) < len(samples):
        told = looked_at if _tell_terms_apart(looked_at) else [_unlooked(sample) for sample in samples]
        return _points_by_site(told)
    common = _common_sites(samples)
    points: dict[str, list[Point]] = {}
    for sample in samples:
        for moment in sample.moments:
            if moment.site in common:
                seen_as = first_step_of(sample.shape) if moment.site.startswith(FIRST_STEP) else sample.shape
                points.setdefault(moment.site, []).append(Point(seen_as, moment.parts))
        others = [moment.parts for moment in sample.moments if moment.site not in common]
        if others:
            highest = max(others, key=lambda parts: parts.total_bytes)
            points.setdefault(ELSEWHERE, []).append(Point(sample.shape, highest))
    return points


def _unlooked(sample: Sample) -> Sample:
    return Sample(sample.shape, msgspec.structs.replace(sample.peak, moments=(), site=""))


def _highest_ones(
    moments: Sequence[MomentModel], phase: Phase, samples: Sequence[Sample], knees: Knees
) -> tuple[MomentModel, ...]:
    """The moments that are the highest at some shape near or far, and the phase's end."""
    new_tokens = max(sample.shape.new_tokens for sample in samples)
    kept = {END_OF_PHASE, ELSEWHERE, *(sample.peak.site for sample in samples)}
    shortest = min(sample.shape.context_tokens for sample in samples)
    for shape in [*(sample.shape for sample in samples), *_far_shapes(shortest, new_tokens)]:
        units = units_at(shape, phase, knees)
        site, highest = highest_moment(moments, units)
        _, already = highest_moment([one for one in moments if one.site in kept], units)
        # Moments that are as high but for the rounding of floats do not both have to be there.
        if already.total_bytes < highest.total_bytes * (1 - SAME_HEIGHT):
            kept.add(site)
    return tuple(one for one in moments if one.site in kept)


def _far_shapes(shortest: int, new_tokens: int) -> Iterator[Shape]:
    """Shapes from the shortest context seen up to FARTHEST, half a doubling apart, with as many new tokens as were seen
    and with as many as prompt. For shorter contexts the bounds are those of the shortest."""
    longest, most = FARTHEST
    halves = range(2 * (longest // shortest).bit_length() + 1)
    contexts = [round(shortest * 2 ** (half / 2)) for half in halves]
    concurrencies = [2**power for power in range(most.bit_length())]
    for context, concurrency in itertools.product(contexts, concurrencies):
        yield Shape(context, new_tokens, concurrency)
        if new_tokens > 1:
            yield Shape(context, context, concurrency)


def _miss(sample: Sample, moments: Sequence[MomentModel], phase: Phase, knees: Knees) -> int:
    """How far the prediction of one sample's `allocated` is off, in bytes."""
    _, predicted = highest_moment(moments, units_at(sample.shape, phase, knees))
    return abs(predicted.total_bytes - sample.peak.allocated_bytes)


def _miss_of_growth(sample: Sample, moments: Sequence[MomentModel], phase: Phase, knees: Knees) -> float:
    """The worst share of what grew by which the sample's peak or one of its moments was missed.

    Moments that are not the highest here are so elsewhere, and are tested here all the same; what stays at the end of
    the phase is no candidate for its peak.
    """
    units = units_at(sample.shape, phase, knees)
    modelled = {one.site: one for one in moments if one.site not in (END_OF_PHASE, ELSEWHERE)}
    shares = [_miss(sample, moments, phase, knees) / max(growth_of(sample.peak.parts), 1)]
    for seen in sample.moments:
        model = modelled.get(seen.site)
        if model is not None:
            off = predict_parts(model.parts, units.of(seen.site)).total_bytes - seen.parts.total_bytes
            shares.append(abs(off) / max(growth_of(seen.parts), 1))
    return max(shares)
