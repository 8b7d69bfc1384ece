"""The list of cards: which columns a width has room for, the heading, and one line a card.

Cells come from `report.cells`, so the list prints the same text as the command line's table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from rich.text import Text

from gpufit.report.cells import COLUMNS, SYMBOLS
from gpufit.report.document import CardRow, FitDocument
from gpufit.tui.renderables.bar import SMALLEST_WIDTH, bar, ceiling_column
from gpufit.tui.renderables.evidence import SIGNS, STYLES, evidence_text
from gpufit.tui.renderables.palette import DIM, PLAIN, SELECTED_BACKGROUND, STRONG, VERDICT_STYLES, WAIT

POINTER = "▸"
"""Before the selected card, so that the selection shows without colour."""

SMALLEST_BAR = 22
LARGEST_BAR = 72
_GAP = 1
_POINTER_WIDTH = 2

_TEXT = {column.key: column.text for column in COLUMNS}


@dataclass(frozen=True)
class ListColumn:
    """One column of the list."""

    key: str
    title: str
    smallest: int
    """Width that it has at least, so that columns rarely move from one scenario to the next."""
    right: bool
    """Aligned to the right, as figures are."""
    text: Callable[[FitDocument, CardRow], str]
    style: str | Callable[[CardRow], str] = PLAIN

    def style_of(self, row: CardRow) -> str:
        """The style of a row's cell."""
        return self.style if isinstance(self.style, str) else self.style(row)

    def sized(self, document: FitDocument, least: int = 0) -> SizedColumn:
        """The column as wide as its longest cell, and at least so wide."""
        longest = max(len(self.text(document, row)) for row in document.cards)
        return SizedColumn(self, max(self.smallest, longest, len(self.title), least))


@dataclass(frozen=True)
class SizedColumn:
    """A column with its width in a document."""

    column: ListColumn
    width: int

    def pad(self, text: str) -> str:
        """A cell or title over the whole width."""
        return text.rjust(self.width) if self.column.right else text.ljust(self.width)


@dataclass(frozen=True)
class Layout:
    """What fits on a line of some width."""

    columns: tuple[SizedColumn, ...]
    bar_width: int
    """Below the smallest width of a bar there is none."""

    def width_of(self, key: str) -> int:
        """Of one column; 0 where it has no room."""
        return next((one.width for one in self.columns if one.column.key == key), 0)


def interval_text(document: FitDocument, row: CardRow) -> str:
    """The interval of the headroom, lower to upper; a unit that both share is said once."""
    return _between(*(_TEXT[f"headroom_{bound}_bytes"](document, row) for bound in ("lower", "upper")))


def need_interval_text(document: FitDocument, row: CardRow) -> str:
    """The interval of the need, in the same way."""
    return _between(*(_TEXT[f"need_{bound}_bytes"](document, row) for bound in ("lower", "upper")))


def _between(lower: str, upper: str) -> str:
    if not lower or not upper:
        return ""
    number, _, unit = lower.partition(" ")
    return f"{number if upper.endswith(f' {unit}') else lower} .. {upper}"


COLUMNS_LEFT_TO_RIGHT: tuple[ListColumn, ...] = (
    ListColumn("card", "card", 12, False, _TEXT["card"], STRONG),
    ListColumn(
        "verdict",
        "verdict",
        max(len(symbol) for symbol in SYMBOLS.values()),
        False,
        _TEXT["verdict"],
        lambda row: VERDICT_STYLES[row.verdict],
    ),
    ListColumn("capacity_bytes", "capacity", 10, True, _TEXT["capacity_bytes"]),
    ListColumn("need_bytes", "need", 10, True, _TEXT["need_bytes"]),
    ListColumn("headroom_bytes", "headroom", 11, True, _TEXT["headroom_bytes"]),
    ListColumn("interval", "lower .. upper", 21, True, interval_text, DIM),
    ListColumn("lots", "lots", 4, False, _TEXT["lots"]),
    ListColumn(
        "evidence",
        "evidence",
        11,
        False,
        lambda document, row: evidence_text(row.evidence),
        lambda row: STYLES[row.evidence],
    ),
    ListColumn("sign", "", 1, False, lambda document, row: SIGNS[row.evidence], lambda row: STYLES[row.evidence]),
)

WORKED_OUT = frozenset({"lots"})
"""Columns of what takes a search, where a card by itself does not do."""

_ALWAYS = frozenset({"card", "verdict", "sign", "headroom_bytes"})
_WHILE_THERE_IS_ROOM = ("need_bytes", "capacity_bytes", "evidence", "interval", "lots")
"""In the order of what a buyer asks for."""


def layout_for(width: int, document: FitDocument, before: Layout | None = None) -> Layout:
    """Card, verdict, headroom and bar always; other columns while the bar keeps its smallest width. What is still being
    worked out keeps the room that it had `before`."""
    known = before or Layout((), 0)
    sized = [
        column.sized(document, known.width_of(column.key) if column.key in WORKED_OUT else 0)
        for column in COLUMNS_LEFT_TO_RIGHT
    ]
    chosen = set(_ALWAYS)
    for key in _WHILE_THERE_IS_ROOM:
        if _width(sized, chosen | {key}) + SMALLEST_BAR > width:
            break
        chosen.add(key)
    if "evidence" in chosen:
        chosen.discard("sign")  # it stands before the word
    columns = tuple(one for one in sized if one.column.key in chosen)
    return Layout(columns, min(width - _width(sized, chosen), LARGEST_BAR))


def _width(columns: Sequence[SizedColumn], chosen: Collection[str]) -> int:
    """Cells left of the bar when only the chosen columns are shown."""
    return _POINTER_WIDTH + sum(one.width + _GAP for one in columns if one.column.key in chosen)


def heading(layout: Layout) -> Text:
    """The titles, the bar's with its ceiling marked where every bar has it."""
    line = Text(" " * _POINTER_WIDTH, no_wrap=True)
    for one in layout.columns:
        line.append(one.pad(one.column.title) + " " * _GAP, DIM)
    if layout.bar_width < SMALLEST_WIDTH:
        return line
    at = ceiling_column(layout.bar_width)
    title = "need" if at >= len("need capacity ") else ""
    return line.append(f"{title}{'capacity '.rjust(at - len(title))}▾", DIM)


def card_line(document: FitDocument, row: CardRow, layout: Layout, selected: bool, settled: bool = True) -> Text:
    """One card. A verdict carries its sign and word, and a selected card its pointer, besides any colour. Until the
    answer is settled, what is still being worked out says so."""
    waits = not settled and row.cards_needed is None
    line = Text(no_wrap=True).append((POINTER if selected else "").ljust(_POINTER_WIDTH), STRONG)
    for one in layout.columns:
        text = WAIT if waits and one.column.key in WORKED_OUT else one.column.text(document, row)
        line.append(one.pad(text), one.column.style_of(row)).append(" " * _GAP)
    if layout.bar_width >= SMALLEST_WIDTH:
        line.append_text(bar(row, layout.bar_width))
    if selected:
        line.stylize(f"on {SELECTED_BACKGROUND}")
    return line
