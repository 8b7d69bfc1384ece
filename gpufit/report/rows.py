"""A card's row taken apart: one for each way to take the card, and of those one for each seller."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import structs

from gpufit.report.document import CardRow, FitDocument
from gpufit.report.plans import ArrangementFigures


def rows_of(document: FitDocument) -> Iterator[CardRow]:
    """Card x arrangement x seller, in the document's order; a card without arrangement or seller has one row."""
    for card in document.cards:
        for arranged in by_arrangement(card):
            yield from by_seller(arranged)


def by_arrangement(row: CardRow) -> tuple[CardRow, ...]:
    """The row once for each of its arrangements, with that one alone: its cards, lots and prices. What is said of one
    card repeats; a throughput stands only at the first, which it is of."""
    return tuple(_as_arranged(row, plan, first=plan is row.arrangements[0]) for plan in row.arrangements) or (row,)


def _as_arranged(row: CardRow, plan: ArrangementFigures, *, first: bool) -> CardRow:
    return structs.replace(
        row,
        arrangement=plan.arrangement,
        cards_needed=plan.cards_needed,
        lots=plan.lots,
        idle_cards=plan.idle_cards,
        idle_hosts_copies=plan.idle_hosts_copies,
        idle_hosts_sequences=plan.idle_hosts_sequences,
        prices=plan.prices,
        throughput=row.throughput if first else None,
        arrangements=(plan,),
    )


def by_seller(row: CardRow) -> tuple[CardRow, ...]:
    """The row once for each seller, with that seller's lots and prices alone."""
    return tuple(_as_sold(row, book) for book in dict.fromkeys(price.book for price in row.prices)) or (row,)


def _as_sold(row: CardRow, book: str) -> CardRow:
    prices = tuple(price for price in row.prices if price.book == book)
    first = prices[0]
    if first.lot_size is None:
        return structs.replace(row, prices=prices)
    lots = {"lot_size": first.lot_size, "lots": first.lots, "idle_cards": first.idle_cards}
    # What idle cards could host is known for the lots of the row alone.
    hosts = {} if first.idle_cards == row.idle_cards else dict.fromkeys(("idle_hosts_copies", "idle_hosts_sequences"))
    return structs.replace(row, prices=prices, **lots, **hosts)
