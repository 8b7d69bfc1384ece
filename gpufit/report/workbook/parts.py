"""The sheet of each card's parts in GiB, and the chart of them against the cards' ceilings."""

from __future__ import annotations

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


def write_parts(paper: Paper, document: FitDocument) -> None:
    """A row a card: the parts that a bar draws together, the need with its interval, and what the card offers."""
    paper.header(0, ["card", *(f"{group.title} (GiB)" for group in PART_GROUPS), *_TITLES])
    for at, row in enumerate(document.cards, start=1):
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
    paper.sheet.freeze_panes(1, 1)
    paper.fit_columns()
    paper.landscape(0)


def ceilings_chart(book: Any, document: FitDocument) -> Any:
    """Stacked parts of each card, the interval as error bars, the capacity as a mark of its own."""
    stack = book.add_chart({"type": "column", "subtype": "stacked"})
    for column, group in enumerate(PART_GROUPS, start=1):
        stack.add_series(
            _series(document, column)
            | {
                "name": group.title,
                "fill": {"color": group.colour},
                "border": {"color": "#3A4353", "width": 0.5},
                "gap": 45,
            }
        )
    marks = book.add_chart({"type": "line"})
    marks.add_series(
        _series(document, _NEED)
        | {
            "name": "need, lower to upper bound",
            "line": {"none": True},
            "marker": {"type": "diamond", "size": 4, "fill": {"color": "#10161F"}, "border": {"color": "#10161F"}},
            "y_error_bars": {
                "type": "custom",
                "plus_values": f"={column_range(SHEET, _UP, 1, len(document.cards))}",
                "minus_values": f"={column_range(SHEET, _DOWN, 1, len(document.cards))}",
                "line": {"color": "#10161F", "width": 1.25},
            },
        }
    )
    marks.add_series(
        _series(document, _CAPACITY)
        | {
            "name": "capacity",
            "line": {"none": True},
            "marker": {"type": "long_dash", "size": 12, "fill": {"color": "#B3201F"}, "border": {"color": "#B3201F"}},
        }
    )
    stack.combine(marks)
    stack.set_title({"name": "Parts of the need against each card's capacity", "name_font": {"size": 13}})
    stack.set_x_axis({"num_font": {"rotation": -60, "size": 8} if len(document.cards) > _FEW else {"size": 9}})
    stack.set_y_axis(
        {"name": "GiB", "num_format": "#,##0", "major_gridlines": {"visible": True, "line": {"color": "#D5DAE3"}}}
    )
    stack.set_legend({"position": "bottom"})
    stack.show_blanks_as("gap")
    stack.set_size(
        {"width": max(720, 220 + 30 * len(document.cards)), "height": 620 if len(document.cards) <= _FEW else 900}
    )
    return stack


def _series(document: FitDocument, column: int) -> dict[str, Any]:
    return {
        "name": [SHEET, 0, column],
        "categories": [SHEET, 1, 0, len(document.cards), 0],
        "values": [SHEET, 1, column, len(document.cards), column],
    }
