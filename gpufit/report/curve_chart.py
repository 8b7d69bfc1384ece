"""A curve as a chart: both axes in doublings, a line a phase, a few cards' ceilings. The terminal draws the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from gpufit.advice.curve import Axis
from gpufit.advice.limits import CEILING
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase
from gpufit.report.chart import Chart, ChartAxis, ChartLevel, ChartLine, ChartMark
from gpufit.report.curve import CurveCard, CurveDocument, CurveLine, CurvePoint
from gpufit.report.curve_text import UNITS, distinct_ceilings, place_text
from gpufit.units import format_size, format_tokens

PHASE_COLOURS: dict[Phase, str] = {
    Phase.LOAD: "#8b95a7",
    Phase.PREFILL: "#5b9bf8",
    Phase.DECODE: "#c583e8",
    Phase.FORWARD: "#5b9bf8",
}
"""Beside the phase's name at its line."""

ESTIMATE, SURELY, POSSIBLY, RAN, FULL = "\u00d7", "[", "]", "o", "✗"

_COLUMNS, _ROWS = 110, 24
"""Room for ticks on a page and in a workbook, in columns and rows of a terminal."""


def curve_chart(document: CurveDocument, near: Sequence[CurveCard], selected: str | None) -> Chart:
    """The curve with the ceilings of `near`; that of the selected card has its bounds, too."""
    ceilings = [(size, cards) for size, cards in distinct_ceilings(near) if size > 0]
    x_range = x_doublings(document, near)
    y_range = y_doublings(document, [size for size, _ in ceilings], 2 ** x_range[1])
    shown = ", ".join(card.card for _, cards in ceilings for card in cards)
    against = UNITS[document.axis]
    marks = [mark for card in near for mark in crossing_marks(document, card, card.card == selected)]
    return Chart(
        title=f"Memory against {against}",
        words=f"What each phase allocates at its peak against {against}; across it ceilings:  {shown or 'no card'}.",
        x=_axis(against, x_range, x_ticks(document, x_range, _COLUMNS)),
        y=_axis("allocated (GiB)", y_range, y_ticks(y_range, _ROWS)),
        levels=tuple(_level(size, cards, selected) for size, cards in ceilings),
        lines=tuple(found for line in document.lines for found in _lines(document, line, 2 ** x_range[1])),
        marks=(*(mark for mark in marks if mark.x <= 2 ** x_range[1]), *cell_marks(document)),
        here=document.at,
    )


def _axis(title: str, range_: tuple[float, float], ticks: Iterator[tuple[float, str]]) -> ChartAxis:
    low, high = range_
    return ChartAxis(title, 2**low, 2**high, tuple((2**at, text) for at, text in ticks), doublings=True)


def _level(size: int, cards: Sequence[CurveCard], selected: str | None) -> ChartLevel:
    named = ", ".join(card.card for card in cards)
    return ChartLevel(f"{named}: {format_size(size)}", size, any(card.card == selected for card in cards))


def _lines(document: CurveDocument, line: CurveLine, last: float) -> Iterator[ChartLine]:
    for beyond, points in stretches(document, line):
        shown = tuple((point.at, point.allocated_bytes) for point in points if point.at <= last)
        if shown:
            yield ChartLine(str(line.phase), shown, PHASE_COLOURS[line.phase], dotted=beyond)


def stretches(document: CurveDocument, line: CurveLine) -> list[tuple[bool, tuple[CurvePoint, ...]]]:
    """A line in pieces that begin where the one before ends: (False, what was run or follows from rules alone), (True,
    what is carried beyond that, or worked out for another precision)."""
    found: list[tuple[bool, list[CurvePoint]]] = []
    for point in line.points:
        if not point.allocated_bytes:
            continue
        beyond = point.evidence.weakness >= Evidence.SCALED.weakness
        if not found or found[-1][0] is not beyond:
            found.append((beyond, [found[-1][1][-1]] if found else []))
        found[-1][1].append(point)
    return [(beyond, tuple(points)) for beyond, points in found]


