"""The curve document: what each phase allocates along one axis of a scenario, and where that crosses each card.

JSON keys are these fields' names; sizes are whole bytes, places are tokens or sequences, and what is not known is null.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpufit import __version__
from gpufit.advice.curve import (
    LOWEST_CONTEXT,
    Axis,
    Crossing,
    ceiling_of,
    crossing,
    domain,
    first_place,
    last_place,
    places,
)
from gpufit.advice.limits import CEILING
from gpufit.advice.verdict import Verdict
from gpufit.catalog.record import Card
from gpufit.memory.adapt import Predicts
from gpufit.memory.carry import carrier_to
from gpufit.memory.predict import PhasePrediction
from gpufit.memory.terms import Shape
from gpufit.profile.base import Record
from gpufit.profile.cells import Cell, Measured, OutOfMemory
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.evidence import Evidence, weakest
from gpufit.profile.peaks import Phase
from gpufit.report.document import CardRow, FitDocument, Scenario

SCHEMA_VERSION = 1


class CurvePoint(Record, frozen=True, kw_only=True):
    """One phase at one place."""

    at: int
    """Tokens or sequences."""
    allocated_bytes: int
    allocated_lower_bytes: int
    allocated_upper_bytes: int
    evidence: Evidence


class CurveLine(Record, frozen=True, kw_only=True):
    """One phase along the axis."""

    phase: Phase
    points: tuple[CurvePoint, ...]
    """From left to right."""


class CurveCard(Record, frozen=True, kw_only=True):
    """One card's ceiling, and where the curve crosses it. Places are the largest at which one card holds everything, 0
    where not even the first does."""

    card: str
    """The card's id in the catalog."""
    name: str
    verdict: Verdict
    """At the scenario."""
    capacity_bytes: int | None
    ceiling_bytes: int | None
    """What the card leaves the allocator in every phase but loading: capacity less driver context, library workspace
    and whatever else is the card's own."""
    surely_up_to: int | None
    """By the upper bound of the need; null where nothing is promised."""
    estimate_up_to: int | None
    """By the point estimate; null where the profile has no memory model."""
    possibly_up_to: int | None
    """By the lower bound: more than this surely does not fit."""
    evidence: Evidence


class CurveCell(Record, frozen=True, kw_only=True):
    """A cell that was run at a place of the curve."""

    at: int
    outcome: str
    """`measured` or `out_of_memory`."""
    allocated_bytes: int | None
    """At the highest peak of its phases; null where it ran out of memory."""
    evidence: Evidence
    """That of the run."""


class CurveDocument(Record, frozen=True, kw_only=True):
    """Memory against context or concurrency, all else as in the scenario."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str = __version__
    evidence: Evidence
    """The weakest in the document."""
    profile: str
    """The file it was read from."""
    measured_on: str
    model: ModelInfo
    engine: Engine
    holds_for: str
    axis: Axis
    unit: str
    """What every place of the axis counts: `tokens` of context, or `sequences` at once."""
    scenario: Scenario
    """Where on the curve the question stands."""
    domain_from: int | None
    """The first place within what was run; null where none is, and for arithmetic, which has no such place."""
    domain_to: int | None
    limit: int | None
    """Where the axis ends: the model's own position limit; null where only memory ends it."""
    lines: tuple[CurveLine, ...]
    cells: tuple[CurveCell, ...]
    cards: tuple[CurveCard, ...]
    notes: tuple[str, ...]

    @property
    def at(self) -> int:
        """Where on the axis the scenario stands."""
        return self.scenario.context_tokens if self.axis is Axis.CONTEXT else self.scenario.concurrency


