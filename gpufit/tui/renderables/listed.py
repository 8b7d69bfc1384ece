"""Any list of one line a row: which columns a width has room for, the heading, and a row's line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from rich.text import Text

from gpufit.report.cells import printable
from gpufit.tui.renderables.cards import POINTER
from gpufit.tui.renderables.palette import DIM, PLAIN, SELECTED_BACKGROUND, STRONG

Row = TypeVar("Row")

GAP = 2
_POINTER_WIDTH = 2


@dataclass(frozen=True, kw_only=True)
class ListColumn(Generic[Row]):
    """One column."""

    title: str
    text: Callable[[Row], str]
    most: int = 40
    """Width beyond which a cell is cut while other columns need the room."""
    by_its_end: bool = False
    """What tells two cells apart stands at their ends, as in models' and files' names: a cut is nearer to the front."""
    right: bool = False
    """Aligned to the right, as figures are."""
    style: Callable[[Row], str] = lambda row: PLAIN
    importance: int = 0
    """0: always there; the others come in while there is room, 1 first."""


@dataclass(frozen=True)
class Placed(Generic[Row]):
    """A column with its width."""

    column: ListColumn[Row]
    width: int

    def pad(self, text: str) -> str:
        """A cell or title over the whole width; where it is cut, a sign says so."""
        cut = text if len(text) <= self.width else self._cut(text)
        return cut.rjust(self.width) if self.column.right else cut.ljust(self.width)

    def _cut(self, text: str) -> str:
        left = self.width - 1
        head = left // 3 if self.column.by_its_end else left
        return f"{text[:head]}…{text[len(text) - (left - head) :]}"


def place(columns: Iterable[ListColumn[Row]], rows: Sequence[Row], width: int) -> tuple[Placed[Row], ...]:
    """The columns that a width has room for, in their order; room that is left goes to cells that were cut."""
    of_all = tuple(columns)
    longest = {one.title: max([len(one.title), *(len(printable(one.text(row))) for row in rows)]) for one in of_all}
    widths = {one.title: min(longest[one.title], max(one.most, len(one.title))) for one in of_all}
    chosen: list[ListColumn[Row]] = []
    room = width - _POINTER_WIDTH
    for one in sorted(of_all, key=lambda column: column.importance):
        taken = widths[one.title] + GAP
        if one.importance and taken > room:
            break
        chosen.append(one)
        room -= taken
    for one in chosen:
        more = min(max(room, 0), longest[one.title] - widths[one.title])
        widths[one.title] += more
        room -= more
    return tuple(Placed(one, widths[one.title]) for one in of_all if one in chosen)


def heading(placed: Sequence[Placed[Row]]) -> Text:
    """The titles above their columns."""
    line = Text(" " * _POINTER_WIDTH, no_wrap=True, overflow="ellipsis")
    for one in placed:
        line.append(one.pad(one.column.title) + " " * GAP, DIM)
    return line


def line(placed: Sequence[Placed[Row]], row: Row, selected: bool) -> Text:
    """One row; the selected one has a pointer besides its colour."""
    text = Text(style=f"on {SELECTED_BACKGROUND}" if selected else "", no_wrap=True, overflow="ellipsis")
    text.append((POINTER if selected else "").ljust(_POINTER_WIDTH), STRONG)
    for one in placed:
        text.append(one.pad(printable(one.column.text(row))), one.column.style(row)).append(" " * GAP)
    return text
