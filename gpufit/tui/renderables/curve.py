"""A curve as something to draw: both axes in doublings, a line a phase, a ceiling a card.

What is drawn where is worked out here, without a plotting library; `paint` hands it to one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rich.color import Color
from rich.style import Style

from gpufit.report.curve import CurveCard, CurveDocument, CurveLine
from gpufit.report.curve_chart import (
    FULL,
    PHASE_COLOURS,
    cell_marks,
    crossing_marks,
    stretches,
    x_doublings,
    x_ticks,
    y_doublings,
    y_ticks,
)
from gpufit.report.curve_text import distinct_ceilings
from gpufit.tui.renderables.palette import DIM, PLAIN, STRONG, VERDICT_STYLES
from gpufit.tui.renderables.plot_cells import Place, PlotCells, Taken

if TYPE_CHECKING:
    from textual_plotext import Plot

NEIGHBOURS = 2
"""Cards above and below the selected one whose ceilings are drawn."""

HERE = "┊"
SELECTED_RAIL, RAIL, DOMAIN_RAIL = "━", "─", "▁"
_LABELLED_MARGIN = 110
"""Columns from which the ceilings of all other cards have their names at the right."""


@dataclass(frozen=True)
class Stroke:
    """One run of marks."""

    xs: tuple[float, ...]
    ys: tuple[float, ...]
    marker: str
    colour: str
    joined: bool = True
    """Whether the marks are joined to a line."""


@dataclass(frozen=True)
class Label:
    """Words in the plot."""

    x: float
    y: float
    text: str
    colour: str
    align: str


@dataclass(frozen=True)
class Picture:
    """A whole plot; places are log2 of tokens or sequences, heights log2 of bytes."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    margin: tuple[tuple[float, str], ...]
    """Ceilings that are only named, at the right."""
    strokes: tuple[Stroke, ...]
    """In the order they are painted: later ones are in front."""
    labels: tuple[Label, ...]


def shown_cards(document: CurveDocument, listed: Sequence[str], selected: int) -> tuple[CurveCard, ...]:
    """The selected card and its neighbours in the list, in the list's order."""
    cards = {card.card: card for card in document.cards}
    first = max(min(selected - NEIGHBOURS, len(listed) - 2 * NEIGHBOURS - 1), 0)
    return tuple(cards[one] for one in listed[first : first + 2 * NEIGHBOURS + 1] if one in cards)


def picture(
    document: CurveDocument, near: Sequence[CurveCard], selected: str | None, width: int, height: int
) -> Picture:
    """The plot of a curve with the ceilings of `near`, in so many columns and rows."""
    rails = _rails(near, selected)
    x_range = x_doublings(document, near)
    y_range = y_doublings(document, [rail.size_bytes for rail in rails], 2 ** x_range[1])
    cells = PlotCells(x_range, y_range, 0, width - 1, height)
    shown = _a_row_each(rails, cells)
    ticks = tuple(y_ticks(y_range, height))
    margin = tuple(_margin(document, rails, cells)) if width >= _LABELLED_MARGIN else ()
    # The frame, and the words outside of it.
    cells = replace(cells, left=_longest(ticks) + 1, right=width - 2 - _longest(margin))
    return Picture(
        x_range=x_range,
        y_range=y_range,
        x_ticks=tuple(x_ticks(document, x_range, width)),
        y_ticks=ticks,
        margin=margin,
        strokes=(
            *_here(document, y_range),
            *_domain(document, y_range),
            *(stroke for line in document.lines for stroke in _phase(document, line)),
            *(stroke for rail in shown for stroke in _ceiling(document, rail, x_range)),
            *_cells(document),
        ),
        labels=tuple(_labels(document, shown, cells)),
    )


@dataclass(frozen=True)
class _Rail:
    """A ceiling and the cards that have it, the selected one first."""

    size_bytes: int
    cards: tuple[CurveCard, ...]
    selected: bool


