"""The sheet of lots and prices: what a seller asks is an input, what follows from it a formula.

Other sheets take lot sizes and prices from here, so that a changed one changes them everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from gpufit.advice.verdict import Verdict
from gpufit.catalog.offers import TERMS
from gpufit.report.cells import SYMBOLS
from gpufit.report.document import FitDocument
from gpufit.report.fits_document import FitsDocument
from gpufit.report.offer_lines import OfferLine, offer_lines
from gpufit.report.workbook.order_formulas import idle_formula, idle_price_formula, lots_formula, total_formula
from gpufit.report.workbook.paper import Paper
from gpufit.report.workbook.places import cell, column_range
from gpufit.report.workbook.verdicts import colour_verdicts

SHEET = "prices"

HEADER_ROW = 3
_FIRST = HEADER_ROW + 1

_OF_A_QUESTION = (
    "verdict",
    "needed",
    "lots",
    "idle",
    *(f"{what}_{days}" for days in TERMS for what in ("total", "idle")),
)
"""Columns of what one question makes of the offers."""

_TITLES = {
    "card": "card",
    "verdict": "verdict",
    "needed": "cards needed",
    "lot_size": "lot size (cards)",
    "lots": "lots",
    "idle": "idle cards",
    "seller": "seller",
    "book": "offer book",
    "kind": "prices are",
    "currency": "currency",
    "offered_on": "offered on",
    "stale": "stale",
    **{
        key: title
        for days in TERMS
        for key, title in ((f"lot_{days}", f"price of a lot, {days} days"), (f"total_{days}", f"total, {days} days"))
    },
    **{f"idle_{days}": f"of it for idle cards, {days} days" for days in TERMS},
    "odd": "odd prices",
}
"""Columns by their keys, in their order."""

_WORDS = ("card", "verdict", "seller", "book", "kind", "currency", "offered_on", "stale", "odd")


@dataclass(frozen=True)
class PriceTable:
    """The rows of the sheet, a card and seller each, and where the formulas of all sheets find them."""

    offers: str
    """The books, by name."""
    lines: tuple[OfferLine, ...]
    verdicts: Mapping[str, Verdict] | None
    """By card, of the one question that is asked; None where several are, whose lots and totals stand elsewhere."""
    _at: dict[str, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        kept = [key for key in _TITLES if self.verdicts is not None or key not in _OF_A_QUESTION]
        object.__setattr__(self, "_at", {key: at for at, key in enumerate(kept)})

    @classmethod
    def of(cls, document: FitDocument) -> PriceTable:
        """The offers of one question's cards."""
        verdicts = {row.card: row.verdict for row in document.cards}
        return cls(document.offers, offer_lines(document.cards, document.offer_books), verdicts)

    @classmethod
    def of_all(cls, documents: FitsDocument) -> PriceTable:
        """The offers of all questions' cards, each of them once."""
        lines: dict[tuple[str, str], OfferLine] = {}
        for document in documents.documents:
            for line in offer_lines(document.cards, document.offer_books):
                lines.setdefault((line.card, line.first.book), line)
        return cls(documents.documents[0].offers, tuple(lines.values()), None)

    def input(self, key: str, card: str, book: str) -> str:
        """The input of the row whose card and offer book stand in two cells, wherever either sheet is sorted, as part
        of a formula; there has to be such a row."""
        cards = self._range("card")
        met = f"({cards}={card})*({self._range('book')}={book})*(ROW({cards})-{_FIRST})"
        return f"INDEX({self._range(key)},SUMPRODUCT({met}))"

    def first_input(self, key: str, card: str) -> str:
        """The same of the first row of a card, whoever sells it."""
        return f"INDEX({self._range(key)},MATCH({card},{self._range('card')},0))"

    def _range(self, key: str) -> str:
        return column_range(SHEET, self._at[key], _FIRST, _FIRST + len(self.lines) - 1)

    def write(self, paper: Paper, book: Any) -> None:
        """A row a card and seller; shaded cells are the reader's to change."""
        paper.text(0, 0, f"offers: {self.offers}", "bold", measured=False)
        words = "Shaded cells are yours to change: cards in a lot, and the price of one lot for the whole term."
        follow = "Lots, idle cards and totals follow on all sheets."
        paper.text(1, 0, f"{words} {follow}", "dim", measured=False)
        words_at = [self._at[key] for key in _WORDS if key in self._at]
        paper.header(HEADER_ROW, [_TITLES[key] for key in self._at], words_at)
        for at, line in enumerate(self.lines, start=_FIRST):
            self._offer(paper, at, line)
            if self.verdicts is not None:
                self._answer(paper, at, line, self.verdicts[line.card])
        if self.lines:
            self._guard_inputs(paper)
        if self.verdicts is not None:
            colour_verdicts(paper, book, _FIRST, len(self.lines), self._at["verdict"], readable=True)
        paper.sheet.freeze_panes(_FIRST, 1)
        paper.fit_columns()
        paper.landscape(HEADER_ROW)

    def _offer(self, paper: Paper, at: int, line: OfferLine) -> None:
        """What the seller's book says."""
        paper.input(at, self._at["lot_size"], line.first.lot_size, "input count")
        for key, words in offer_facts(line):
            if key in self._at:
                paper.value(at, self._at[key], words)
        paper.date(at, self._at["offered_on"], line.first.offered_on)
        for days in TERMS:
            price = line.of(days)
            paper.input(at, self._at[f"lot_{days}"], None if price is None else price.price_per_lot, "input money")
        paper.value(at, self._at["odd"], odd_text(line))

    def _answer(self, paper: Paper, at: int, line: OfferLine, verdict: Verdict) -> None:
        """What follows for the question."""
        needed, size, lots, idle = (cell(at, self._at[key]) for key in ("needed", "lot_size", "lots", "idle"))
        paper.text(at, self._at["verdict"], SYMBOLS[verdict])
        paper.value(at, self._at["needed"], line.cards_needed)
        paper.formula(at, self._at["lots"], lots_formula(needed, size), "count", line.first.lots)
        paper.formula(at, self._at["idle"], idle_formula(needed, size, lots), "count", line.first.idle_cards)
        for days in TERMS:
            price, asked = line.of(days), cell(at, self._at[f"lot_{days}"])
            total = None if price is None else price.total_price
            paper.formula(at, self._at[f"total_{days}"], total_formula(lots, asked), "money", total)
            share = idle_price_formula(cell(at, self._at[f"total_{days}"]), idle, lots, size)
            of_idle = None if price is None else price.idle_price
            paper.formula(at, self._at[f"idle_{days}"], share, "money", of_idle)

    def _guard_inputs(self, paper: Paper) -> None:
        """A price is more than nothing, a lot at least one card."""
        first, last = _FIRST, _FIRST + len(self.lines) - 1
        whole = {
            "validate": "integer",
            "criteria": ">=",
            "value": 1,
            "error_message": "a whole number of cards, at least 1",
        }
        price = {
            "validate": "decimal",
            "criteria": ">",
            "value": 0,
            "error_message": "a price above 0; leave it blank if not known",
        }
        guards = {"lot_size": whole} | {f"lot_{days}": price for days in TERMS}
        for key, guard in guards.items():
            paper.sheet.data_validation(first, self._at[key], last, self._at[key], guard)


def offer_facts(line: OfferLine) -> Iterable[tuple[str, str | None]]:
    """What stands beside an offer's prices, by column: whose they are, in what, and whether they can be counted on."""
    kind = "public figures" if line.book is not None and line.book.indicative else "an offer"
    return (
        ("card", line.card),
        ("seller", line.seller or None),
        ("book", line.first.book),
        ("kind", kind if line.offered else None),
        ("currency", line.first.currency),
        ("stale", "stale" if line.offered and line.stale else None),
    )


def odd_text(line: OfferLine) -> str | None:
    """Which prices of an offer are hardly meant, and why."""
    return "; ".join(f"{price.term_days} days: {price.odd}" for price in line.prices if price.odd) or None
