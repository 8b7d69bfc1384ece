"""What sellers ask for their lots, and which of their books are used. Frozen; a blank price is None, never 0."""

from __future__ import annotations

import datetime
from dataclasses import dataclass

import msgspec

from gpufit.catalog.row import Count, Rate, Row, Words
from gpufit.errors import UsageError

TERMS = (3, 7, 30)
"""The rental terms that an offer prices, in days."""


STALE_DAYS = 30
"""A price older than this has to be asked for again.

The longest term that a book prices: an order made on the day the price was read would have run out by now. Sellers move
faster than that: one of those behind the public figures changes its prices about every 18 hours
(https://dataoorts.com/pricing/, as recorded in github tardellirs/gpu-pricing src/data/offerings.json @8f09a680).
"""


class Offer(Row, frozen=True, kw_only=True):
    """One card in one seller's book: cards come in lots, and a lot is priced for a whole term."""

    card: Words
    """The card's id in the catalog."""
    lot_size: Count
    """Cards in a lot; a lot cannot be split."""
    price_3_days: Rate | None = None
    """One lot for 3 days, in the book's currency; None while blank."""
    price_7_days: Rate | None = None
    """One lot for 7 days."""
    price_30_days: Rate | None = None
    """One lot for 30 days."""
    source: Words | None = None
    """Where the lot size or the prices were read."""
    note: Words | None = None
    """What a buyer should know."""
    currency: Words | None = None
    """The book's."""

    @property
    def terms(self) -> tuple[int, ...]:
        """The terms that can be priced, in days."""
        return TERMS

    @property
    def prices(self) -> dict[int, float]:
        """Price of one lot by term in days; a blank price has no key."""
        by_term = zip(TERMS, (self.price_3_days, self.price_7_days, self.price_30_days), strict=True)
        return {term: price for term, price in by_term if price is not None}

    def price(self, term_days: int) -> float | None:
        """Price of one lot for a term; None while blank."""
        return self.prices.get(term_days)


class OfferBook(Row, frozen=True, kw_only=True):
    """What one seller asks, on one day."""

    name: Words
    """The file's name without its ending."""
    seller: Words | None = None
    """Who asks these prices."""
    currency: Words | None = None
    """`EUR`, `USD`: that of every price in the book."""
    date: datetime.date | None = None
    """The day the prices were read."""
    note: Words | None = None
    """What a buyer should know about all of them."""
    indicative: bool = False
    """Public figures to get a first idea from, which nobody offers: used only where the book is named."""
    offers: tuple[Offer, ...] = ()
    """At most one a card."""

    def offer(self, card_id: str) -> Offer:
        """The seller's offer of a card; for a card that is not in the book, one card a lot and no prices."""
        for offer in self.offers:
            if offer.card == card_id:
                return offer
        return Offer(card=card_id, lot_size=1, currency=self.currency)

    def lot_size(self, card_id: str) -> int:
        """Cards in a lot."""
        return self.offer(card_id).lot_size

    def completed_by(self, other: OfferBook) -> OfferBook:
        """This book with the lot sizes, but never the prices, of another for the cards it does not mention."""
        mentioned = {offer.card for offer in self.offers}
        added = tuple(
            Offer(
                card=offer.card,
                lot_size=offer.lot_size,
                source=offer.source,
                note=offer.note,
                currency=self.currency,
            )
            for offer in other.offers
            if offer.card not in mentioned
        )
        return msgspec.structs.replace(self, offers=self.offers + added)


@dataclass(frozen=True)
class Offers:
    """The books that prices are taken from, and the day from which their age counts."""

    books: tuple[OfferBook, ...]
    """In the order in which a card's prices are shown."""
    today: datetime.date

    def of(self, card_id: str) -> tuple[tuple[OfferBook, Offer], ...]:
        """What is asked for a card, seller by seller; where nobody has a price, the first book's lot.

        Raises UsageError where there is no book at all.
        """
        if not self.books:
            raise UsageError("the catalog has no offer book; gpufit catalog offers --template writes one")
        found = tuple((book, book.offer(card_id)) for book in self.books)
        return tuple((book, offer) for book, offer in found if offer.prices) or found[:1]

    def lot_size(self, card_id: str) -> int:
        """Cards in a lot of the first book that has a price for the card."""
        return self.of(card_id)[0][1].lot_size

    @property
    def names(self) -> str:
        """The books by name."""
        return ", ".join(book.name for book in self.books)

    def age_days(self, book: OfferBook) -> int | None:
        """How old a book's prices are; None for a book without a date, negative for a date that is still to come."""
        return None if book.date is None else (self.today - book.date).days

    def is_stale(self, book: OfferBook) -> bool:
        """Whether a book's prices have to be asked for again."""
        age = self.age_days(book)
        return age is not None and age > STALE_DAYS and any(offer.prices for offer in book.offers)
