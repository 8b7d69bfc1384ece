"""The sheets with a row a card: one to read and print, one with every figure."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

from gpufit.catalog.offers import TERMS
from gpufit.report.cells import SYMBOLS, Column, Value
from gpufit.report.columns import columns_of, question_columns_of, screen_columns_of
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.fits_document import FitsDocument
from gpufit.report.rows import rows_of
from gpufit.report.summary import headline, remark_lines
from gpufit.report.workbook.order_formulas import idle_formula, idle_price_formula, lots_formula, total_formula
from gpufit.report.workbook.orders import CHEAPEST, write_orders
from gpufit.report.workbook.paper import Paper, titled
from gpufit.report.workbook.places import cell
from gpufit.report.workbook.prices import PriceTable
from gpufit.report.workbook.verdicts import colour_verdicts

_SUMMARY_HEADER = 3


def write_summary(paper: Paper, document: FitDocument, table: PriceTable, book: Any) -> None:
    """What a person reads and prints: the headline, the columns of the terminal's table, what to order of whom at what
    price, and the remarks."""
    by_key = {column.key: column for column in columns_of(document)}
    shown = [column for column in screen_columns_of(document) if column.key not in ("lots", "cards_needed")]
    rows = [(document, row) for row in document.cards]
    columns = [*shown, by_key["cards_needed"], by_key["arrangement"]]
    _write_rows(paper, _SUMMARY_HEADER, columns, rows, None, book, readable=True)
    for number, line in enumerate(headline(document).split("\n")):
        paper.text(number, 0, line, "bold", measured=False)
    at = _SUMMARY_HEADER + len(rows) + 2
    served = [line for line in table.lines if line.cards_needed is not None]
    if served:
        at = write_orders(paper, at, served, table, book)
        paper.text(at + 1, 0, CHEAPEST, "dim", measured=False)
        at += 3
    for number, line in enumerate(remark_lines(document), start=at):
        paper.text(number, 0, line, "dim", measured=False)
    paper.sheet.freeze_panes(_SUMMARY_HEADER + 1, 1)
    paper.fit_columns()
    paper.landscape(None)


def write_cards(paper: Paper, document: FitDocument, table: PriceTable, book: Any) -> None:
    """Every figure of every card, for formulas and filters."""
    _every_figure(paper, columns_of(document), [(document, row) for row in document.cards], table, book)
    paper.sheet.repeat_columns([column.key for column in columns_of(document)].index("card"))


def write_all_cards(paper: Paper, documents: FitsDocument, table: PriceTable, book: Any) -> None:
    """Every figure of every card, arrangement and seller at every question."""
    rows = [(document, row) for document in documents.documents for row in rows_of(document)]
    _every_figure(paper, question_columns_of(documents), rows, table, book)


def _every_figure(
    paper: Paper,
    columns: Sequence[Column],
    rows: Sequence[tuple[FitDocument, CardRow]],
    table: PriceTable,
    book: Any,
) -> None:
    _write_rows(paper, 0, columns, rows, table, book, readable=False)
    paper.sheet.freeze_panes(1, [column.key for column in columns].index("card") + 1)
    paper.sheet.autofilter(0, 0, len(rows), len(columns) - 1)
    paper.fit_columns()
    paper.landscape(0, pages=3)


def _write_rows(
    paper: Paper,
    first: int,
    columns: Sequence[Column],
    rows: Sequence[tuple[FitDocument, CardRow]],
    table: PriceTable | None,
    book: Any,
    *,
    readable: bool,
) -> None:
    """A header in row `first`, then a row a card, the verdicts coloured; lots and totals follow the prices sheet, where
    its table is given.

    `readable` verdicts have their sign, others the words that programs look for.
    """
    words = set()
    keys = [column.key for column in columns]
    for at, (document, row) in enumerate(rows, start=first + 1):
        formulas = {} if table is None or not row.prices else _formulas(table, at, keys)
        for index, column in enumerate(columns):
            value = column.value(document, row)
            words |= {index} if isinstance(value, str) else set()
            if column.key == "verdict" and readable:
                paper.text(at, index, SYMBOLS[row.verdict])
            elif column.key in formulas and not isinstance(value, str):
                paper.formula(at, index, formulas[column.key], "money" if "price" in column.key else "count", value)
            else:
                _write_value(paper, at, index, value, column.key)
    paper.header(first, [titled(column.title, column.key) for column in columns], words)
    colour_verdicts(paper, book, first + 1, len(rows), keys.index("verdict"), readable=readable)


def _write_value(paper: Paper, at: int, index: int, value: Value, key: str) -> None:
    if key == "offered_on" and isinstance(value, str):
        paper.date(at, index, datetime.date.fromisoformat(value))
    else:
        paper.value(at, index, value, key)


def _formulas(table: PriceTable, at: int, keys: Sequence[str]) -> dict[str, str]:
    """The columns of a row that follow its cards and its seller's lots and prices."""
    card, book, needed, size, lots, idle = (
        cell(at, keys.index(key), fixed=True)
        for key in ("card", "offer_book", "cards_needed", "lot_size_cards", "lots", "idle_cards")
    )
    totals = {f"total_price_{days}_days": total_formula(lots, table.input(f"lot_{days}", card, book)) for days in TERMS}
    of_idle = {
        f"idle_price_{days}_days": idle_price_formula(
            cell(at, keys.index(f"total_price_{days}_days"), fixed=True), idle, lots, size
        )
        for days in TERMS
    }
    return (
        totals
        | of_idle
        | {
            "lot_size_cards": f"={table.input('lot_size', card, book)}",
            "lots": lots_formula(needed, size),
            "idle_cards": idle_formula(needed, size, lots),
        }
    )
