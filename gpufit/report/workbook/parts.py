"""The sheet of each card's parts in GiB, and the chart of them against the cards' ceilings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpufit.report.document import FitDocument
from gpufit.report.part_groups import PART_GROUPS
from gpufit.report.workbook.paper import Paper
from gpufit.report.workbook.places import column_range

SHEET = "parts"

_GROUPS = len(PART_GROUPS)
_NEED, _LOWER, _UPPER, _CAPACITY, _HEADROOM, _DOWN, _UP = range(1 + _GROUPS, 8 + _GROUPS)
"""Columns after the card and its groups."""

_FEW = 6
"""Cards whose names stand side by side under a chart."""

_TITLES = (
    "need (GiB)",
    "need, lower (GiB)",
    "need, upper (GiB)",
    "capacity (GiB)",
    "headroom (GiB)",
    "need less lower (GiB)",
    "upper less need (GiB)",
)


def write_parts(paper: Paper, documents: Sequence[tuple[str, FitDocument]]) -> tuple[int, ...]:
    """A block a question, under its title where several are asked, of a row a card: the parts that a bar draws
    together, the need with its interval, and what the card offers. The result is the row of each block's header, from
    0."""
    headers, at = [], 0
    for title, document in documents:
        if title:
            paper.text(at, 0, title, "bold", measured=False)
            at += 1
        headers.append(at)
        _write_block(paper, at, document)
        at += len(document.cards) + 2
    if len(documents) == 1:
        paper.sheet.freeze_panes(1, 1)
    paper.fit_columns()
    paper.landscape(0 if len(documents) == 1 else None)
    return tuple(headers)


def _write_block(paper: Paper, first: int, document: FitDocument) -> None:
    paper.header(first, ["card", *(f"{group.title} (GiB)" for group in PART_GROUPS), *_TITLES])
    for at, row in enumerate(document.cards, start=first + 1):
        paper.text(at, 0, row.card)
        for column, group in enumerate(PART_GROUPS, start=1):
            paper.gib(at, column, group.size_bytes(row))
        paper.gib(at, _NEED, row.need_bytes)
        paper.gib(at, _LOWER, row.need_lower_bytes)
        paper.gib(at, _UPPER, row.need_upper_bytes)
        paper.gib(at, _CAPACITY, row.capacity_bytes)
        paper.gib(at, _HEADROOM, row.headroom_bytes)
        paper.gib(at, _DOWN, row.need_bytes - row.need_lower_bytes)
        paper.gib(at, _UP, row.need_upper_bytes - row.need_bytes)


def write_charts(paper: Paper, book: Any, documents: Sequence[tuple[str, FitDocument]], headers: Sequence[int]) -> None:
    """A chart a question, one below the other; `headers` as `write_parts` has put them."""
    words = {"description": "Stacked columns of each card's parts in GiB, with its capacity as a dash."}
    at = 0
    for (title, document), header in zip(documents, headers, strict=True):
        chart, height = _ceilings(book, title, document, header)
        paper.sheet.insert_chart(at, 0, chart, words)
        at += height // _ROW_PIXELS + 2
    paper.landscape(None)
    paper.sheet.hide_gridlines(2)


_ROW_PIXELS = 20
"""Height of a row that nothing changed."""


def _ceilings(book: Any, title: str, document: FitDocument, header: int) -> tuple[Any, int]:
    """(stacked parts of each card, the interval as error bars, the capacity as a mark of its own; height in pixels)."""
    first, last = header + 1, header + len(document.cards)

    def series(column: int) -> dict[str, Any]:
        return {
            "name": [SHEET, header, column],
            "categories": [SHEET, first, 0, last, 0],
            "values": [SHEET, first, column, last, column],
        }

    stack = book.add_chart({"type": "column", "subtype": "stacked"})
    for column, group in enumerate(PART_GROUPS, start=1):
        stack.add_series(
            series(column)
            | {
                "name": group.title,
                "fill": {"color": group.colour},
                "border": {"color": "#3A4353", "width": 0.5},
                "gap": 45,
            }
        )
    marks = book.add_chart({"type": "line"})
    marks.add_series(
        series(_NEED)
        | {
            "name": "need, lower to upper bound",
            "line": {"none": True},
            "marker": {"type": "diamond", "size": 4, "fill": {"color": "#10161F"}, "border": {"color": "#10161F"}},
            "y_error_bars": {
                "type": "custom",
                "plus_values": f"={column_range(SHEET, _UP, first, last)}",
                "minus_values": f"={column_range(SHEET, _DOWN, first, last)}",
                "line": {"color": "#10161F", "width": 1.25},
            },
        }
    )
    marks.add_series(
        series(_CAPACITY)
        | {
            "name": "capacity",
            "line": {"none": True},
            "marker": {"type": "long_dash", "size": 12, "fill": {"color": "#B3201F"}, "border": {"color": "#B3201F"}},
        }
    )
    stack.combine(marks)
    what = "Parts of the need against each card's capacity"
    stack.set_title({"name": f"{title}: {what}" if title else what, "name_font": {"size": 13}})
    stack.set_x_axis({"num_font": {"rotation": -60, "size": 8} if len(document.cards) > _FEW else {"size": 9}})
    stack.set_y_axis(
        {"name": "GiB", "num_format": "#,##0", "major_gridlines": {"visible": True, "line": {"color": "#D5DAE3"}}}
    )
    stack.set_legend({"position": "bottom"})
    stack.show_blanks_as("gap")
    height = 620 if len(document.cards) <= _FEW else 900
    stack.set_size({"width": max(720, 220 + 30 * len(document.cards)), "height": height})
    return stack, height
