"""One card's need drawn against its ceiling.

    █████████▓▓▓▓▓▒▚▌░░        │          fits: everything, the upper bound too, is left of the ceiling
    █████████▓▓▓▓▓▓▓▓▓▓▓▓▒▚▌░░░│░░        too close: only the shade is beyond
    █████████▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓│▓▓▓▓░     does not fit: what is surely needed is beyond

The ceiling stands in the same column for every card, so each bar has its card's own scale. What is drawn beyond the
ceiling follows from the same comparisons as the verdict, never from rounding; where the verdict says more than bytes
do, its sign stands in the ceiling's place: a bar cannot contradict it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from rich.text import Text

from gpufit.advice.verdict import Verdict
from gpufit.report.cells import SYMBOLS
from gpufit.report.document import CardRow
from gpufit.tui.renderables.palette import (
    CEILING_MARK,
    CUT_MARK,
    DIM,
    GROUPS,
    STRONG,
    UPPER_FILL,
    UPPER_STYLE,
    VERDICT_STYLES,
    FilledGroup,
)

SMALLEST_WIDTH = 12
"""Below this a bar says nothing."""

_Cell = tuple[str, str]
"""A character and its style."""


@dataclass(frozen=True)
class Scale:
    """How many cells a bar has on either side of the ceiling, and how many bytes one cell stands for."""

    capacity_bytes: int
    inside: int
    beyond: int

    def cells(self, size_bytes: int) -> int:
        """Cells left of the ceiling that a size fills, to the nearest."""
        return min((2 * size_bytes * self.inside + self.capacity_bytes) // (2 * self.capacity_bytes), self.inside)

    def cells_up(self, size_bytes: int) -> int:
        """The same, rounded up: any size at all fills a cell."""
        return min(-(-size_bytes * self.inside // self.capacity_bytes), self.inside)

    def cells_beyond(self, size_bytes: int) -> int:
        """Cells right of the ceiling for a need, rounded up and not cut: any byte over fills one."""
        over = max(size_bytes - self.capacity_bytes, 0)
        return -(-over * self.inside // self.capacity_bytes)


def scale_for(capacity_bytes: int, width: int) -> Scale:
    """The scale of a bar of `width` cells: a fifth of them, and the mark, are kept for what is over."""
    beyond = max(width // 5, 3)
    return Scale(capacity_bytes, width - beyond - 1, beyond)


def bar(row: CardRow, width: int) -> Text:
    """The stacked bar of a card, exactly `width` cells wide."""
    width = max(width, SMALLEST_WIDTH)
    if not row.capacity_bytes:
        return Text(("no capacity known" if width >= len("no capacity known") else "not reported").ljust(width), DIM)
    scale = scale_for(row.capacity_bytes, width)
    return _joined([*_inside(row, scale), _ceiling(row), *_beyond(row, scale)])


def _ceiling(row: CardRow) -> _Cell:
    """The ceiling; where the verdict is not what bytes alone say (a dtype that the card lacks, an out-of-memory on this
    very card), its sign stands there."""
    by_bytes = (
        Verdict.FITS
        if row.need_upper_bytes <= (row.capacity_bytes or 0)
        else Verdict.TOO_CLOSE
        if row.need_lower_bytes <= (row.capacity_bytes or 0)
        else Verdict.DOES_NOT_FIT
    )
    if row.verdict is by_bytes:
        return CEILING_MARK, STRONG
    return SYMBOLS[row.verdict][0], VERDICT_STYLES[row.verdict]


def _joined(cells: Sequence[_Cell]) -> Text:
    """The cells as text, neighbours of one style in one piece: a list of bars is drawn on every key."""
    runs = groupby(cells, key=lambda cell: cell[1])
    return Text.assemble(*(("".join(sign for sign, _ in run), style) for style, run in runs))


def ceiling_column(width: int) -> int:
    """Where the ceiling mark stands in a bar of `width` cells."""
    return scale_for(1, max(width, SMALLEST_WIDTH)).inside


def _inside(row: CardRow, scale: Scale) -> list[_Cell]:
    """Left of the ceiling: the parts, then the shade to the upper bound, then free space.

    A need shows as one cell at least, and so does an interval that ends this side of the ceiling.
    """
    solid = max(scale.cells(row.need_bytes), 1)
    uncertain = row.need_upper_bytes > row.need_bytes
    upper = max(scale.cells_up(row.need_upper_bytes), solid) if uncertain else solid
    if uncertain and upper == solid and row.need_upper_bytes <= scale.capacity_bytes:
        solid, upper = (solid - 1, upper) if solid > 1 else (1, 2)
    shade = [(UPPER_FILL, UPPER_STYLE)] * (upper - solid)
    return _stack(row, scale, solid) + shade + [(" ", "")] * (scale.inside - upper)


def _stack(row: CardRow, scale: Scale, length: int) -> list[_Cell]:
    """The first `length` cells of the stacked parts."""
    cells: list[_Cell] = []
    reached = 0
    for group in GROUPS:
        reached += group.size_bytes(row)
        cells += [(group.fill, group.colour)] * (scale.cells(reached) - len(cells))
    if not cells:
        largest = max(GROUPS, key=lambda group: group.size_bytes(row))
        cells = [(largest.fill, largest.colour)]
    return cells[:length]


def _beyond(row: CardRow, scale: Scale) -> list[_Cell]:
    """Right of the ceiling: solid for what is surely needed (the lower bound), shade for what may be."""
    solid = min(scale.cells_beyond(row.need_lower_bytes), scale.beyond)
    reach = scale.cells_beyond(row.need_upper_bytes)
    if row.need_upper_bytes > max(row.need_lower_bytes, scale.capacity_bytes):
        reach = max(reach, min(solid + 1, scale.beyond))
    shade = min(reach, scale.beyond) - solid
    cells = [(_group_at(row, scale, place).fill, VERDICT_STYLES[Verdict.DOES_NOT_FIT]) for place in range(solid)] + [
        (UPPER_FILL, VERDICT_STYLES[Verdict.TOO_CLOSE])
    ] * shade
    if reach > scale.beyond:
        cells[-1] = (CUT_MARK, cells[-1][1])
    return cells + [(" ", "")] * (scale.beyond - len(cells))


def _group_at(row: CardRow, scale: Scale, place: int) -> FilledGroup:
    """The group that the stack has reached `place` cells beyond the ceiling."""
    at = scale.capacity_bytes + place * scale.capacity_bytes // scale.inside
    reached = 0
    for group in GROUPS:
        reached += group.size_bytes(row)
        if reached > at:
            return group
    return GROUPS[-1]


def legend(width: int) -> Text:
    """What the fills mean, in one line of at most `width` cells."""
    long = _legend([group.title for group in GROUPS], "up to the upper bound", "the card's capacity", "  ")
    if long.cell_len <= width:
        return long
    return _legend([group.short for group in GROUPS], "upper bound", "capacity", " ")


def _legend(titles: list[str], upper: str, ceiling: str, gap: str) -> Text:
    entries = [(group.fill, group.colour, title) for group, title in zip(GROUPS, titles, strict=True)]
    entries += [(UPPER_FILL, UPPER_STYLE, upper), (CEILING_MARK, STRONG, ceiling)]
    text = Text(no_wrap=True, overflow="ellipsis")
    for sign, style, title in entries:
        sign = sign * 2 if len(gap) > 1 and sign != CEILING_MARK else sign
        text.append(gap if text else "").append(sign, style).append(f" {title}", DIM)
    return text
