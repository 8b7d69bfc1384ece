"""Catalog files: gpufit's own, then the user's folder, then a folder named on the command line."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from gpufit.catalog import codec
from gpufit.catalog.offers import OfferBook
from gpufit.catalog.record import BLANK_BOOK, Card, Catalog, Origin, catalog_order
from gpufit.datadir import shipped_catalog_dir, user_catalog_dir
from gpufit.errors import UnreadableInputError, unreadable
from gpufit.files import is_folder


def load_catalog(extra: Path | None = None) -> Catalog:
    """The shipped catalog with the user's folder and then `extra` (`--catalog DIR`) laid over it.

    Raises UnreadableInputError for a folder that should be there and is not, or a file that is not right.
    """
    return load_folders(catalog_folders(extra))


def catalog_folders(extra: Path | None = None) -> list[Path]:
    """The shipped folder, the user's where it is there, and `extra`, in the order in which they are laid."""
    user = user_catalog_dir()
    return [shipped_catalog_dir(), *([user] if is_folder(user) else []), *([extra] if extra is not None else [])]


def load_folders(folders: Sequence[Path]) -> Catalog:
    """The folders laid over each other, the last on top: a card or a book replaces the one of the same id.

    A folder holds card files (`*.toml`) and, in `offers/`, offer books. Raises UnreadableInputError.
    """
    catalog = load_cards(folders)
    card_ids = [card.id for card in catalog.cards]
    books: dict[str, OfferBook] = {}
    book_origins: dict[str, Origin] = {}
    for folder in folders:
        for path in book_files(folder):
            book = _completed(codec.parse_offer_book(read_text(path), str(path), path.stem), books.get(BLANK_BOOK))
            _check_offers(book, card_ids, path)
            books.pop(book.name, None)  # so that it moves to the end, among the books of its own folder
            books[book.name] = book
            book_origins[book.name] = _origin(path, book_origins.get(book.name))
    return msgspec.structs.replace(catalog, offer_books=tuple(books.values()), book_origins=book_origins)


def load_cards(folders: Sequence[Path]) -> Catalog:
    """The folders' cards alone, without any offer book. Raises UnreadableInputError."""
    cards: dict[str, Card] = {}
    origins: dict[str, Origin] = {}
    for folder in folders:
        for path, card in _cards_in(folder):
            cards[card.id] = card
            origins[card.id] = _origin(path, origins.get(card.id))
    return Catalog(cards=tuple(sorted(cards.values(), key=catalog_order)), card_origins=origins)


def load_offer_book(path: Path, catalog: Catalog) -> OfferBook:
    """An offer book from a file of its own, wherever it lies. Raises UnreadableInputError."""
    lots = next((book for book in catalog.offer_books if book.name == BLANK_BOOK), None)
    book = _completed(codec.parse_offer_book(read_text(path), str(path), path.stem), lots)
    _check_offers(book, [card.id for card in catalog.cards], path)
    return book


def book_files(folder: Path) -> list[Path]:
    """The offer files of a catalog folder, by name."""
    return sorted((folder / "offers").glob("*.toml"))


def _completed(book: OfferBook, lots: OfferBook | None) -> OfferBook:
    return book if lots is None else book.completed_by(lots)


def _origin(path: Path, before: Origin | None) -> Origin:
    return Origin(path=str(path), replaces=None if before is None else before.path)


def _cards_in(folder: Path) -> Iterator[tuple[Path, Card]]:
    """The folder's cards with their files, by file name. Two rows of one id in one folder are a mistake."""
    seen: dict[str, Path] = {}
    for path in card_files(folder):
        for card in codec.parse_cards(read_text(path), str(path)):
            if card.id in seen:
                raise UnreadableInputError(card_twice(path, card.id, seen[card.id]))
            seen[card.id] = path
            yield path, card


def card_files(folder: Path) -> list[Path]:
    """The card files of a catalog folder, by name. Raises UnreadableInputError where there is no such folder."""
    if not is_folder(folder):
        raise UnreadableInputError(f"{folder}: no such catalog folder; name a folder that holds card files (*.toml)")
    return sorted(folder.glob("*.toml"))


def card_twice(path: Path, card_id: str, other: Path) -> str:
    """What is said of a card that two files of one folder have."""
    return f"{path}: card {card_id} is in {other} too; keep one of them"


def _check_offers(book: OfferBook, card_ids: Collection[str], path: Path) -> None:
    for offer in book.offers:
        if offer.card not in card_ids:
            raise UnreadableInputError(unknown_card(str(path), offer.card, card_ids))


def unknown_card(file: str, card_id: str, card_ids: Collection[str]) -> str:
    """What is said of an offer for a card that is in no card file."""
    near = difflib.get_close_matches(card_id, card_ids, n=1)
    hint = f"did you mean {near[0]}?" if near else "correct the id, or add the card's own file"
    return f"{file}: card {card_id} is not in the catalog; {hint}"


def read_text(path: Path) -> str:
    """A file as text. Raises UnreadableInputError."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise unreadable(path, error) from error
