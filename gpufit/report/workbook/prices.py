"""The sheet of lots and prices: what a seller asks is an input, what follows from it a formula.

Other sheets take lots and totals from here, so that a changed price changes them everywhere.
"""

from __future__ import annotations

from typing import Any

from gpufit.report.cells import SYMBOLS
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.workbook.paper import Paper
from gpufit.report.workbook.places import cell, column_range
from gpufit.report.workbook.verdicts import colour_verdicts

SHEET = "prices"

HEADER_ROW = 3

_CARD, _VERDICT, _NEEDED, _LOT_SIZE, _LOTS, _IDLE, _CURRENCY, _TERMS = range(8)
"""Columns; from the last on two a term, a lot's price and the total."""

_FIXED = ("card", "verdict", "cards needed", "lot size (cards)", "lots", "idle cards", "currency")


def write_prices(paper: Paper, document: FitDocument, book: Any) -> None:
    """A row a card; shaded cells are the reader's to change."""
    paper.text(0, 0, f"offers: {document.offers}", "bold", measured=False)
    words = "Shaded cells are yours to change: cards in a lot, and the price of one lot for the whole term."
    paper.text(
        1, 0, f"{words} Lots, idle cards and totals follow, here and on the other sheets.", "dim", measured=False
    )
    terms = [price.term_days for price in document.cards[0].prices] if document.cards else []
    titles = [title for days in terms for title in (f"price of a lot, {days} days", f"total, {days} days")]
    paper.header(HEADER_ROW, [*_FIXED, *titles], words=(_CARD, _VERDICT, _CURRENCY))
    for number, row in enumerate(document.cards):
        _write_row(paper, HEADER_ROW + 1 + number, row)
    if document.cards:
        _guard_inputs(paper, len(document.cards), len(terms))
    colour_verdicts(paper, book, HEADER_ROW + 1, len(document.cards), _VERDICT, readable=True)
    paper.sheet.freeze_panes(HEADER_ROW + 1, 1)
    paper.fit_columns()
    paper.landscape(HEADER_ROW)


def _write_row(paper: Paper, at: int, row: CardRow) -> None:
    needed, lot_size, lots = (cell(at, column) for column in (_NEEDED, _LOT_SIZE, _LOTS))
    paper.text(at, _CARD, row.card)
    paper.text(at, _VERDICT, SYMBOLS[row.verdict])
    paper.value(at, _NEEDED, row.cards_needed)
    paper.input(at, _LOT_SIZE, row.lot_size, "input count")
    paper.formula(at, _LOTS, f'=IF({needed}="","",ROUNDUP({needed}/{lot_size},0))', "count", row.lots)
    paper.formula(at, _IDLE, f'=IF({needed}="","",{lots}*{lot_size}-{needed})', "count", row.idle_cards)
    paper.value(at, _CURRENCY, row.prices[0].currency)
    for number, price in enumerate(row.prices):
        column = _TERMS + 2 * number
        paper.input(at, column, price.price_per_lot, "input money")
        asked = cell(at, column)
        paper.formula(at, column + 1, f'=IF(OR({lots}="",{asked}=""),"",{lots}*{asked})', "money", price.total_price)


def _guard_inputs(paper: Paper, cards: int, terms: int) -> None:
    """A price is more than nothing, a lot at least one card."""
    first, last = HEADER_ROW + 1, HEADER_ROW + cards
    whole = {
        "validate": "integer",
        "criteria": ">=",
        "value": 1,
        "error_message": "a whole number of cards, at least 1",
    }
    paper.sheet.data_validation(first, _LOT_SIZE, last, _LOT_SIZE, whole)
    price = {
        "validate": "decimal",
        "criteria": ">",
        "value": 0,
        "error_message": "a price above 0; leave it blank if not known",
    }
    for term in range(terms):
        paper.sheet.data_validation(first, _TERMS + 2 * term, last, _TERMS + 2 * term, price)


def order_formula(document: FitDocument, key: str, card: str) -> str | None:
    """The formula that takes a column of the cards table from this sheet; None for a column that is not here.

    It looks for what stands in the cell `card`, so that either sheet can be sorted.
    """
    columns = {"lot_size_cards": _LOT_SIZE, "lots": _LOTS, "idle_cards": _IDLE}
    for term, price in enumerate(document.cards[0].prices):
        columns[f"total_price_{price.term_days}_days"] = _TERMS + 2 * term + 1
    if key not in columns:
        return None
    first, last = HEADER_ROW + 1, HEADER_ROW + len(document.cards)
    cards = column_range(SHEET, _CARD, first, last)
    return f"=INDEX({column_range(SHEET, columns[key], first, last)},MATCH({card},{cards},0))"
