"""A curve as tables: where it crosses each card, every phase at every place, and the cells that ran along it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from gpufit.advice.curve import Axis
from gpufit.profile.peaks import Phase
from gpufit.report.asked import asked_of
from gpufit.report.cells import SYMBOLS
from gpufit.report.curve import CurveCard, CurveCell, CurveDocument, CurvePoint
from gpufit.report.curve_chart import curve_chart
from gpufit.report.curve_text import UNITS, crossing_sentence, domain_sentence, place_text, promised
from gpufit.report.tabular import Column, Table, TabularReport, size_text, table_of


def curve_report(document: CurveDocument, near: Sequence[CurveCard], selected: str | None) -> TabularReport:
    """The curve with the ceilings of `near` drawn, that of the selected card with its bounds."""
    chosen = [card for card in document.cards if card.card == selected]
    points = [point for line in document.lines for point in line.points]
    return TabularReport(
        kind="curve",
        title=f"{document.model.name}: memory against {UNITS[document.axis]}",
        document=document,
        question=asked_of(document),
        sentences=(
            *(f"{crossing_sentence(document, card)} ({card.evidence})" for card in chosen),
            f"against {UNITS[document.axis]}: {domain_sentence(document)}",
        ),
        tables=(_cards(document), _points(document), _cells(document)),
        notes=document.notes,
        chart=curve_chart(document, near, selected) if points else None,
    )


def _cards(document: CurveDocument) -> Table:
    unit = UNITS[document.axis]
    columns: tuple[Column[CurveCard], ...] = (
        Column("card", "card", lambda one: one.card, words=True),
        Column("name", "name", lambda one: one.name, words=True, detail=True),
        Column("verdict", "verdict", lambda one: str(one.verdict), _verdict, words=True),
        Column("capacity_bytes", "capacity", lambda one: one.capacity_bytes, size_text),
        Column("ceiling_bytes", "ceiling", lambda one: one.ceiling_bytes, size_text),
        _at(document, lambda one: one.surely_up_to, "surely_up_to", "surely to", _not_surely),
        _at(document, lambda one: one.estimate_up_to, "estimate_up_to", "estimate"),
        _at(document, lambda one: one.possibly_up_to, "possibly_up_to", "at most"),
        Column("evidence", "evidence", lambda one: str(one.evidence), words=True),
    )
    caption = (
        f"How many {unit} one card holds: surely by the upper bound of the need, by its estimate, and at most by its "
        "lower bound. The ceiling is what a card leaves the allocator."
    )
    return table_of("cards", "Where the curve crosses each card", columns, document.cards, caption)


def _verdict(value: Any) -> str:
    return SYMBOLS[value]


class _Place(NamedTuple):
    phase: Phase
    point: CurvePoint


def _points(document: CurveDocument) -> Table:
    columns: tuple[Column[_Place], ...] = (
        Column("phase", "phase", lambda one: str(one.phase), words=True),
        _at(document, lambda one: one.point.at),
        Column("allocated_bytes", "allocated", lambda one: one.point.allocated_bytes, size_text),
        Column("allocated_lower_bytes", "lower", lambda one: one.point.allocated_lower_bytes, size_text),
        Column("allocated_upper_bytes", "upper", lambda one: one.point.allocated_upper_bytes, size_text),
        Column("evidence", "evidence", lambda one: str(one.point.evidence), words=True),
    )
    rows = [_Place(line.phase, point) for line in document.lines for point in line.points]
    caption = "What each phase allocates at its peak, with the interval; all but the place as in the question."
    return table_of("points", "Every phase at every place", columns, rows, caption, detail=True)


def _cells(document: CurveDocument) -> Table:
    columns: tuple[Column[CurveCell], ...] = (
        _at(document, lambda one: one.at),
        Column("outcome", "outcome", lambda one: one.outcome, lambda value: str(value).replace("_", " "), words=True),
        Column("allocated_bytes", "allocated", lambda one: one.allocated_bytes, size_text),
        Column("evidence", "evidence", lambda one: str(one.evidence), words=True),
    )
    caption = "At the highest peak of its phases; a blank where it ran out of memory."
    return table_of("cells", "Cells that ran along the curve", columns, document.cells, caption)


def _not_surely(card: CurveCard) -> str:
    return _not_known(card) if promised(card) else "not promised"


def _not_known(row: object) -> str:
    return "not known"


def _at(
    document: CurveDocument,
    value: Callable[[Any], int | None],
    key: str = "at",
    title: str = "",
    missing: Callable[[Any], str] = _not_known,
) -> Column[Any]:
    """A place on the axis; what it counts is in its key, and in its title where that says nothing else."""
    unit, words = ("context_tokens", "context") if document.axis is Axis.CONTEXT else ("concurrency", "at once")
    return Column(f"{key}_{unit}", title or words, value, lambda place: place_text(document, place), missing=missing)
