"""What is wrong with catalog files, all of it: a buyer mends a book in one go, not a line a run."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpufit.catalog import codec
from gpufit.catalog.odd_prices import odd_prices
from gpufit.catalog.offers import OfferBook
from gpufit.catalog.store import book_files, card_files, card_twice, read_text, unknown_card
from gpufit.errors import UnreadableInputError


@dataclass(frozen=True)
class BookCheck:
    """One offer file."""

    path: Path
    faults: tuple[str, ...]
    """What keeps it from being used, or would mislead, a line each."""
    warnings: tuple[str, ...]
    """What is hardly meant, and is used all the same, a line each."""
    book: OfferBook | None
    """As read; None where the file cannot be."""


@dataclass(frozen=True)
class CardCheck:
    """The card files of all folders."""

    faults: tuple[str, ...]
    """What keeps them from being used, a line each: of each card the first."""
    card_ids: tuple[str, ...]
    """Every card that some file has, right or wrong."""


def check_cards(folders: Sequence[Path]) -> CardCheck:
    """Every card file of the catalog folders. Raises UnreadableInputError for a folder that is not there."""
    ids: dict[str, None] = {}
    faults: list[str] = []
    for folder in folders:
        seen: dict[str, Path] = {}
        for path in card_files(folder):
            found, said = _check_card_file(path)
            faults += [*said, *(card_twice(path, one, seen[one]) for one in found if one in seen)]
            seen |= dict.fromkeys(found, path)
        ids |= dict.fromkeys(seen)
    return CardCheck(tuple(faults), tuple(ids))


def _check_card_file(path: Path) -> tuple[tuple[str, ...], tuple[str, ...]]:
    try:
        return codec.card_file_faults(read_text(path), str(path))
    except UnreadableInputError as error:
        return (), (str(error),)


def check_books(folders: Sequence[Path], card_ids: Sequence[str], today: datetime.date) -> tuple[BookCheck, ...]:
    """Every offer file of the catalog folders, in the order in which they are read."""
    return tuple(check_book(path, card_ids, today) for folder in folders for path in book_files(folder))


def check_book(path: Path, card_ids: Sequence[str], today: datetime.date) -> BookCheck:
    """One offer file against the cards there are and the day it is."""
    try:
        text = read_text(path)
        found = codec.read_offer_file(text, str(path))
    except UnreadableInputError as error:
        return BookCheck(path, (str(error),), (), None)
    faults = found.faults
    book = None if faults else codec.parse_offer_book(text, str(path), path.stem)
    misleading = (*_unknown_cards(found.tables, card_ids, path), *_future(found.date, today, path))
    return BookCheck(path, (*faults, *misleading), () if book is None else tuple(_odd(book, path)), book)


def _unknown_cards(offered: Iterable[str], card_ids: Sequence[str], path: Path) -> Iterator[str]:
    return (unknown_card(str(path), one, card_ids) for one in offered if one not in card_ids)


def _future(day: datetime.date | None, today: datetime.date, path: Path) -> Iterator[str]:
    if day is not None and day > today:
        yield f"{path}: date: {day} is still to come; write the day on which the prices were read"


def _odd(book: OfferBook, path: Path) -> Iterator[str]:
    for offer in book.offers:
        for days, words in odd_prices(offer).items():
            yield f"{path}: warning: card {offer.card}: price_{days}_days: {offer.price(days):,.2f} is odd, {words}"
