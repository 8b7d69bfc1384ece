"""Stacked bars as inline SVG: the parts of a need, its interval, and the card's capacity as a line.

Lengths are percentages of the bar's own width, so that a bar is as wide as its place and its strokes stay sharp.
Each group has a pattern of its own beside its colour: a bar reads in grey, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gpufit.report.cells import SYMBOLS
from gpufit.report.document import CardRow, PhaseFigures
from gpufit.report.markup import Markup, element
from gpufit.report.part_groups import PART_GROUPS, PartGroup
from gpufit.units import format_size

CEILING_AT = 78.0
"""Percent of the width at which a card's capacity stands; the rest is for what goes beyond."""

EDGE = 100.0
"""Where a bar is cut; a mark says that it goes on."""

HEIGHT = 26
"""Pixels."""

_STROKES: tuple[str | None, ...] = (
    None,
    "M0,8 L8,0 M-2,2 L2,-2 M6,10 L10,6",
    "M2,2 h1 M6,6 h1",
    "M0,0 L8,8 M-2,6 L2,10 M6,-2 L10,2",
    "M2,0 V8 M6,0 V8",
    "M0,2 H8 M0,6 H8",
)
"""What is drawn over each group's colour, in a tile of 8 x 8; nothing over the first."""


@dataclass(frozen=True)
class Bar:
    """What one bar shows, in bytes."""

    segments: tuple[tuple[PartGroup, int], ...]
    lower_bytes: int
    upper_bytes: int
    ceiling_bytes: int | None
    """None where there is no capacity to draw."""
    full_bytes: int
    """What CEILING_AT percent of the width stand for."""

    def percent(self, size_bytes: int) -> float:
        """How far to the right a size reaches, cut at the edge."""
        return min(size_bytes * CEILING_AT / max(self.full_bytes, 1), EDGE)


def card_bar(row: CardRow) -> Bar:
    """A card's need on the scale of its capacity; of an unknown one, on the scale of the need's upper bound."""
    return Bar(
        segments=tuple((group, group.size_bytes(row)) for group in PART_GROUPS),
        lower_bytes=row.need_lower_bytes,
        upper_bytes=row.need_upper_bytes,
        ceiling_bytes=row.capacity_bytes,
        full_bytes=row.need_upper_bytes if row.capacity_bytes is None else row.capacity_bytes,
    )


def phase_bar(figures: PhaseFigures, full_bytes: int) -> Bar:
    """What is allocated at the peak of a phase, on a scale that all phases share."""
    return Bar(
        segments=tuple((group, sum(getattr(figures.parts, name, 0) for name in group.parts)) for group in PART_GROUPS),
        lower_bytes=figures.allocated_lower_bytes,
        upper_bytes=figures.allocated_upper_bytes,
        ceiling_bytes=None,
        full_bytes=full_bytes,
    )


def draw(bar: Bar, name: str, title: str) -> Markup:
    """The bar; `name` is unique on the page, and what the bar shows is told in its description, too."""
    drawn = [_track(bar), *_segments(bar), *_interval(bar), *_ceiling(bar), *_cut(bar)]
    return element(
        "svg",
        element("title", title, id=f"{name}-title"),
        element("desc", describe(bar), id=f"{name}-desc"),
        *drawn,
        class_="bar",
        role="img",
        width="100%",
        height=HEIGHT,
        aria_labelledby=f"{name}-title {name}-desc",
    )


def describe(bar: Bar) -> str:
    """The bar in words."""
    total = sum(size for _, size in bar.segments)
    parts = ", ".join(f"{group.title} {format_size(size)}" for group, size in bar.segments if size)
    ceiling = "" if bar.ceiling_bytes is None else f" of {format_size(bar.ceiling_bytes)}"
    between = f"{format_size(bar.lower_bytes)} to {format_size(bar.upper_bytes)}"
    return f"{format_size(total)} ({between}){ceiling}: {parts or 'nothing'}"


def _track(bar: Bar) -> Markup:
    return element("rect", class_="track", x="0", y=3, width=_at(CEILING_AT), height=HEIGHT - 6)


