"""What sellers ask for cards that serve a scenario: a line a card and seller, and which is the cheapest of what can be
compared. Pure; every format takes its price lines from here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from gpufit.advice.lots import to_the_cent
from gpufit.catalog.offers import TERMS
from gpufit.report.cells import order_words
from gpufit.report.prices import BookFigures, Price


class Ordered(Protocol):
    """A card with what its sellers ask: a row of a document, or a card for all scenarios."""

    @property
    def card(self) -> str:
        """The card's id in the catalog."""

    @property
    def cards_needed(self) -> int | None:
        """None where no number of them serves."""

    @property
    def prices(self) -> tuple[Price, ...]:
        """Every term of every seller."""

    @property
    def room_bytes(self) -> int | None:
        """Headroom of the fullest device as the card is taken; None where it is not known."""


@dataclass(frozen=True)
class OfferLine:
    """All terms of one seller's offer of one card."""

    card: str
    cards_needed: int | None
    prices: tuple[Price, ...]
    """One or more, all of one seller."""
    book: BookFigures | None
    """The book that they stand in; None where the document does not have it."""
    room_bytes: int | None = None
    """Headroom of the fullest device as the card is taken; None where it is not known."""

    @property
    def first(self) -> Price:
        """Any of them, for what they share."""
        return self.prices[0]

    @property
    def offered(self) -> bool:
        """Whether there is a price for some term."""
        return any(one.price_per_lot is not None for one in self.prices)

    @property
    def seller(self) -> str:
        """Who asks, or the book where that does not say it; empty where nobody asks anything."""
        return (self.first.seller or self.first.book) if self.offered else ""

    @property
    def priced(self) -> bool:
        """Whether there is a total for some term."""
        return any(one.total_price is not None for one in self.prices)

    @property
    def stale(self) -> bool:
        """Whether the prices have to be asked for again."""
        return self.book is not None and self.book.stale

    @property
    def kind(self) -> tuple[bool, str]:
        """Whether it is a public figure, and the currency: only prices of one kind are compared."""
        return (self.book is not None and self.book.indicative, self.first.currency or "")

    @property
    def lots(self) -> str:
        """What to order, in words."""
        return order_words(self.first.lots, self.first.lot_size or 1, self.first.idle_cards)

    def of(self, days: int) -> Price | None:
        """The price of a term."""
        return next((one for one in self.prices if one.term_days == days), None)


def offer_lines(cards: Iterable[Ordered], books: Sequence[BookFigures]) -> tuple[OfferLine, ...]:
    """A line for each card and seller, in the order of both."""
    by_name = {book.name: book for book in books}
    found = []
    for card in cards:
        for name in dict.fromkeys(price.book for price in card.prices):
            prices = tuple(price for price in card.prices if price.book == name)
            found.append(OfferLine(card.card, card.cards_needed, prices, by_name.get(name), card.room_bytes))
    return tuple(found)


def cheapness(line: OfferLine, days: int) -> tuple[bool, float, int, int]:
    """The order of lines of one kind, cheapest first: by the total of a term, then fewest cards, then most headroom.
    Lines that are in the catalog's order stay so where they are alike in all; what has no total comes last."""
    price = line.of(days)
    total = None if price is None else price.total_price
    return (total is None, total or 0.0, line.cards_needed or 0, -(line.room_bytes or 0))


def money(amount: float) -> str:
    """An amount with two decimals, or four significant digits below 1: what a thousand inputs cost is small."""
    return f"{to_the_cent(amount):,.2f}" if amount >= 1 else f"{amount:.4g}"


def total_text(price: Price | None) -> str:
    """The price of all lots, marked where it is hardly meant; empty where there is none."""
    if price is None or price.total_price is None:
        return ""
    return f"{money(price.total_price)}, odd" if price.odd else money(price.total_price)


def day_text(line: OfferLine) -> str:
    """The day of the prices, marked where they have to be asked for again."""
    day = line.first.offered_on
    return "" if day is None else f"{day}, stale" if line.stale else str(day)


