"""The sheet of lots and prices: what a seller asks is an input, what follows from it a formula.

Other sheets take lots and totals from here, so that a changed price changes them everywhere.
"""

from __future__ import annotations

from typing import Any

from gpufit.catalog.offers import TERMS
from gpufit.report.cells import SYMBOLS
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.price_text import day_text
from gpufit.report.rows import by_seller
from gpufit.report.workbook.paper import Paper
from gpufit.report.workbook.places import cell, column_range
from gpufit.report.workbook.verdicts import colour_verdicts

SHEET = "prices"

HEADER_ROW = 3

_CARD, _VERDICT, _NEEDED, _LOT_SIZE, _LOTS, _IDLE, _SELLER, _OFFERED, _CURRENCY, _TERMS = range(10)
"""Columns; from the last on two a term, a lot's price and the total, then one a term, what of it is for idle cards."""
_IDLE_PRICES = _TERMS + 2 * len(TERMS)

_FIXED = (
    "card",
    "verdict",
    "cards needed",
    "lot size (cards)",
    "lots",
    "idle cards",
    "seller",
    "offered on",
    "currency",
)


def write_prices(paper: Paper, document: FitDocument, book: Any) -> None:
    """A row a card and seller; shaded cells are the reader's to change."""
    rows = [sold for row in document.cards for sold in by_seller(row)]
    paper.text(0, 0, f"offers: {document.offers}", "bold", measured=False)
    words = "Shaded cells are yours to change: cards in a lot, and the price of one lot for the whole term."
    follow = "Lots, idle cards and totals follow, here and on the other sheets"
    first = ", which take the first line of a card." if len(rows) > len(document.cards) else "."
    paper.text(1, 0, f"{words} {follow}{first}", "dim", measured=False)
    titles = [title for days in TERMS for title in (f"price of a lot, {days} days", f"total, {days} days")]
    titles += [f"of it for idle cards, {days} days" for days in TERMS]
    paper.header(HEADER_ROW, [*_FIXED, *titles], words=(_CARD, _VERDICT, _SELLER, _OFFERED, _CURRENCY))
    for number, row in enumerate(rows):
        _write_row(paper, HEADER_ROW + 1 + number, document, row)
    if rows:
        _guard_inputs(paper, len(rows))
    colour_verdicts(paper, book, HEADER_ROW + 1, len(rows), _VERDICT, readable=True)
    paper.sheet.freeze_panes(HEADER_ROW + 1, 1)
    paper.fit_columns()
    paper.landscape(HEADER_ROW)


def _write_row(paper: Paper, at: int, document: FitDocument, row: CardRow) -> None:
    needed, lot_size, lots = (cell(at, column) for column in (_NEEDED, _LOT_SIZE, _LOTS))
    paper.text(at, _CARD, row.card)
    paper.text(at, _VERDICT, SYMBOLS[row.verdict])
    paper.value(at, _NEEDED, row.cards_needed)
    paper.input(at, _LOT_SIZE, row.lot_size, "input count")
    paper.formula(at, _LOTS, f'=IF({needed}="","",ROUNDUP({needed}/{lot_size},0))', "count", row.lots)
    paper.formula(at, _IDLE, f'=IF({needed}="","",{lots}*{lot_size}-{needed})', "count", row.idle_cards)
    seller, by_term = row.prices[0], {price.term_days: price for price in row.prices}
    paper.value(at, _SELLER, seller.seller or seller.book)
    paper.value(at, _OFFERED, day_text(document, seller) or None)
    paper.value(at, _CURRENCY, seller.currency)
    for number, days in enumerate(TERMS):
        column, price = _TERMS + 2 * number, by_term.get(days)
        paper.input(at, column, None if price is None else price.price_per_lot, "input money")
        asked, total = cell(at, column), None if price is None else price.total_price
        paper.formula(at, column + 1, f'=IF(OR({lots}="",{asked}=""),"",{lots}*{asked})', "money", total)
        whole, idle = cell(at, column + 1), cell(at, _IDLE)
        share = f'=IF({whole}="","",{whole}*{idle}/({lots}*{lot_size}))'
        paper.formula(at, _IDLE_PRICES + number, share, "money", None if price is None else price.idle_price)


def _guard_inputs(paper: Paper, rows: int) -> None:
    """A price is more than nothing, a lot at least one card."""
    first, last = HEADER_ROW + 1, HEADER_ROW + rows
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
    for term in range(len(TERMS)):
        paper.sheet.data_validation(first, _TERMS + 2 * term, last, _TERMS + 2 * term, price)


def order_formula(document: FitDocument, key: str, card: str) -> str | None:
    """The formula that takes a column of the cards table from this sheet; None for a column that is not here.

    It looks for what stands in the cell `card`, so that either sheet can be sorted; of several sellers of a card it
    takes the one that stands first.
    """
    columns = {"lot_size_cards": _LOT_SIZE, "lots": _LOTS, "idle_cards": _IDLE}
    for term, days in enumerate(TERMS):
        columns[f"total_price_{days}_days"] = _TERMS + 2 * term + 1
        columns[f"idle_price_{days}_days"] = _IDLE_PRICES + term
    if key not in columns:
        return None
    first, last = HEADER_ROW + 1, HEADER_ROW + sum(len(by_seller(row)) for row in document.cards)
    cards = column_range(SHEET, _CARD, first, last)
    return f"=INDEX({column_range(SHEET, columns[key], first, last)},MATCH({card},{cards},0))"
