"""What can be ordered: a line for each card, arrangement and seller, in an order of one's own. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpufit.catalog.offers import TERMS
from gpufit.profile.evidence import Evidence
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.offer_lines import OfferLine, cheapness
from gpufit.report.plans import ArrangementFigures
from gpufit.report.prices import BookFigures, Price
from gpufit.report.rows import by_arrangement, by_seller
from gpufit.tui.listing import after
from gpufit.tui.state import Event, jump


class OrderSort(enum.StrEnum):
    """The order of the lines, as it reads on screen."""

    CARDS = "as the cards are listed"
    TOTAL = "lowest total first"


@dataclass(frozen=True)
class Ordering:
    """What keys change on the screen of orders."""

    cursor: int = 0
    """Place in the list."""
    term_days: int = TERMS[0]
    """The term whose prices are sorted and shown where there is no room for all."""
    sort: OrderSort = OrderSort.CARDS


@dataclass(frozen=True)
class OrderLine:
    """One card, taken in one way, from one seller."""

    row: CardRow
    """With that arrangement, and the prices of that seller, alone."""
    book: BookFigures | None
    """None without any offer."""

    @property
    def plan(self) -> ArrangementFigures | None:
        """The arrangement; None where no number of these cards surely serves the scenario."""
        return self.row.arrangements[0] if self.row.arrangements else None

    @property
    def evidence(self) -> Evidence:
        """Of the need of each card."""
        return self.row.evidence if self.plan is None else self.plan.evidence

    @property
    def offer(self) -> OfferLine | None:
        """The seller's terms for this arrangement; None without any offer."""
        row = self.row
        return OfferLine(row.card, row.cards_needed, row.prices, self.book, row.room_bytes) if row.prices else None

    def price(self, days: int) -> Price | None:
        """One term of the seller's; None where there is no offer."""
        return next((price for price in self.row.prices if price.term_days == days), None)

    def total(self, days: int) -> float | None:
        """For all lots; None where it is not known."""
        price = self.price(days)
        return None if price is None else price.total_price


def order_lines(document: FitDocument, rows: Iterable[CardRow], ordering: Ordering) -> tuple[OrderLine, ...]:
    """The lines of these rows of a document. What serves comes first; of lowest totals each currency by itself, what
    somebody offers before what nobody does, and what has no price last; of equal ones as `offer_lines.cheapness` has
    it."""
    books = {book.name: book for book in document.offer_books}
    by_total = ordering.sort is OrderSort.TOTAL
    if by_total:
        places = {card.card: place for place, card in enumerate(document.cards)}
        rows = sorted(rows, key=lambda row: places[row.card])
    lines = [
        OrderLine(sold, books.get(sold.prices[0].book) if sold.prices else None)
        for row in rows
        for arranged in by_arrangement(row)
        for sold in by_seller(arranged)
    ]
    return tuple(sorted(lines, key=lambda line: (line.plan is None, *(_rank(line, ordering) if by_total else ()))))


def _rank(line: OrderLine, ordering: Ordering) -> tuple[bool, tuple[bool, str], tuple[bool, float, int, int]]:
    offer = line.offer
    if offer is None:
        return (True, (False, ""), (True, 0.0, 0, 0))
    return (line.total(ordering.term_days) is None, offer.kind, cheapness(offer, ordering.term_days))


def move(ordering: Ordering, event: Event, page: int, count: int) -> Ordering:
    """The cursor after a key; beyond either end it stays at that end."""
    return replace(ordering, cursor=jump(event, ordering.cursor, page, count))


def put(ordering: Ordering, place: int, count: int) -> Ordering:
    """The cursor at a place of a list of so many."""
    return replace(ordering, cursor=max(0, min(place, count - 1)))


def next_term(ordering: Ordering) -> Ordering:
    """The next longer term; after the longest, the shortest."""
    return replace(ordering, term_days=after(ordering.term_days, TERMS))


def next_sort(ordering: Ordering) -> Ordering:
    """The next order, from its first line."""
    return replace(ordering, sort=after(ordering.sort, tuple(OrderSort)), cursor=0)


def place_of(lines: Sequence[OrderLine], card: str | None) -> int:
    """The first line of a card; 0 where it has none."""
    return next((place for place, line in enumerate(lines) if line.row.card == card), 0)