def crossing_marks(document: CurveDocument, card: CurveCard, selected: bool) -> Iterator[ChartMark]:
    """Where the curve crosses a card's ceiling, of the selected one with the bracket around it; nothing where the
    model's own positions end it."""
    if card.ceiling_bytes is None or card.ceiling_bytes <= 0 or card.estimate_up_to is None:
        return  # without an estimate no crossing is known, and one end of a bracket alone would look like one
    bracket = [(card.surely_up_to, SURELY, "surely up to"), (card.possibly_up_to, POSSIBLY, "surely not beyond")]
    estimate = (card.estimate_up_to, ESTIMATE, "by the estimate up to")
    for place, sign, words in [*(bracket if selected else []), estimate]:
        if place and place != document.limit:
            title = f"{card.card}: {words} {place_text(document, place)}"
            yield ChartMark(title, place, card.ceiling_bytes, sign, words)


def cell_marks(document: CurveDocument) -> Iterator[ChartMark]:
    """What was run: where it peaked, or that it ran out of memory there, on the highest line."""
    for cell in document.cells:
        size, place = cell.allocated_bytes, place_text(document, cell.at)
        if size is not None:
            yield ChartMark(f"a run at {place}: {format_size(size)}", cell.at, size, RAN, "a run's peak")
            continue
        points = (point for line in document.lines for point in line.points if point.at == cell.at)
        highest = max((point.allocated_bytes for point in points), default=0)
        if highest:
            yield ChartMark(f"out of memory at {place}", cell.at, highest, FULL, "out of memory")


def x_doublings(document: CurveDocument, near: Sequence[CurveCard]) -> tuple[float, float]:
    """All places that have a name, and half as far again as the farthest crossing of the cards that are drawn; log2 of
    tokens or sequences."""
    points = [point.at for line in document.lines for point in line.points] or [document.at]
    crossed = [one for card in near for one in (card.estimate_up_to, card.possibly_up_to) if one and one < CEILING]
    named = [document.at, 4 * points[0], *(cell.at for cell in document.cells), document.domain_to or 0]
    high = min(max([*named, *(place * 3 // 2 for place in crossed)]), max(points))
    return _widened(math.log2(min(points)), math.log2(high), 1)


def y_doublings(document: CurveDocument, ceilings: Sequence[int], last: float) -> tuple[float, float]:
    """From the lowest line to a little above the highest ceiling, or the need at the scenario where that is higher;
    log2 of bytes."""
    points = [point for line in document.lines for point in line.points if point.allocated_bytes and point.at <= last]
    sizes = [point.allocated_bytes for point in points]
    high = list(ceilings) or sizes
    high += [point.allocated_bytes for point in points if point.at == document.at]
    if not high:
        return 30.0, 31.0
    low, top = math.log2(min([*sizes, *high])), math.log2(max(high))
    return _widened(low - 0.1 * max(top - low, 1), top + 0.1 * max(top - low, 1), 1)


def _widened(low: float, high: float, least: float) -> tuple[float, float]:
    """A range of at least so many doublings."""
    return (low, high) if high - low >= least else (low - least / 2, high + least / 2)


def x_ticks(document: CurveDocument, x_range: tuple[float, float], width: int) -> Iterator[tuple[float, str]]:
    """As many powers of two as so many columns have room for, as log2 and in words."""
    powers = range(math.ceil(x_range[0]), math.floor(x_range[1]) + 1)
    step = max(1, math.ceil(len(powers) * 7 / max(width - 12, 7)))
    for power in powers[::step]:
        yield power, format_tokens(2**power) if document.axis is Axis.CONTEXT else f"{2**power:,}"


def y_ticks(y_range: tuple[float, float], height: int) -> Iterator[tuple[float, str]]:
    """Powers of two, and half way between them where so many rows have room, as log2 and in words."""
    low, high = math.ceil(y_range[0]), math.floor(y_range[1])
    rows = max(height - 2, 1) / (y_range[1] - y_range[0])
    step = max(1, math.ceil(2 / rows))
    for power in range(low - 1, high + 1):
        if power >= y_range[0] and power % step == 0:
            yield power, size_tick(2**power)
        if rows >= 6 and y_range[0] <= power + math.log2(1.5) <= y_range[1]:
            yield power + math.log2(1.5), size_tick(3 * 2 ** (power - 1))


def size_tick(size_bytes: int) -> str:
    """A round size without the decimals that say nothing."""
    number, unit = format_size(size_bytes).split()
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number} {unit}"
