"""What a fit document says of prices, speed and cost: records, and how they come from offers and a verdict."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence

from gpufit.advice.lots import lots_for, to_the_cent
from gpufit.advice.throughput import (
    NoThroughput,
    Throughput,
    cost_per_million_tokens,
    cost_per_thousand_inputs,
    throughput_on,
)
from gpufit.advice.verdict import Arrangement, CardVerdict
from gpufit.catalog.odd_prices import odd_prices
from gpufit.catalog.offers import Offer, OfferBook, Offers
from gpufit.memory.terms import Shape
from gpufit.profile.base import Record
from gpufit.profile.evidence import Evidence
from gpufit.profile.record import Profile


class Price(Record, frozen=True, kw_only=True):
    """One term of one seller's offer; the price is null while the book leaves it blank."""

    term_days: int
    currency: str | None
    """Null, as `seller` and `offered_on`, of a card for which the book has no price of any term."""
    price_per_lot: float | None
    total_price: float | None
    """For all lots of the line."""
    book: str = ""
    """The offer book that it stands in, or that the lots are from."""
    seller: str | None = None
    offered_on: datetime.date | None = None
    """The day on which it was read."""
    lot_size: int | None = None
    """Cards in a lot of this seller."""
    lots: int | None = None
    """Lots of this seller for the cards that are needed; null where no number of cards serves the scenario."""
    idle_cards: int | None = None
    """Cards paid for and not needed."""
    odd: str | None = None
    """Why the price is hardly meant, in words; null where nothing is odd about it."""
    idle_price: float | None = None
    """Their share of the total: `total_price` x idle cards / cards paid for, part of every cost below."""
    cost_per_million_tokens: float | None = None
    """Of the row's throughput at full use of the whole term: of generated tokens, where any are, or of prompt tokens.
    Null without a throughput; its evidence is the throughput's."""
    cost_per_thousand_inputs: float | None = None
    """The same for a thousand inputs."""


class BookFigures(Record, frozen=True, kw_only=True):
    """One of the offer books that lots and prices come from."""

    name: str
    seller: str | None
    currency: str | None
    offered_on: datetime.date | None
    """The day on which its prices were read."""
    age_days: int | None
    """How long ago that was; negative for a date that is still to come."""
    stale: bool
    """Whether they have to be asked for again."""
    indicative: bool
    """Public figures that nobody offers."""
    notes: tuple[str, ...]
    """What a buyer should know about them, in words."""


class ThroughputFigures(Record, frozen=True, kw_only=True):
    """How fast the card worked where it was measured: rates of all copies together, over the cell's whole wall time."""

    inputs_per_second: float
    generated_tokens_per_second: float | None
    """Time for the prompts included; null where nothing is generated."""
    prompt_tokens_per_second: float
    """Time for the new tokens included."""
    copies: int
    """Copies that work side by side."""
    cell_context_tokens: int
    """The measured cell that the rates come from."""
    cell_new_tokens: int
    cell_concurrency: int
    cell_inputs_completed: int
    cell_wall_seconds: float
    lower_bound: bool
    """Whether the scenario itself was not measured and the cell is one that is no easier: at least these rates."""
    how: str
    """The computation in words."""
    evidence: Evidence


def throughput_of(profile: Profile, verdict: CardVerdict, shape: Shape) -> Throughput | NoThroughput | None:
    """The rate of the whole copies that serve a scenario; None where none do."""
    if verdict.arrangement not in (Arrangement.SINGLE, Arrangement.REPLICAS):
        return None
    single = verdict.arrangement is Arrangement.SINGLE or not verdict.max_concurrency
    copies = 1 if single else -(-shape.concurrency // (verdict.max_concurrency or 1))
    each = Shape(shape.context_tokens, shape.new_tokens, shape.concurrency // copies)
    found = throughput_on(profile, verdict.card, each)
    return found.of_copies(copies) if isinstance(found, Throughput) else found


def throughput_figures(rate: Throughput) -> ThroughputFigures:
    """A rate as it stands in the document."""
    return ThroughputFigures(
        inputs_per_second=rate.inputs_per_second,
        generated_tokens_per_second=rate.generated_tokens_per_second,
        prompt_tokens_per_second=rate.prompt_tokens_per_second,
        copies=rate.copies,
        cell_context_tokens=rate.cell.context_tokens,
        cell_new_tokens=rate.cell.new_tokens,
        cell_concurrency=rate.cell.concurrency,
        cell_inputs_completed=rate.inputs_completed,
        cell_wall_seconds=rate.wall_seconds,
        lower_bound=not rate.is_asked_cell,
        how=rate.how,
        evidence=rate.evidence,
    )


def prices_of(
    offers: Sequence[tuple[OfferBook, Offer]], cards_needed: int | None, rate: Throughput | None = None
) -> tuple[Price, ...]:
    """Every term of every offer, with the price of its lots for so many cards where both are known."""
    return tuple(_price(book, offer, term, cards_needed, rate) for book, offer in offers for term in offer.terms)


def _price(book: OfferBook, offer: Offer, term: int, cards_needed: int | None, rate: Throughput | None) -> Price:
    lots = None if cards_needed is None else lots_for(cards_needed, offer.lot_size)
    price = offer.price(term)
    total = None if price is None or lots is None else lots.price(price)
    return Price(
        term_days=term,
        currency=offer.currency if offer.prices else None,
        price_per_lot=price,
        total_price=total,
        book=book.name,
        seller=book.seller if offer.prices else None,
        offered_on=book.date if offer.prices else None,
        lot_size=offer.lot_size,
        lots=None if lots is None else lots.lots,
        idle_cards=None if lots is None else lots.idle_cards,
        odd=odd_prices(offer).get(term),
        idle_price=None if total is None or lots is None else to_the_cent(total * lots.idle_cards / lots.cards),
        cost_per_million_tokens=None if total is None or rate is None else cost_per_million_tokens(total, term, rate),
        cost_per_thousand_inputs=None if total is None or rate is None else cost_per_thousand_inputs(total, term, rate),
    )


def book_figures(offers: Offers) -> tuple[BookFigures, ...]:
    """The books as they stand on the day of the offers."""
    return tuple(
        BookFigures(
            name=book.name,
            seller=book.seller,
            currency=book.currency,
            offered_on=book.date,
            age_days=offers.age_days(book),
            stale=offers.is_stale(book),
            indicative=book.indicative,
            notes=tuple(_book_notes(book, offers)),
        )
        for book in offers.books
    )


def _book_notes(book: OfferBook, offers: Offers) -> Iterator[str]:
    age = offers.age_days(book)
    if offers.is_stale(book):
        yield f"prices of {book.name} are {age} days old ({book.date}): ask again"
    if age is not None and age < 0:
        yield f"prices of {book.name} are dated {book.date}, a day still to come: correct the date"
    if book.note is not None:
        yield f"prices of {book.name}: {book.note}"


def price_notes(books: Sequence[BookFigures], rows: Sequence[tuple[Price, ...]]) -> Iterator[str]:
    """What a reader should know about the prices of these rows: their books' notes, and what is not compared."""
    lines = [line for row in rows for line in row if line.price_per_lot is not None]
    shown = {line.book for line in lines}
    for book in books:
        if book.name in shown:
            yield from book.notes
    currencies = sorted({line.currency for line in lines if line.currency is not None})
    if len(currencies) > 1:
        yield f"prices in {' and '.join(currencies)} are never added up or ranked against each other"
    if any(len({line.lot_size for line in row}) > 1 for row in rows):
        yield "sellers differ in their lots: a card's row shows the first seller's, each price is for its own seller's"
