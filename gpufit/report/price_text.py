"""Prices, speed and cost as people read them: a table with a line a card and seller, and what to make of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpufit.catalog.offers import TERMS
from gpufit.report.cells import lots_text
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.idle_text import idle_lines
from gpufit.report.offer_lines import OfferLine, day_text, offer_lines, offer_words, total_text
from gpufit.report.offer_lines import money as money
from gpufit.report.prices import ThroughputFigures
from gpufit.report.rows import by_seller

PRICE_HEADERS = ("card", "seller", "lots", *(f"total, {days} days" for days in TERMS), "currency", "offered on")
"""The columns of the price table; the price of all lots, for the whole term."""
LEFT_HEADERS = ("card", "seller", "term", "currency", "offered on", "evidence")
"""Columns of words, in this table and that of costs."""


def price_rows(document: FitDocument) -> list[list[str]]:
    """The price table: a line for every seller's total of every card that serves the scenario; empty without prices."""
    lots = {row.card: row for row in document.cards}
    return [offer_row(line, _lots(lots[line.card], line)) for line in lines_of(document) if line.priced]


def lines_of(document: FitDocument) -> tuple[OfferLine, ...]:
    """What each seller asks for each card of a document."""
    return offer_lines(document.cards, document.offer_books)


def offer_row(line: OfferLine, lots: str) -> list[str]:
    """A line of the price table."""
    totals = [total_text(line.of(days)) for days in TERMS]
    return [line.card, line.seller, lots, *totals, line.first.currency or "", day_text(line)]


def _lots(row: CardRow, line: OfferLine) -> str:
    sold = next(one for one in by_seller(row) if one.prices[0].book == line.first.book)
    return lots_text(sold)


def price_lines(document: FitDocument) -> list[str]:
    """What stands below the price table: the cheapest in each currency, cards without a price, idle ones, the speed."""
    return [*offer_words(lines_of(document)), *idle_lines(document), *_throughput_lines(document.cards)]


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
