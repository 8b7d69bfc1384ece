"""Offer books on the command line: which are used, which there are, and a new one to fill in."""

from __future__ import annotations

import argparse
import datetime
import re
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.diagnostics import say
from gpufit.errors import UsageError

if TYPE_CHECKING:
    from gpufit.catalog.offers import OfferBook, Offers
    from gpufit.catalog.record import Catalog

_HEADERS = ("book", "seller", "currency", "date", "age", "prices", "used", "from")


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
    """The books that were named, or those used by default, as they stand today.

    Raises UsageError for a book that is not there, UnreadableInputError for a file that is not right.
    """
    from gpufit.catalog.offers import Offers
    from gpufit.catalog.store import load_offer_book

    today = datetime.date.today()
    books = [
        load_offer_book(Path(name), catalog) if name.endswith(".toml") else catalog.offer_book(name)
        for name in dict.fromkeys(arguments.offers)
    ]
    twice = [book.name for number, book in enumerate(books) if book.name in [one.name for one in books[:number]]]
    if twice:
        raise UsageError(f"two offer books are called {twice[0]}; rename one of the files")
    return Offers(tuple(books), today) if books else catalog.offers(today)


def say_offers(offers: Offers) -> None:
    """Which books lots and prices come from: `prices: offer book acme (Acme GPU, EUR, 2026-11-02)`."""
    for book in offers.books:
        if _priced(book):
            say(f"prices: offer book {book.name} ({book.seller}, {book.currency}, {book.date})")
        else:
            say(f"prices: none in offer book {book.name} (gpufit catalog offers --template writes one to fill in)")


def book_line(book: OfferBook | None, today: datetime.date) -> str:
    """A sound book: `12 prices for 4 cards (Acme GPU, EUR, 2026-11-02)`, and that they are old where they are."""
    from gpufit.catalog.offers import Offers

    if book is None or not _priced(book):
        return "sound, no price filled in"
    cards = sum(bool(offer.prices) for offer in book.offers)
    line = f"sound, {_priced(book)} prices for {cards} cards ({book.seller}, {book.currency}, {book.date})"
    offers = Offers((book,), today)
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
    offers = catalog.offers(datetime.date.today())
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


def new_book(arguments: argparse.Namespace, catalog: Catalog) -> str:
    """A book to fill in, for the named cards or all. Raises UsageError for a card or a file's name that will not do."""
    from gpufit.catalog.query import find_cards
    from gpufit.catalog.template import offer_template
    from gpufit.datadir import user_catalog_dir

    cards = find_cards(catalog, arguments.card) or catalog.cards
    lots = catalog.offers(datetime.date.today()).books[0]
    folder = arguments.catalog or user_catalog_dir()
    return offer_template(
        cards, lots, datetime.date.today(), str(folder), seller=arguments.seller, currency=arguments.currency
    )


def check_new_file(path: Path) -> None:
    """Raise UsageError for a place where a new book must not or cannot go."""
    if path.suffix != ".toml":
        raise UsageError(f"{path}: an offer book is a .toml file; name it offers/SELLER.toml")
    if path.exists():
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
