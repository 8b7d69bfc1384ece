"""What is wrong with offer books, all of it: a buyer mends a book in one go, not a line a run."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpufit.catalog import codec
from gpufit.catalog.offers import OfferBook, Offers
from gpufit.catalog.record import Catalog
from gpufit.catalog.store import book_files, read_text, unknown_card
from gpufit.errors import UnreadableInputError


@dataclass(frozen=True)
class BookCheck:
    """One offer file."""

    path: Path
    faults: tuple[str, ...]
    """What keeps it from being used, or would mislead, a line each."""
    book: OfferBook | None
    """As read; None where the file cannot be."""


def check_books(folders: Sequence[Path], cards: Catalog, today: datetime.date) -> tuple[BookCheck, ...]:
    """Every offer file of the catalog folders, in the order in which they are read."""
    return tuple(check_book(path, cards, today) for folder in folders for path in book_files(folder))


def check_book(path: Path, cards: Catalog, today: datetime.date) -> BookCheck:
    """One offer file against the cards there are and the day it is."""
    try:
        text = read_text(path)
    except UnreadableInputError as error:
        return BookCheck(path, (str(error),), None)
    faults = codec.offer_book_faults(text, str(path))
    if faults:
        return BookCheck(path, (*faults, *_unknown_cards(codec.offered_cards(text), cards, path)), None)
    book = codec.parse_offer_book(text, str(path), path.stem)
    unknown = _unknown_cards([offer.card for offer in book.offers], cards, path)
    return BookCheck(path, (*unknown, *_future(book, today, path)), book)


def _unknown_cards(card_ids: Sequence[str], cards: Catalog, path: Path) -> Iterator[str]:
    known = [card.id for card in cards.cards]
    return (unknown_card(str(path), card_id, known) for card_id in card_ids if card_id not in known)


def _future(book: OfferBook, today: datetime.date, path: Path) -> Iterator[str]:
    age = Offers((book,), today).age_days(book)
    if age is not None and age < 0:
        yield f"{path}: date: {book.date} is still to come; write the day on which the prices were read"