def build_curve_document(
    predictor: Predicts, document: FitDocument, axis: Axis, cards: Sequence[tuple[Card, bool]]
) -> CurveDocument:
    """The curve through a document's scenario, with these of its cards; each with whether the profile was measured on
    that very card."""
    profile, scenario = predictor.profile, document.scenario
    shape = Shape(scenario.context_tokens, scenario.new_tokens, scenario.concurrency)
    ran = [cell for cell in profile.cells if _on_the_curve(cell, shape, axis)]
    within = domain(profile, shape, axis)
    rows = {row.card: row for row in document.cards}
    crossed = [(rows[card.id], card, same, crossing(predictor, card, shape, axis, same)) for card, same in cards]
    named = [axis.of(shape), *(axis.of(Shape(*cell.key)) for cell in ran), *(within or ())]
    last = last_place(profile, axis, shape.new_tokens)
    if profile.memory_model is None:
        chosen: tuple[int, ...] = tuple(
            sorted({axis.of(Shape(*cell.key)) for cell in ran if isinstance(cell.outcome, Measured)})
        )
    else:
        found = [place for *_, one in crossed if one is not None for place in (one.estimate, one.possibly)]
        low, high = _reach(named, found, first_place(profile, axis), last, axis)
        chosen = places(low, high, named)
    predicted = [(place, predictor.at(axis.at(shape, place))) for place in chosen]
    lines = tuple(_lines(predicted))
    return CurveDocument(
        evidence=weakest([document.evidence, *(point.evidence for line in lines for point in line.points)]),
        profile=document.profile,
        measured_on=document.measured_on,
        model=document.model,
        engine=document.engine,
        holds_for=document.holds_for,
        axis=axis,
        unit="tokens" if axis is Axis.CONTEXT else "sequences",
        scenario=scenario,
        domain_from=within[0] if within else None,
        domain_to=within[1] if within else None,
        limit=last,
        lines=lines,
        cells=tuple(_cell(cell, axis, profile.evidence) for cell in ran),
        cards=tuple(_card(predictor, row, card, same, one, axis) for row, card, same, one in crossed),
        notes=document.notes,
    )


def _on_the_curve(cell: Cell, shape: Shape, axis: Axis) -> bool:
    """Whether a cell was run with all but its place on the axis as in the scenario, and came to an end or a limit."""
    ended = isinstance(cell.outcome, Measured | OutOfMemory)
    return ended and axis.at(Shape(*cell.key), 1) == axis.at(shape, 1)


def _reach(named: Sequence[int], crossed: Sequence[int], first: int, last: int | None, axis: Axis) -> tuple[int, int]:
    """The ends of what is drawn: all places that have a name, and the crossings twice over."""
    low = min([*named, LOWEST_CONTEXT if axis is Axis.CONTEXT else 1])
    high = max([*named, 4 * low, *(2 * place for place in crossed if place < CEILING)])
    return max(low, first), max(high if last is None else min(high, last), first)


def _lines(predicted: Sequence[tuple[int, Sequence[PhasePrediction]]]) -> Iterator[CurveLine]:
    for phase in Phase:
        points = tuple(
            CurvePoint(
                at=place,
                allocated_bytes=one.allocated_bytes,
                allocated_lower_bytes=one.lower_bytes,
                allocated_upper_bytes=one.upper_bytes,
                evidence=one.evidence,
            )
            for place, phases in predicted
            for one in phases
            if one.phase is phase
        )
        if points:
            yield CurveLine(phase=phase, points=points)


def _cell(cell: Cell, axis: Axis, evidence: Evidence) -> CurveCell:
    measured = isinstance(cell.outcome, Measured)
    peaks = [peak.allocated_bytes for peak in cell.outcome.phases] if isinstance(cell.outcome, Measured) else []
    return CurveCell(
        at=axis.of(Shape(*cell.key)),
        outcome="measured" if measured else "out_of_memory",
        allocated_bytes=max(peaks, default=None),
        evidence=evidence,
    )


def _card(predictor: Predicts, row: CardRow, card: Card, same: bool, found: Crossing | None, axis: Axis) -> CurveCard:
    profile = predictor.profile
    carrier = carrier_to(card, profile, same, profile.workload.tensor_parallel_size)
    return CurveCard(
        card=row.card,
        name=row.name,
        verdict=row.verdict,
        capacity_bytes=row.capacity_bytes,
        ceiling_bytes=None if row.capacity_bytes is None else ceiling_of(carrier, row.capacity_bytes),
        surely_up_to=row.max_context_tokens if axis is Axis.CONTEXT else row.max_concurrency,
        estimate_up_to=None if found is None else found.estimate,
        possibly_up_to=None if found is None else found.possibly,
        evidence=row.evidence,
    )
