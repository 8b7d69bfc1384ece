"""Offer books on the command line: which are used, which there are, and a new one to fill in."""

from __future__ import annotations

import argparse
import datetime
import re
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.diagnostics import say
from gpufit.errors import UsageError
from gpufit.files import exists
from gpufit.units import counted

if TYPE_CHECKING:
    from gpufit.catalog.offers import OfferBook, Offers
    from gpufit.catalog.record import Catalog

_HEADERS = ("book", "seller", "currency", "date", "age", "prices", "used", "from")


def today() -> datetime.date:
    """The day it is here: prices age from it. The one place that asks; everything below takes it as an argument."""
    return datetime.date.today()


def add_offers(parser: argparse.ArgumentParser) -> None:
    """`--offers NAME`, once or more."""
    parser.add_argument(
        "--offers",
        action="append",
        default=[],
        metavar="NAME",
        help="take lots and prices from this offer book, by name or as a .toml file (repeat for more sellers; "
        "default: all books of your own)",
    )


def chosen_offers(arguments: argparse.Namespace, catalog: Catalog) -> Offers:
    """The books that `--offers` names, or those used by default, as they stand today.

    Raises UsageError for a book that is not there, UnreadableInputError for a file that is not right.
    """
    from gpufit.flows import choose_offers

    return choose_offers(catalog, arguments.offers, today())


def say_offers(offers: Offers) -> None:
    """Which books prices come from: `prices: offer book acme (Acme GPU, EUR, 2026-11-02)`; nothing where none is."""
    from gpufit.catalog.record import BLANK_BOOK

    for book in offers.books:
        if _priced(book):
            say(f"prices: offer book {book.name} ({book.seller}, {book.currency}, {book.date})")
        elif book.name != BLANK_BOOK:
            say(f"prices: none in offer book {book.name} yet")


def book_line(book: OfferBook | None, day: datetime.date) -> str:
    """A sound book: `12 prices for 4 cards (Acme GPU, EUR, 2026-11-02)`, and that they are old where they are."""
    from gpufit.catalog.offers import Offers

    if book is None or not _priced(book):
        return "sound, no price filled in"
    cards = sum(bool(offer.prices) for offer in book.offers)
    filled = f"{counted(_priced(book), 'price')} for {counted(cards, 'card')}"
    line = f"sound, {filled} ({book.seller}, {book.currency}, {book.date})"
    offers = Offers((book,), day)
    return f"{line}, {offers.age_days(book)} days old: ask again" if offers.is_stale(book) else line


def books_table(catalog: Catalog) -> str:
    """Every book there is, a line each."""
    from tabulate import tabulate

    rows = [[_shown(row[key]) for key in ("name", "seller", "currency", "date")] for row in books_plain(catalog)]
    for cells, row in zip(rows, books_plain(catalog), strict=True):
        age = "" if row["age_days"] is None else f"{row['age_days']} days"
        used = {"default": "by default", "named": "if named"}[str(row["used"])]
        cells += [f"{age}, stale" if row["stale"] else age, str(row["prices"]), used, str(row["from"])]
    align = ["right" if header == "prices" else "left" for header in _HEADERS]
    return tabulate(rows, headers=_HEADERS, colalign=align, disable_numparse=True)


def books_plain(catalog: Catalog) -> list[dict[str, object]]:
    """The same as plain values."""
    offers = catalog.offers(today())
    return [
        {
            "name": book.name,
            "seller": book.seller,
            "currency": book.currency,
            "date": None if book.date is None else book.date.isoformat(),
            "age_days": offers.age_days(book),
            "stale": offers.is_stale(book),
            "prices": _priced(book),
            "used": "default" if book in offers.books else "named",
            "from": catalog.book_origins[book.name].path,
        }
        for book in catalog.offer_books
    ]


def offers_plain(catalog: Catalog, card_id: str) -> dict[str, dict[str, object]]:
    """What every book says of a card, by the book's name, as plain values: lot, prices, source and note."""
    import msgspec

    found: dict[str, dict[str, object]] = {}
    for book in catalog.offer_books:
        for offer in book.offers:
            if offer.card == card_id and (offer.prices or offer.note):
                table = msgspec.to_builtins(offer)
                own = {"seller": book.seller, "currency": book.currency, "date": book.date and str(book.date)}
                kept = {key: value for key, value in {**own, **table}.items() if value is not None}
                found[book.name] = {key: value for key, value in kept.items() if key != "card"}
    return found


def new_book(arguments: argparse.Namespace, catalog: Catalog) -> str:
    """A book to fill in, for the named cards or all. Raises UsageError for a card or a file's name that will not do."""
    from gpufit.catalog.query import find_cards
    from gpufit.catalog.template import offer_template
    from gpufit.datadir import user_catalog_dir

    cards = find_cards(catalog, arguments.card) or catalog.cards
    lots = catalog.offers(today()).books[0]
    folder = arguments.catalog or user_catalog_dir()
    return offer_template(cards, lots, today(), str(folder), seller=arguments.seller, currency=arguments.currency)


def check_new_file(path: Path) -> None:
    """Raise UsageError for a place where a new book must not or cannot go."""
    if path.suffix != ".toml":
        raise UsageError(f"{path}: an offer book is a .toml file; name it offers/SELLER.toml")
    if exists(path):
        raise UsageError(f"{path} is there already; name another file, or remove it first")


def currency(text: str) -> str:
    """A currency's code as argparse takes it: `eur` is EUR."""
    if not re.fullmatch("[A-Za-z]{3}", text):
        raise argparse.ArgumentTypeError(f"--currency must be a code of three letters, EUR or USD, not {text!r}")
    return text.upper()


def _priced(book: OfferBook) -> int:
    """How many prices a book has."""
    return sum(len(offer.prices) for offer in book.offers)


def _shown(value: object) -> str:
    return "-" if value is None else str(value)
