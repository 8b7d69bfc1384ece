"""Two profiles side by side: what it comes to, what differs, and part by part, in the words of `gpufit compare`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from gpufit.advice.comparison import PhaseDifference
from gpufit.report.cells import printable
from gpufit.report.compare_document import CompareDocument
from gpufit.report.compare_text import (
    DIFFERENCE_HEADERS,
    PART_HEADERS,
    difference_rows,
    part_rows,
    peak_line,
    phase_title,
    side_lines,
)
from gpufit.tui.renderables.palette import DIM, PLAIN, STRONG, TITLE, WARNING

_FIGURES = (1, 2, 3)
"""Columns of a phase's table that hold sizes."""


def sides(document: CompareDocument) -> Text:
    """Which two, and the scenario that they are compared at."""
    return Text(printable("\n".join(side_lines(document))), STRONG)


def no_comparison(why: str) -> Text:
    """In place of the comparison, where one of the two cannot answer."""
    return Text.assemble((f"! {printable(why)}\n\n", WARNING), ("r: back to what both can answer  ·  esc: back", DIM))


def comparison(document: CompareDocument) -> Group:
    """The conclusion, what differs, then every phase."""
    blocks: list[RenderableType] = [Text(printable("\n".join(document.conclusion)), PLAIN)]
    if document.differences:
        blocks += [_title("what differs, in the order to look"), _table(DIFFERENCE_HEADERS, difference_rows(document))]
    if not document.same:
        blocks += [block for phase in document.phases for block in _phase(phase)]
    return Group(*(Padding(block, (0, 0, 1, 0)) for block in blocks))


def _phase(phase: PhaseDifference) -> list[RenderableType]:
    peak = peak_line(phase)
    title = Text.assemble(_title(phase_title(phase)), (f"\n{printable(peak)}" if peak else "", DIM))
    rows = part_rows(phase)
    return [title, _table(PART_HEADERS, rows, _FIGURES)] if rows else [title]


def _title(words: str) -> Text:
    return Text(printable(words), TITLE)


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]], figures: Sequence[int] = ()) -> Table:
    """Sizes never wrap, words do."""
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style=DIM)
    for place, header in enumerate(headers):
        right = place in figures
        table.add_column(header, justify="right" if right else "left", no_wrap=right, style=PLAIN, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    return table
