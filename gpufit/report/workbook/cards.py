"""The sheets with a row a card: one to read and print, one with every figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpufit.report.cells import SYMBOLS, Column
from gpufit.report.columns import columns_of, screen_columns_of
from gpufit.report.document import FitDocument
from gpufit.report.summary import headline, remark_lines
from gpufit.report.workbook.paper import Paper
from gpufit.report.workbook.places import cell
from gpufit.report.workbook.prices import order_formula
from gpufit.report.workbook.verdicts import colour_verdicts

_SUMMARY_HEADER = 3


def write_summary(paper: Paper, document: FitDocument, book: Any) -> None:
    """What a person reads and prints: the headline, the columns of the terminal's table, prices, and the remarks."""
    more = (one for one in columns_of(document) if one.key == "arrangement" or one.key.startswith("total_price"))
    _table(paper, _SUMMARY_HEADER, [*screen_columns_of(document), *more], document, book, readable=True)
    for number, line in enumerate(headline(document).split("\n")):
        paper.text(number, 0, line, "bold", measured=False)
    for number, line in enumerate(remark_lines(document), start=_SUMMARY_HEADER + len(document.cards) + 2):
        paper.text(number, 0, line, "dim", measured=False)
    paper.sheet.freeze_panes(_SUMMARY_HEADER + 1, 1)
    paper.fit_columns()
    paper.landscape(_SUMMARY_HEADER)


def write_cards(paper: Paper, document: FitDocument, book: Any) -> None:
    """Every figure of every card, for formulas and filters."""
    columns = columns_of(document)
    _table(paper, 0, columns, document, book, readable=False)
    card = [column.key for column in columns].index("card")
    paper.sheet.freeze_panes(1, card + 1)
    paper.sheet.autofilter(0, 0, len(document.cards), len(columns) - 1)
    paper.fit_columns()
    paper.landscape(0, pages=3)
    paper.sheet.repeat_columns(card)


def header_of(column: Column) -> str:
    """A column's title with its unit."""
    if column.key.endswith("_bytes"):
        return f"{column.title} (GiB)"
    if column.key.endswith("_tokens") and not column.title.endswith("tokens"):
        return f"{column.title} (tokens)"
    return column.title


def _table(
    paper: Paper, first: int, columns: Sequence[Column], document: FitDocument, book: Any, *, readable: bool
) -> None:
    """A header in row `first`, then a row a card, the verdicts coloured; lots and totals follow the prices sheet.

    `readable` verdicts have their sign, others the words that programs look for.
    """
    words = set()
    card = [column.key for column in columns].index("card")
    for number, row in enumerate(document.cards):
        for index, column in enumerate(columns):
            value = column.value(document, row)
            formula = order_formula(document, column.key, f"${cell(first + 1 + number, card)}")
            words |= {index} if isinstance(value, str) else set()
            if column.key == "verdict" and readable:
                paper.text(first + 1 + number, index, SYMBOLS[row.verdict])
            elif formula is None or isinstance(value, str):
                paper.value(first + 1 + number, index, value, column.key)
            else:
                kind = "money" if "price" in column.key else "count"
                paper.formula(first + 1 + number, index, formula, kind, value)
    paper.header(first, [header_of(column) for column in columns], words)
    at = [column.key for column in columns].index("verdict")
    colour_verdicts(paper, book, first + 1, len(document.cards), at, readable=readable)
