"""What cards that are paid for and not needed cost, and what they could host, in lines for people."""

from __future__ import annotations

from gpufit.report.document import CardRow, FitDocument
from gpufit.report.rows import by_seller


def idle_lines(document: FitDocument) -> list[str]:
    """A line for every card and seller of whose lots some cards lie idle: their price for each term, and the use that
    they could be put to."""
    lines: dict[str, None] = {}
    for row in document.cards:
        for sold in by_seller(row):
            if sold.idle_cards and sold.lots is not None:
                lines[f"{row.card}: {_share(sold)}{_prices(sold)}{_hosts(sold)}{_included(sold)}"] = None
    return list(lines)


def hosts_words(copies: int | None, sequences: int | None) -> str:
    """What idle cards could host, in short; empty where that is not known."""
    if copies is None:
        return ""
    if not copies:
        return "no whole copy of the model"
    served = "" if sequences is None else f", {sequences:,} more sequences at once"
    return f"{copies:,} more {'copy' if copies == 1 else 'copies'} of the model{served}"


def _share(row: CardRow) -> str:
    paid = (row.lots or 0) * row.lot_size
    idle = row.idle_cards or 0
    lie = "lies" if idle == 1 else "lie"
    return f"{idle:,} of {paid:,} cards paid for {lie} idle, {idle / paid:.0%} of the price"


def _prices(row: CardRow) -> str:
    """Their price for each term that has one, and whose it is."""
    found = [(one.term_days, one.idle_price) for one in row.prices if one.idle_price is not None]
    if not found:
        return ""
    first = row.prices[0]
    amounts = ", ".join(f"{price:,.2f} for {days} days" for days, price in found)
    return f" ({amounts}, {first.currency or 'currency not named'}, {first.seller or first.book})"


def _hosts(row: CardRow) -> str:
    words = hosts_words(row.idle_hosts_copies, row.idle_hosts_sequences)
    return f"; could host {words}" if words else ""


def _included(row: CardRow) -> str:
    """That costs of work hold them, where there are such costs."""
    costs = any(one.cost_per_million_tokens is not None for one in row.prices)
    return "; the costs of tokens and inputs include it" if costs else ""