def _rails(near: Sequence[CurveCard], selected: str | None) -> tuple[_Rail, ...]:
    """The ceilings to draw, that of the selected card last, so that it stands in front."""
    found = []
    for size, cards in distinct_ceilings(near):
        ordered = tuple(sorted(cards, key=lambda card: card.card != selected))
        if size > 0:
            found.append(_Rail(size, ordered, ordered[0].card == selected))
    return tuple(sorted(found, key=lambda rail: rail.selected))


def _longest(words: Sequence[tuple[float, str]]) -> int:
    return max((len(text) for _, text in words), default=0)


def _a_row_each(rails: Sequence[_Rail], cells: PlotCells) -> tuple[_Rail, ...]:
    """One ceiling a row of the terminal: of several in a row the last, which is named with how many it stands for."""
    rows: dict[int, list[_Rail]] = {}
    for rail in rails:
        rows.setdefault(cells.row(math.log2(rail.size_bytes)), []).append(rail)
    return tuple(
        _Rail(
            found[-1].size_bytes,
            (*found[-1].cards, *(card for rail in found[:-1] for card in rail.cards)),
            found[-1].selected,
        )
        for found in rows.values()
    )


def _here(document: CurveDocument, y_range: tuple[float, float]) -> Iterator[Stroke]:
    x = math.log2(document.at)
    yield Stroke((x, x), y_range, HERE, STRONG)


def _domain(document: CurveDocument, y_range: tuple[float, float]) -> Iterator[Stroke]:
    if document.domain_from is not None and document.domain_to is not None:
        xs = (math.log2(document.domain_from), math.log2(document.domain_to))
        yield Stroke(xs, (y_range[0], y_range[0]), DOMAIN_RAIL, PLAIN)


def _phase(document: CurveDocument, line: CurveLine) -> Iterator[Stroke]:
    """Solid where it was run or follows from rules alone, dotted where it is carried beyond that."""
    for dotted, points in stretches(document, line):
        places = [(math.log2(point.at), math.log2(point.allocated_bytes)) for point in points]
        shown = _dots(places) if dotted else places
        xs, ys = tuple(x for x, _ in shown), tuple(y for _, y in shown)
        yield Stroke(xs, ys, "braille", PHASE_COLOURS[line.phase], joined=not dotted)