def _segments(bar: Bar) -> Iterable[Markup]:
    reached = 0
    for number, (group, size) in enumerate(bar.segments):
        start, end = bar.percent(reached), bar.percent(reached + size)
        reached += size
        if end > start:
            place: dict[str, str | int] = {"x": _at(start), "y": 3, "width": _at(end - start), "height": HEIGHT - 6}
            yield element("g", element("title", f"{group.title} {format_size(size)}"), *_fills(number, **place))


def _cut(bar: Bar) -> Iterable[Markup]:
    """A mark at the edge where something goes on beyond it."""
    if bar.percent(bar.upper_bytes) >= EDGE:
        yield element("text", "»", class_="cut", x="99.7%", y=HEIGHT - 7, text_anchor="end")


def _interval(bar: Bar) -> Iterable[Markup]:
    """From the lower to the upper bound, each end that is on the bar with a cap: over a wider line, so that it shows
    on any fill."""
    if bar.upper_bytes <= bar.lower_bytes:
        return
    lower, upper = bar.percent(bar.lower_bytes), bar.percent(bar.upper_bytes)
    middle = HEIGHT // 2
    lines = [(_at(lower), middle, _at(upper), middle)]
    lines += [(_at(end), middle - 5, _at(end), middle + 5) for end in (lower, upper) if end < EDGE]
    title = element("title", f"between {format_size(bar.lower_bytes)} and {format_size(bar.upper_bytes)}")
    drawn = [
        element("line", class_=kind, x1=x1, y1=y1, x2=x2, y2=y2)
        for kind in ("halo", "interval")
        for x1, y1, x2, y2 in lines
    ]
    yield element("g", title, *drawn)


def _ceiling(bar: Bar) -> Iterable[Markup]:
    if bar.ceiling_bytes is not None:
        title = element("title", f"capacity {format_size(bar.ceiling_bytes)}")
        at = _at(CEILING_AT)
        yield element("g", title, element("line", class_="ceiling", x1=at, y1=0, x2=at, y2=HEIGHT))


def _at(percent: float) -> str:
    return f"{percent:.3f}%"


def patterns() -> Markup:
    """The strokes that bars refer to: once a page, in a drawing without size."""
    defined = [
        element(
            "pattern",
            element("path", d=strokes, class_="stroke"),
            id=f"stroke-{number}",
            width=8,
            height=8,
            patternUnits="userSpaceOnUse",
        )
        for number, strokes in enumerate(_STROKES)
        if strokes is not None
    ]
    return element("svg", element("defs", *defined), class_="patterns", width=0, height=0, aria_hidden="true")


def legend(bars: Sequence[Bar]) -> Markup:
    """What the fills and lines of these bars mean; what none of them has is left out."""
    shown = [number for number in range(len(PART_GROUPS)) if any(bar.segments[number][1] for bar in bars)]
    entries = [(_key(*_fills(number, width=24, height=14)), PART_GROUPS[number].title) for number in shown]
    entries.append((_key(element("line", class_="interval", x1=1, y1=7, x2=23, y2=7)), "lower to upper bound"))
    if any(bar.ceiling_bytes is not None for bar in bars):
        entries.append((_key(element("line", class_="ceiling", x1=12, y1=0, x2=12, y2=14)), "the card's capacity"))
    return element("ul", *(element("li", sign, f" {title}") for sign, title in entries), class_="legend")


def _key(*shapes: Markup) -> Markup:
    return element("svg", *shapes, width=24, height=14, aria_hidden="true")


def _fills(number: int, **place: str | int) -> list[Markup]:
    """A group's colour, and its strokes over it."""
    colour = element("rect", class_=f"part part-{number}", **place)
    return [colour] if _STROKES[number] is None else [colour, element("rect", fill=f"url(#stroke-{number})", **place)]


def card_title(row: CardRow) -> str:
    """A bar's name: the card and its verdict."""
    return f"{row.card}: {SYMBOLS[row.verdict]}"
