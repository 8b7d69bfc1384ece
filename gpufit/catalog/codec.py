"""Catalog and offer files to records and back; pure. Strict: a wrong key or value is named in one line.

A card file holds `schema_version` and one table a card; an offer file holds `schema_version`, the book's own keys
and one table a card that is offered.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from gpufit.catalog.record import Card, Offer, OfferBook
from gpufit.errors import UnreadableInputError

SCHEMA_VERSION = 1
"""The newest layout of card and offer files that is known here."""

_T = TypeVar("_T")
_CARD_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`")
_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]*)`")
_PLACE = re.compile(r" - at (?:`?key`? in )?`\$\.?(?P<place>[^`]*)`$")


def parse_cards(text: str, file: str) -> tuple[Card, ...]:
    """Read a card file, in its order; `file` names it in messages. Raises UnreadableInputError."""
    cards = []
    for key, table in _read(text, file).items():
        if not isinstance(table, dict):
            raise UnreadableInputError(f"{file}: {key}: unknown key; a card is a table, [{key}]")
        cards.append(card_from_table(key, table, file))
    return tuple(cards)


def card_from_table(card_id: str, table: Mapping[str, Any], file: str) -> Card:
    """One card from its table. Raises UnreadableInputError, naming file, card and key."""
    _check_id(card_id, file)
    return _convert({**_without_id(table, "id", card_id, file), "id": card_id}, Card, f"{file}: card {card_id}")


def card_to_table(card: Card) -> dict[str, Any]:
    """The table that `card_from_table` reads back to an equal card: plain values, unknown figures left out."""
    table: dict[str, Any] = msgspec.to_builtins(card)
    del table["id"]
    return table


def parse_offer_book(text: str, file: str, name: str) -> OfferBook:
    """Read an offer file into the book called `name`. Raises UnreadableInputError.

    A book with a price in it must name seller, currency and date.
    """
    raw = _read(text, file)
    tables = {key: value for key, value in raw.items() if isinstance(value, dict)}
    own = {key: value for key, value in raw.items() if key not in tables}
    for key in ("name", "offers"):
        if key in own:
            raise UnreadableInputError(f"{file}: {key}: unknown key; remove it or correct its spelling")
    book = _convert({**own, "name": name}, OfferBook, file)
    offers = tuple(_offer(card_id, table, book.currency, file) for card_id, table in tables.items())
    for key in ("seller", "currency", "date"):
        if getattr(book, key) is None and any(offer.prices for offer in offers):
            raise UnreadableInputError(f"{file}: {key} is missing; a book with prices must say it")
    return msgspec.structs.replace(book, offers=offers)


def _offer(card_id: str, table: Mapping[str, Any], currency: str | None, file: str) -> Offer:
    _check_id(card_id, file)
    where = f"{file}: card {card_id}"
    if "currency" in table:
        raise UnreadableInputError(f"{where}: currency: unknown key; one currency holds for the whole book")
    return _convert({**_without_id(table, "card", card_id, file), "card": card_id, "currency": currency}, Offer, where)


def _read(text: str, file: str) -> dict[str, Any]:
    """The file's tables, its schema version checked and taken off."""
    try:
        raw = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableInputError(f"{file}: not valid TOML: {error}") from error
    version = raw.pop("schema_version", None)
    if type(version) is not int or version < 1:
        raise UnreadableInputError(
            f"{file}: schema_version is missing or not a whole number; write schema_version = {SCHEMA_VERSION} first"
        )
    if version > SCHEMA_VERSION:
        raise UnreadableInputError(
            f"{file}: schema_version {version} is newer than this gpufit reads ({SCHEMA_VERSION}); upgrade gpufit"
        )
    for place, value in _numbers(raw):
        if not math.isfinite(value):
            raise UnreadableInputError(f"{file}: {place}: {value} is not a figure; leave the key out")
    return raw


def _numbers(value: Any, place: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, place)


def _check_id(card_id: str, file: str) -> None:
    if not _CARD_ID.fullmatch(card_id):
        raise UnreadableInputError(
            f"{file}: card {card_id!r}: an id is lower-case letters, digits and single hyphens, as h100-pcie-80gb"
        )


def _without_id(table: Mapping[str, Any], key: str, card_id: str, file: str) -> Mapping[str, Any]:
    if key in table:
        raise UnreadableInputError(f"{file}: card {card_id}: {key}: unknown key; the table's name is the id")
    return table


def _convert(raw: Mapping[str, Any], into: type[_T], where: str) -> _T:
    try:
        return msgspec.convert(raw, into)
    except msgspec.ValidationError as error:
        raise UnreadableInputError(f"{where}: {_in_words(str(error))}") from error


def _in_words(message: str) -> str:
    """msgspec's message, key first: `memory.nominal_gb: expected int, got str; ...`."""
    found = _PLACE.search(message)
    place = found["place"] if found else ""
    said = _PLACE.sub("", message)
    if unknown := _UNKNOWN.match(said):
        return f"{_join(place, unknown['key'])}: unknown key; remove it or correct its spelling"
    if missing := _MISSING.match(said):
        return f"{_join(place, missing['key'])}: missing; add it"
    said = said[:1].lower() + said[1:].replace("`", "").replace(" | null", "")
    return f"{place or 'file'}: {said}; correct it, or leave the key out where the value is not known"


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
