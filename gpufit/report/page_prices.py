"""Prices on a page: a line a card, arrangement and seller, what to make of them, and what work costs."""

from __future__ import annotations

from gpufit.catalog.offers import TERMS
from gpufit.report.cells import lots_text
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.fits_text import Orders
from gpufit.report.markup import Markup, element, joined
from gpufit.report.offer_lines import OfferLine, day_text, money, offer_lines, offer_words
from gpufit.report.page_parts import bullets, column_heads, exactly, table
from gpufit.report.price_text import COST_NOTE, LEFT_HEADERS, cost_headers, cost_rows, price_lines
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
    caption = (
        f"Offers: {document.offers}. A lot cannot be split; - is a price that the book does not have, or no order."
    )
    found = _table(caption, [_row(document, row) for row in priced])
    return joined([found, bullets(price_lines(document)), *_costs(document)])


def orders_of_page(orders: Orders) -> Markup:
    """What to order for all scenarios of a profile, of whom at what price, and what to make of it."""
    rows = [_line(line, line.lots) for line in orders.lines if line.priced]
    return joined([_table(orders.title, rows), bullets(offer_words(orders.lines))])


def _row(document: FitDocument, row: CardRow) -> Markup:
    (line,) = offer_lines([row], document.offer_books)
    return _line(line, lots_text(row))


def _table(caption: str, rows: list[Markup]) -> Markup:
    terms = [(f"total, {days} days", False) for days in TERMS]
    return table(
        caption, column_heads([("card", True), ("cards", False), ("lots", False), ("seller", True), *terms]), rows
    )


def _line(line: OfferLine, lots: str) -> Markup:
    day = day_text(line)
    return element(
        "tr",
        element("th", line.card, scope="row"),
        element("td", "-" if line.cards_needed is None else f"{line.cards_needed:,}"),
        element("td", lots, class_="wraps"),
        element("td", line.seller, element("small", day) if day else None, class_="left wraps"),
        *(_cell(line.of(days)) for days in TERMS),
    )


def _cell(price: Price | None) -> Markup:
    """The total of all lots, and where that is no single one the price of a lot below it."""
    if price is None or price.price_per_lot is None:
        return element("td", "-")
    of_lot, total = price.price_per_lot, price.total_price
    currency = price.currency or "(currency not named)"
    lot = element("small", exactly(of_lot, money(of_lot)), f" {currency} a lot") if price.lots != 1 else None
    odd = element("small", f"odd: {price.odd}") if price.odd else None
    return element("td", "-" if total is None else exactly(total, f"{money(total)} {currency}"), lot, odd)


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