def offer_words(lines: Sequence[OfferLine]) -> Iterator[str]:
    """The cheapest, the terms and the cards without a price, and prices that are hardly meant."""
    for days in TERMS:
        yield from _cheapest(lines, days)
    for kind in _kinds(lines):
        missing = [days for days in TERMS if not _ranked(lines, days, kind)]
        if missing:
            yield _no_price(kind, _listed(missing))
    yield from _unpriced(lines)
    yield from _odd(lines)


def term_words(lines: Sequence[OfferLine], days: int) -> Iterator[str]:
    """The same of one term alone: the cheapest of each kind, and what has no price for it but one for another."""
    yield from _cheapest(lines, days)
    yield from (_no_price(kind, str(days)) for kind in _kinds(lines) if not _ranked(lines, days, kind))


def _cheapest(lines: Sequence[OfferLine], days: int) -> Iterator[str]:
    """The lowest total of a term: in each currency by itself, public figures apart from offers."""
    if sum(line.priced for line in lines) < 2:
        return
    kinds = _kinds(lines)
    for kind in kinds:
        same = _ranked(lines, days, kind)
        if same:
            among = _among(kind) if len(kinds) > 1 else ""
            yield f"cheapest{among}, {days} days: {_answer(same[0][1], days)}{_runner_up(same, days)}"


def _kinds(lines: Sequence[OfferLine]) -> list[tuple[bool, str]]:
    return sorted({line.kind for line in lines if line.priced})


def _ranked(lines: Sequence[OfferLine], days: int, kind: tuple[bool, str]) -> list[tuple[float, OfferLine]]:
    """The totals of a term and kind, cheapest first."""
    found = []
    for line in sorted(lines, key=lambda line: cheapness(line, days)):
        price = line.of(days)
        if line.kind == kind and price is not None and price.total_price is not None:
            found.append((price.total_price, line))
    return found


def _no_price(kind: tuple[bool, str], days: str) -> str:
    public, currency = kind
    what = "public figure" if public else "price"
    return f"no {f'{currency} ' if currency else ''}{what} for {days} days"


def _listed(days: Sequence[int]) -> str:
    """`3`, `3 and 30`."""
    return " and ".join(map(str, days))


def _answer(line: OfferLine, days: int) -> str:
    price = line.of(days)
    asked = "" if price is None or price.total_price is None else money(price.total_price)
    return f"{line.card} at {asked} {line.first.currency or ''} ({', '.join([line.seller, *_doubts(line, days)])})"


def _doubts(line: OfferLine, days: int) -> Iterator[str]:
    """What keeps a price from being counted on."""
    price = line.of(days)
    if line.stale:
        yield "stale"
    if price is not None and price.odd:
        yield "odd"


def _runner_up(same: Sequence[tuple[float, OfferLine]], days: int) -> str:
    """The next cheapest card, and by how much it lost; nothing where no other card has a price."""
    amount, least = same[0]
    for other, line in same:
        if line.card != least.card:
            # Beside a price that is hardly meant, a share of it means nothing.
            more = [] if "odd" in _doubts(least, days) else [f"+{other / amount - 1:.0%}"]
            said = ", ".join([*more, *_doubts(line, days)])
            return f"; then {line.card} at {money(other)}{f' ({said})' if said else ''}"
    return ""


def _among(kind: tuple[bool, str]) -> str:
    public, currency = kind
    return f" {'public figure' if public else 'offer'} in {currency}"


def _unpriced(lines: Sequence[OfferLine]) -> Iterator[str]:
    """Cards that serve and have no price, where others have one: the cheapest may be among them."""
    priced = {line.card for line in lines if line.priced}
    missing = dict.fromkeys(line.card for line in lines if line.cards_needed is not None and line.card not in priced)
    if priced and missing:
        yield f"no price, and so not compared: {', '.join(missing)}"


def _odd(lines: Sequence[OfferLine]) -> Iterator[str]:
    for line in lines:
        for price in line.prices:
            if price.odd and price.price_per_lot is not None and price.total_price is not None:
                yield (
                    f"odd, ask before you count on it: {line.card}, {price.term_days} days of {line.seller}, "
                    f"{money(price.price_per_lot)} a lot ({price.odd})"
                )