def _dots(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Points along a line with as much room between them as a dotted line has."""
    found = []
    for (x, y), (next_x, next_y) in pairwise(points):
        found += [(x + (next_x - x) * at, y + (next_y - y) * at) for at in (0, 0.5)]
    return [*found, *points[-1:]]


def _ceiling(document: CurveDocument, rail: _Rail, x_range: tuple[float, float]) -> Iterator[Stroke]:
    """A ceiling, and on it where the curve crosses: of the selected card with the bracket around it."""
    y, first = math.log2(rail.size_bytes), rail.cards[0]
    colour = VERDICT_STYLES[first.verdict] if rail.selected else DIM
    yield Stroke(x_range, (y, y), SELECTED_RAIL if rail.selected else RAIL, colour)
    for mark in crossing_marks(document, first, rail.selected):
        if x_range[0] <= math.log2(mark.x) <= x_range[1]:
            yield Stroke((math.log2(mark.x),), (y,), mark.sign, STRONG, joined=False)


def _cells(document: CurveDocument) -> Iterator[Stroke]:
    """What was run."""
    for mark in cell_marks(document):
        style = "bold #ff7272" if mark.sign == FULL else STRONG
        yield Stroke((math.log2(mark.x),), (math.log2(mark.y),), mark.sign, style, joined=False)


def _margin(document: CurveDocument, drawn: Sequence[_Rail], cells: PlotCells) -> Iterator[tuple[float, str]]:
    """The ceilings that are not drawn, a row each: of several in one row the first by name, and how many more."""
    rows: dict[int, list[tuple[float, CurveCard]]] = {}
    low, high = cells.y_range
    for size, cards in distinct_ceilings(document.cards):
        if size > 0 and all(rail.size_bytes != size for rail in drawn) and low <= math.log2(size) <= high:
            y = math.log2(size)
            rows.setdefault(cells.row(y), []).extend((y, card) for card in cards)
    for found in rows.values():
        yield found[0][0], _named([card for _, card in found])


def _named(cards: Sequence[CurveCard]) -> str:
    """The first by its id, and how many more."""
    return f"{cards[0].card} +{len(cards) - 1}" if len(cards) > 1 else cards[0].card


def _labels(document: CurveDocument, rails: Sequence[_Rail], cells: PlotCells) -> Iterator[Label]:
    """The ceilings' names and the phases' on their lines, none on another, on a crossing or on what was run."""
    taken: Taken = {}
    marks = [mark for rail in rails for mark in crossing_marks(document, rail.cards[0], rail.selected)]
    for mark in [*marks, *cell_marks(document)]:
        if mark.x <= 2 ** cells.x_range[1]:
            cells.take(taken, (math.log2(mark.x), math.log2(mark.y)), 1, beside=1)
    for rail in rails:
        y, text = math.log2(rail.size_bytes), f"{_named(rail.cards)} "
        x, _ = cells.best(taken, ((cells.x(at), y) for at in range(cells.left, cells.right)), len(text))
        cells.take(taken, (x, y), len(text))
        yield Label(x, y, text, VERDICT_STYLES[rail.cards[0].verdict] if rail.selected else DIM, "left")
    for slot, line in enumerate(sorted(document.lines, key=lambda one: -one.points[0].allocated_bytes)):
        text, colour = f" {line.phase} ", PHASE_COLOURS[line.phase]
        if places := _along(line, cells, slot):
            x, y = cells.best(taken, places, len(text))
            cells.take(taken, (x, y), len(text))
            yield Label(x, y, text, colour, "left")


def _along(line: CurveLine, cells: PlotCells, slot: int) -> list[Place]:
    """Places on a line for its name, the best first: one line's further to the right than the other's, since their left
    ends lie close."""
    low, high = cells.x_range
    apart = max(0.14, 11 / max(cells.right - cells.left, 11))
    wanted = low + (high - low) * (0.3 + apart * slot)
    places = [(math.log2(one.at), math.log2(one.allocated_bytes)) for one in line.points if one.allocated_bytes]
    between = [
        (x, y + (next_y - y) * (x - left) / (next_x - left))
        for (left, y), (next_x, next_y) in pairwise(places)
        for x in (left, (left + next_x) / 2)
    ]
    return sorted([*between, *places[-1:]], key=lambda place: abs(place[0] - wanted))


def paint(plot: Plot, found: Picture) -> None:
    """Hand a picture to the plotting library, whose size and theme are set already."""
    _paint(plot, found)


def _paint(plot: Any, found: Picture) -> None:  # the library's own types refuse what it takes
    plot.clear_data()
    for stroke in found.strokes:
        put = plot.plot if stroke.joined else plot.scatter
        put(list(stroke.xs), list(stroke.ys), marker=stroke.marker, color=_rgb(stroke.colour))
    for label in found.labels:
        plot.text(label.text, label.x, label.y, color=_rgb(label.colour), alignment=label.align)
    if found.margin:
        # The right axis exists only where something is drawn on it.
        below = found.y_range[0] - 1
        plot.plot(list(found.x_range), [below, below], marker=" ", yside=2)
        plot.ylim(*found.y_range, yside=2)
        plot.yticks([at for at, _ in found.margin], [text for _, text in found.margin], yside=2)
    plot.xlim(*found.x_range)
    plot.ylim(*found.y_range)
    plot.xticks([at for at, _ in found.x_ticks], [text for _, text in found.x_ticks])
    plot.yticks([at for at, _ in found.y_ticks], [text for _, text in found.y_ticks])


def _rgb(style: str) -> tuple[int, int, int]:
    """The colour of a style, as the plotting library takes it."""
    colour = Style.parse(style).color or Color.parse("white")
    red, green, blue = colour.get_truecolor()
    return red, green, blue
