"""Prices on a page: a line a card, arrangement and seller, what to make of them, and what work costs."""

from __future__ import annotations

from gpufit.catalog.offers import TERMS
from gpufit.report.cells import lots_text
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.markup import Markup, element, joined
from gpufit.report.page_parts import bullets, column_heads, exactly, table
from gpufit.report.price_text import COST_NOTE, LEFT_HEADERS, cost_headers, cost_rows, day_text, price_lines
from gpufit.report.prices import Price
from gpufit.report.rows import rows_of


def prices_of_page(document: FitDocument) -> Markup:
    """The section's content; where nobody has a price, how to bring one."""
    priced = [row for row in rows_of(document) if any(one.price_per_lot is not None for one in row.prices)]
    if not priced:
        missing = element(
            "p", f"None known: the offer book {document.offers} has no price for these cards. A book of your own "
            "(`gpufit catalog offers --template`, filled in, its folder given to --catalog) puts them here."
        )  # fmt: skip
        return joined([missing, bullets(price_lines(document))])
    terms = [(f"total, {days} days", False) for days in TERMS]
    words = [("card", True), ("cards", False), ("lots", False), ("seller", True)]
    caption = (
        f"Offers: {document.offers}. A lot cannot be split; - is a price that the book does not have, or no order."
    )
    found = [table(caption, column_heads([*words, *terms]), [_row(document, row) for row in priced])]
    return joined([*found, bullets(price_lines(document)), *_costs(document)])


def _row(document: FitDocument, row: CardRow) -> Markup:
    first, by_term = row.prices[0], {price.term_days: price for price in row.prices}
    day = day_text(document, first)
    return element(
        "tr",
        element("th", row.card, scope="row"),
        element("td", "-" if row.cards_needed is None else f"{row.cards_needed:,}"),
        element("td", lots_text(row), class_="wraps"),
        element("td", first.seller or first.book, element("small", day) if day else None, class_="left wraps"),
        *(_cell(by_term.get(days)) for days in TERMS),
    )


def _cell(price: Price | None) -> Markup:
    """The total of all lots, and where that is no single one the price of a lot below it."""
    if price is None or price.price_per_lot is None:
        return element("td", "-")
    of_lot, total = price.price_per_lot, price.total_price
    currency = price.currency or "(currency not named)"
    lot = element("small", exactly(of_lot, f"{of_lot:,.2f}"), f" {currency} a lot") if total != of_lot else None
    return element("td", "-" if total is None else exactly(total, f"{total:,.2f} {currency}"), lot)


def _costs(document: FitDocument) -> list[Markup]:
    """What work costs, where speed was measured."""
    headers = cost_headers(document)
    rows = [
        element(
            "tr",
            element("th", line[0], scope="row"),
            *(
                element("td", text, class_="left" if header in LEFT_HEADERS else None)
                for header, text in zip(headers[1:], line[1:], strict=True)
            ),
        )
        for line in cost_rows(document)
    ]
    heads = column_heads((header, header in LEFT_HEADERS) for header in headers)
    return [table(f"{COST_NOTE[0].upper()}{COST_NOTE[1:]}.", heads, rows)] if rows else []
