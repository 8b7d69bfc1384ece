"""A block of a sheet to read and print: what to order, of whom, at what price, a line a card and seller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpufit.catalog.offers import TERMS
from gpufit.report.offer_lines import OfferLine
from gpufit.report.workbook.order_formulas import idle_formula, lots_formula, total_formula
from gpufit.report.workbook.paper import COLOURS, Paper
from gpufit.report.workbook.places import cell, rows_of
from gpufit.report.workbook.prices import PriceTable, odd_text, offer_facts

_TITLES = (
    "card",
    "cards",
    "lot size (cards)",
    "lots",
    "idle cards",
    *(f"total, {days} days" for days in TERMS),
    "currency",
    "seller",
    "prices are",
    "offered on",
    "stale",
    "odd prices",
    "offer book",
)
_CARD, _NEEDED, _SIZE, _LOTS, _IDLE, _TOTALS = range(6)
_CURRENCY = _TOTALS + len(TERMS)
_SELLER, _KIND, _OFFERED, _STALE, _ODD, _BOOK = range(_CURRENCY + 1, _CURRENCY + 7)
_AT = {"card": _CARD, "seller": _SELLER, "book": _BOOK, "kind": _KIND, "currency": _CURRENCY, "stale": _STALE}


def write_orders(paper: Paper, first: int, lines: Sequence[OfferLine], table: PriceTable, book: Any) -> int:
    """A header in row `first` and a row for each offer of cards that serve, the cheapest of its currency and term on
    green; the result is the row after them."""
    served = [line for line in lines if line.cards_needed is not None]
    paper.header(first, _TITLES, (_CARD, _CURRENCY, _SELLER, _KIND, _OFFERED, _STALE, _ODD, _BOOK))
    for at, line in enumerate(served, start=first + 1):
        _line(paper, at, line, table)
    end = first + 1 + len(served)
    if served:
        _mark_cheapest(paper, book, first + 1, end - 1)
    return end


CHEAPEST = "green: the cheapest of its currency and term, offers and public figures each by themselves"
"""What the colour of a total means."""


def _line(paper: Paper, at: int, line: OfferLine, table: PriceTable) -> None:
    for key, words in offer_facts(line):
        paper.value(at, _AT[key], words)
    paper.value(at, _ODD, odd_text(line))
    paper.date(at, _OFFERED, line.first.offered_on)
    paper.value(at, _NEEDED, line.cards_needed)
    card, seller = (cell(at, column, fixed=True) for column in (_CARD, _BOOK))
    needed, size, lots = (cell(at, column) for column in (_NEEDED, _SIZE, _LOTS))
    paper.formula(at, _SIZE, f"={table.input('lot_size', card, seller)}", "count", line.first.lot_size)
    paper.formula(at, _LOTS, lots_formula(needed, size), "count", line.first.lots)
    paper.formula(at, _IDLE, idle_formula(needed, size, lots), "count", line.first.idle_cards)
    for column, days in enumerate(TERMS, start=_TOTALS):
        price = line.of(days)
        total = None if price is None else price.total_price
        formula = total_formula(lots, table.input(f"lot_{days}", card, seller))
        paper.formula(at, column, formula, "money", total)


def _mark_cheapest(paper: Paper, book: Any, first: int, last: int) -> None:
    """A colour behind each total that no other of the same currency and kind is below."""

    for column in range(_TOTALS, _TOTALS + len(TERMS)):
        own, totals = cell(first, column), rows_of(column, first, last)
        alike = "*".join(f"({rows_of(one, first, last)}={cell(first, one, fixed=True)})" for one in (_CURRENCY, _KIND))
        rule = {
            "type": "formula",
            "criteria": f"=AND(ISNUMBER({own}),SUMPRODUCT({alike}*ISNUMBER({totals})*({totals}<{own}))=0)",
            "format": book.add_format({"bg_color": COLOURS["fits"]}),
        }
        paper.sheet.conditional_format(first, column, last, column, rule)
