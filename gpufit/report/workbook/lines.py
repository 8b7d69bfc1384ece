"""A chart of lines as a workbook's own, over a sheet with what it draws: a figure changed there changes the line."""

from __future__ import annotations

import math
from typing import Any

from gpufit.report.chart import Chart, ChartAxis
from gpufit.report.workbook.paper import Paper
from gpufit.units import GIB

SHEET = "drawn"

_LEVELS = (("#576173", "dash"), ("#0B6B34", "long_dash"), ("#7A5200", "dash_dot"), ("#1D4F91", "long_dash_dot"))
"""Colour and stroke of the levels, in their order; the one that is asked about is black and solid."""


def write_drawn(paper: Paper, chart: Chart) -> None:
    """Two columns a line or a level: places, and heights in GiB."""
    for number, (title, points, _) in enumerate(_series(chart)):
        column = 2 * number
        paper.header(0, [f"{title}: {chart.x.title}", f"{title} (GiB)"], words=(), first=column)
        for row, (x, y) in enumerate(points, start=1):
            paper.value(row, column, round(x))
            paper.gib(row, column + 1, round(y))
    paper.sheet.freeze_panes(1, 0)
    paper.fit_columns()
    paper.landscape(0)


def write_lines(paper: Paper, book: Any, chart: Chart) -> None:
    """The chart, as `write_drawn` has put what it draws."""
    drawn = book.add_chart({"type": "scatter", "subtype": "straight"})
    for number, (title, points, how) in enumerate(_series(chart)):
        column = 2 * number
        drawn.add_series(
            {
                "name": title,
                "categories": [SHEET, 1, column, len(points), column],
                "values": [SHEET, 1, column + 1, len(points), column + 1],
            }
            | how
        )
    drawn.set_title({"name": chart.title, "name_font": {"size": 13}})
    drawn.set_x_axis(_axis(chart.x, 1))
    drawn.set_y_axis(_axis(chart.y, GIB))
    drawn.set_legend({"position": "bottom"})
    drawn.set_size({"width": 1000, "height": 560})
    paper.sheet.insert_chart(0, 0, drawn, {"description": chart.words})
    paper.sheet.hide_gridlines(2)
    paper.landscape(None)


_Series = tuple[str, tuple[tuple[float, float], ...], dict[str, Any]]
"""Its name, what it goes through, and how it is drawn."""


def _series(chart: Chart) -> list[_Series]:
    """Lines, levels and the question."""
    found: list[_Series] = []
    for line in chart.lines:
        name = f"{line.title}, carried beyond what was run" if line.dotted else line.title
        found.append((name, line.points, _line(line.colour, 2.25, "round_dot" if line.dotted else "solid")))
    for number, level in enumerate(chart.levels):
        ends = ((chart.x.low, level.height), (chart.x.high, level.height))
        colour, dash = ("#10161F", "solid") if level.strong else _LEVELS[number % len(_LEVELS)]
        found.append((level.title, ends, _line(colour, 2.25 if level.strong else 1.25, dash)))
    if chart.here is not None:
        ends = ((chart.here, chart.y.low), (chart.here, chart.y.high))
        found.append(("the question", ends, _line("#10161F", 0.75, "dash")))
    return found


def _line(colour: str, width: float, dash: str = "solid") -> dict[str, Any]:
    return {"line": {"color": colour, "width": width, "dash_type": dash}, "marker": {"type": "none"}}


def _axis(axis: ChartAxis, unit: float) -> dict[str, Any]:
    low, high = axis.low / unit, axis.high / unit
    if axis.doublings:  # a sheet counts its ticks from the end of the axis
        low, high = 2.0 ** math.floor(math.log2(low)), 2.0 ** math.ceil(math.log2(high))
    found = {
        "name": axis.title,
        "min": low,
        "max": high,
        "num_format": "#,##0" if unit == 1 else "General",
        "major_gridlines": {"visible": True, "line": {"color": "#D5DAE3"}},
        "label_position": "low",
    }
    return found | ({"log_base": 2, "major_unit": 2, "crossing": low} if axis.doublings else {})
