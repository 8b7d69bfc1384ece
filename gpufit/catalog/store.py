"""Catalog files: gpufit's own, then the user's folder, then a folder named on the command line."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from gpufit.catalog import codec
from gpufit.catalog.record import Card, Catalog, OfferBook, Origin, catalog_order
from gpufit.datadir import shipped_catalog_dir, user_catalog_dir
from gpufit.errors import UnreadableInputError

BLANK_BOOK = "blank"
"""The shipped book that knows every card's lot size and no price."""


def load_catalog(extra: Path | None = None) -> Catalog:
    """The shipped catalog with the user's folder and then `extra` (`--catalog DIR`) laid over it.

    Raises UnreadableInputError for a folder that should be there and is not, or a file that is not right.
    """
    user = user_catalog_dir()
    folders = [shipped_catalog_dir(), *([user] if user.is_dir() else []), *([extra] if extra is not None else [])]
    return load_folders(folders)


def load_folders(folders: Sequence[Path]) -> Catalog:
    """The folders laid over each other, the last on top: a card or a book replaces the one of the same id.

    A folder holds card files (`*.toml`) and, in `offers/`, offer books. Raises UnreadableInputError.
    """
    cards: dict[str, Card] = {}
    books: dict[str, OfferBook] = {}
    card_origins: dict[str, Origin] = {}
    book_origins: dict[str, Origin] = {}
    for folder in folders:
        for path, card in _cards_in(folder):
            cards[card.id] = card
            card_origins[card.id] = _origin(path, card_origins.get(card.id))
        for path, book in _books_in(folder):
            lots = books.get(BLANK_BOOK)
            books.pop(book.name, None)  # so that it moves to the end: the last one read is the one to use
            books[book.name] = book if lots is None else book.completed_by(lots)
            book_origins[book.name] = _origin(path, book_origins.get(book.name))
    for book in books.values():
        _check_offers(book, cards, book_origins[book.name])
    return Catalog(
        cards=tuple(sorted(cards.values(), key=catalog_order)),
        offer_books=tuple(books.values()),
        card_origins=card_origins,
        book_origins=book_origins,
    )


def _origin(path: Path, before: Origin | None) -> Origin:
    return Origin(path=str(path), replaces=None if before is None else before.path)


def _cards_in(folder: Path) -> Iterator[tuple[Path, Card]]:
    """The folder's cards with their files, by file name. Two rows of one id in one folder are a mistake."""
    if not folder.is_dir():
        raise UnreadableInputError(f"{folder}: no such catalog folder; name a folder that holds card files (*.toml)")
    seen: dict[str, Path] = {}
    for path in sorted(folder.glob("*.toml")):
        for card in codec.parse_cards(_read(path), str(path)):
            if card.id in seen:
                raise UnreadableInputError(f"{path}: card {card.id} is in {seen[card.id]} too; keep one of them")
            seen[card.id] = path
            yield path, card


def _books_in(folder: Path) -> Iterator[tuple[Path, OfferBook]]:
    for path in sorted((folder / "offers").glob("*.toml")):
        yield path, codec.parse_offer_book(_read(path), str(path), path.stem)


def _check_offers(book: OfferBook, card_ids: Collection[str], origin: Origin) -> None:
    for offer in book.offers:
        if offer.card not in card_ids:
            raise UnreadableInputError(
                f"{origin.path}: card {offer.card} is not in the catalog; correct the id, or add the card's own file"
            )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UnreadableInputError(f"{path}: cannot be read ({error})") from error
