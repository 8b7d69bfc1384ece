"""The colour behind a verdict's words, in whichever sheet they stand."""

from __future__ import annotations

from typing import Any

from gpufit.advice.verdict import Verdict
from gpufit.report.cells import SYMBOLS
from gpufit.report.workbook.paper import COLOURS, Paper


def colour_verdicts(paper: Paper, book: Any, first: int, count: int, column: int, *, readable: bool) -> None:
    """A colour behind each verdict of a column."""
    for verdict in Verdict if count else ():
        shown = SYMBOLS[verdict] if readable else str(verdict)
        rule = {
            "type": "cell",
            "criteria": "==",
            "value": f'"{shown}"',
            "format": book.add_format({"bg_color": COLOURS[verdict]}),
        }
        paper.sheet.conditional_format(first, column, first + count - 1, column, rule)
