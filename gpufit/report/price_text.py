"""Prices, speed and cost as people read them: a table with a line a card and seller, and what to make of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gpufit.catalog.offers import TERMS
from gpufit.report.cells import lots_text
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.idle_text import idle_lines
from gpufit.report.prices import Price, ThroughputFigures
from gpufit.report.rows import by_seller

PRICE_HEADERS = ("card", "seller", "lots", *(f"total, {days} days" for days in TERMS), "currency", "offered on")
"""The columns of the price table; the price of all lots, for the whole term."""
LEFT_HEADERS = ("card", "seller", "term", "currency", "offered on", "evidence")
"""Columns of words, in this table and that of costs."""


def price_rows(document: FitDocument) -> list[list[str]]:
    """The price table: a line for every seller's total of every card that serves the scenario; empty without prices."""
    return [
        [
            sold.card,
            first.seller or first.book,
            lots_text(sold),
            *_totals(sold.prices),
            first.currency or "",
            day_text(document, first),
        ]
        for row in document.cards
        for sold in by_seller(row)
        for first in sold.prices[:1]
        if any(price.total_price is not None for price in sold.prices)
    ]


def _totals(prices: Sequence[Price]) -> list[str]:
    by_term = {price.term_days: price.total_price for price in prices}
    return ["" if (total := by_term.get(days)) is None else money(total) for days in TERMS]


def day_text(document: FitDocument, price: Price) -> str:
    """The day of a price, marked where it has to be asked for again."""
    if price.offered_on is None:
        return ""
    stale = any(book.stale for book in document.offer_books if book.name == price.book)
    return f"{price.offered_on}, stale" if stale else str(price.offered_on)


def money(amount: float) -> str:
    """An amount with two decimals, or four significant digits below 1: what a thousand inputs cost is small."""
    return f"{amount:,.2f}" if amount >= 1 else f"{amount:.4g}"


def price_lines(document: FitDocument) -> list[str]:
    """What stands below the price table: the cheapest in each currency, cards without a price, idle ones, the speed."""
    return [
        *_cheapest_lines(document),
        *_unpriced_lines(document.cards),
        *idle_lines(document),
        *_throughput_lines(document.cards),
    ]


def _cheapest_lines(document: FitDocument) -> Iterator[str]:
    """The lowest total of each term among cards that serve the scenario: in each currency by itself, and what nobody
    offers apart from what somebody does."""
    public = {book.name for book in document.offer_books if book.indicative}
    totals = [
        _Total(price.total_price, row.card, price, (price.book in public, price.currency or ""))
        for row in document.cards
        for price in row.prices
        if price.total_price is not None
    ]
    if len({(one.card, one.price.book) for one in totals}) < 2:
        return
    kinds = sorted({one.kind for one in totals})
    for days in TERMS:
        for kind in kinds:
            same = [one for one in totals if one.price.term_days == days and one.kind == kind]
            if same:
                least = min(same, key=lambda one: one.amount)
                among = _among(kind) if len(kinds) > 1 else ""
                seller = least.price.seller or least.price.book
                answer = f"{least.card} at {money(least.amount)} {kind[1]} ({seller})"
                yield f"cheapest{among}, {days} days: {answer}{_runner_up(least, same)}"


def _runner_up(least: _Total, totals: Sequence[_Total]) -> str:
    """The next cheapest card, and by how much it lost; nothing where no other card has a price."""
    others = [one for one in totals if one.card != least.card]
    if not others:
        return ""
    second = min(others, key=lambda one: one.amount)
    more = f" (+{second.amount / least.amount - 1:.0%})" if least.amount else ""
    return f"; then {second.card} at {money(second.amount)}{more}"


class _Total(NamedTuple):
    amount: float
    card: str
    price: Price
    kind: tuple[bool, str]
    """Whether it is a public figure, and the currency: only totals of one kind are compared."""


def _among(kind: tuple[bool, str]) -> str:
    public, currency = kind
    return f" {'public figure' if public else 'offer'} in {currency}"


def _unpriced_lines(rows: Sequence[CardRow]) -> Iterator[str]:
    """Cards that serve the scenario and have no price, where others have one: the cheapest may be among them."""
    serving = [row for row in rows if row.cards_needed is not None]
    priced = {row.card for row in serving for price in row.prices if price.total_price is not None}
    missing = [row.card for row in serving if row.card not in priced]
    if priced and missing:
        yield f"no price, and so not compared: {', '.join(missing)}"


def _throughput_lines(rows: Sequence[CardRow]) -> Iterator[str]:
    for row in rows:
        if row.throughput is not None:
            yield f"{row.card}: {rates_text(row.throughput)}: {row.throughput.how} ({row.throughput.evidence})"


def rates_text(one: ThroughputFigures) -> str:
    """Tokens and inputs a second, and that it is at least so much where the scenario itself was not measured."""
    generated = one.generated_tokens_per_second
    tokens = f"{one.prompt_tokens_per_second:,.1f} prompt" if generated is None else f"{generated:,.1f} generated"
    return f"{'at least ' if one.lower_bound else ''}{tokens} tokens/s, {one.inputs_per_second:.4g} inputs/s"


def cost_headers(document: FitDocument) -> tuple[str, ...]:
    """The columns of the cost table."""
    tokens = "generated" if document.scenario.new_tokens else "prompt"
    return ("card", "seller", "term", f"a million {tokens} tokens", "a thousand inputs", "currency", "evidence")


def cost_rows(document: FitDocument) -> list[list[str]]:
    """What work costs where speed was measured: a line for every term and seller; empty where none was."""
    found = []
    for row in document.cards:
        for price in row.prices:
            tokens, inputs = price.cost_per_million_tokens, price.cost_per_thousand_inputs
            if row.throughput is not None and tokens is not None and inputs is not None:
                bound = "at most " if row.throughput.lower_bound else ""
                costs = [f"{bound}{money(cost)}" for cost in (tokens, inputs)]
                seller, term = price.seller or price.book, f"{price.term_days} days"
                found.append([row.card, seller, term, *costs, price.currency or "", str(row.throughput.evidence)])
    return found


COST_NOTE = "costs hold for cards that work every second of the term: idle time makes them dearer"
"""What stands below the cost table."""
