"""Catalog and offer files to records and back; pure. Strict: a wrong key or value is named in one line.

A card file holds `schema_version` and one table a card; an offer file holds `schema_version`, the book's own keys
and one table a card that is offered.
"""

from __future__ import annotations

import datetime
import difflib
import math
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from gpufit.catalog.offers import Offer, OfferBook
from gpufit.catalog.record import Card
from gpufit.catalog.row import Row
from gpufit.errors import UnreadableInputError

SCHEMA_VERSION = 1
"""The newest layout of card and offer files that is known here."""

_T = TypeVar("_T", bound=Row)
_CARD_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_CURRENCY = re.compile(r"[A-Z]{3}")
_UNKNOWN = re.compile(r"Object contains unknown field `(?P<key>[^`]*)`")
_MISSING = re.compile(r"Object missing required field `(?P<key>[^`]*)`")
_PLACE = re.compile(r" - at (?:`?key`? in )?`\$\.?(?P<place>[^`]*)`$")


def parse_cards(text: str, file: str) -> tuple[Card, ...]:
    """Read a card file, in its order; `file` names it in messages. Raises UnreadableInputError."""
    return tuple(_card(key, table, file) for key, table in _read(text, file).items())


def card_file_faults(text: str, file: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(ids of the cards that a card file has tables of, everything that keeps it from being read): of each card the
    first fault, a line each."""
    try:
        raw = _toml(text, file)
    except UnreadableInputError as error:
        return (), (str(error),)
    faults = [*_version_faults(raw.pop("schema_version", None), file), *_number_faults(raw, file)]
    ids = [key for key, table in raw.items() if isinstance(table, dict)]
    for key, table in raw.items():
        if any(not math.isfinite(value) for _, value in _numbers(table)):
            continue  # said already
        try:
            _card(key, table, file)
        except UnreadableInputError as error:
            faults.append(str(error))
    return tuple(ids), tuple(faults)


def _card(card_id: str, table: object, file: str) -> Card:
    if not isinstance(table, dict):
        raise UnreadableInputError(f"{file}: {card_id}: unknown key; a card is a table, [{card_id}]")
    return card_from_table(card_id, table, file)


def card_from_table(card_id: str, table: Mapping[str, Any], file: str) -> Card:
    """One card from its table. Raises UnreadableInputError, naming file, card and key."""
    if not _CARD_ID.fullmatch(card_id):
        raise UnreadableInputError(_bad_id(card_id, file))
    if "id" in table:
        raise UnreadableInputError(f"{file}: card {card_id}: id: unknown key; the table's name is the id")
    return _convert({**table, "id": card_id}, Card, f"{file}: card {card_id}")


def card_to_table(card: Card) -> dict[str, Any]:
    """The table that `card_from_table` reads back to an equal card: plain values, unknown figures left out."""
    table: dict[str, Any] = msgspec.to_builtins(card)
    del table["id"]
    return table


@dataclass(frozen=True)
class OfferFile:
    """An offer file as TOML has it, right or wrong."""

    file: str
    """Names it in messages."""
    version: object
    own: Mapping[str, Any]
    """The book's own keys."""
    tables: Mapping[str, Mapping[str, Any]]
    """A table a card."""

    @property
    def faults(self) -> tuple[str, ...]:
        """Everything that keeps it from being a book, a line each."""
        figures = _number_faults({**self.own, **self.tables}, self.file)
        return (*_version_faults(self.version, self.file), *figures, *_book_faults(self.own, self.tables, self.file))

    @property
    def date(self) -> datetime.date | None:
        """The day it says its prices were read; None where it says none."""
        day = self.own.get("date")
        return day if isinstance(day, datetime.date) and not isinstance(day, datetime.datetime) else None


def read_offer_file(text: str, file: str) -> OfferFile:
    """What an offer file holds. Raises UnreadableInputError where it is no TOML."""
    raw = _toml(text, file)
    version = raw.pop("schema_version", None)
    tables = {key: value for key, value in raw.items() if isinstance(value, dict)}
    own = {key: value for key, value in raw.items() if key not in tables}
    return OfferFile(file, version, own, tables)


def parse_offer_book(text: str, file: str, name: str) -> OfferBook:
    """Read an offer file into the book called `name`. Raises UnreadableInputError with the first of its faults.

    A book with a price in it must name seller, currency and date.
    """
    found = read_offer_file(text, file)
    for fault in found.faults:
        raise UnreadableInputError(fault)
    book = msgspec.convert({**found.own, "name": name}, OfferBook)
    offers = tuple(
        msgspec.convert({**table, "card": card_id, "currency": book.currency}, Offer)
        for card_id, table in found.tables.items()
    )
    return msgspec.structs.replace(book, offers=offers)


def _book_faults(own: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]], file: str) -> Iterator[str]:
    """What is wrong in a book: each key by itself, then what belongs together."""
    for key in ("name", "offers"):
        if key in own:
            yield f"{file}: {key}: unknown key; remove it or correct its spelling"
    rest = {key: value for key, value in own.items() if key not in ("name", "offers")}
    yield from _key_faults(rest, OfferBook, {"name": "name"}, file)
    currency = own.get("currency")
    if isinstance(currency, str) and not _CURRENCY.fullmatch(currency):
        yield f"{file}: currency: {currency!r} is not a code of three capital letters (ISO 4217); write EUR, USD, ..."
    for card_id, table in tables.items():
        yield from _offer_faults(card_id, table, file)
    priced = any(key.startswith("price_") for table in tables.values() for key in table)
    for key in ("seller", "currency", "date"):
        if priced and key not in own:
            yield f"{file}: {key} is missing; a book with prices must say it"


def _offer_faults(card_id: str, table: Mapping[str, Any], file: str) -> Iterator[str]:
    where = f"{file}: card {card_id}"
    if not _CARD_ID.fullmatch(card_id):
        yield _bad_id(card_id, file)
    if "currency" in table:
        yield f"{where}: currency: unknown key; one currency holds for the whole book"
    if "card" in table:
        yield f"{where}: card: unknown key; the table's name is the id"
    rest = {key: value for key, value in table.items() if key not in ("currency", "card")}
    yield from _key_faults(rest, Offer, {"card": "card", "lot_size": 1}, where)
    if "lot_size" not in table:
        yield f"{where}: lot_size: missing; add it"


def _key_faults(table: Mapping[str, Any], into: type[Row], required: Mapping[str, Any], where: str) -> Iterator[str]:
    """What is wrong with each key of a table by itself; `required` stands in for what the others must have."""
    for key, value in table.items():
        if isinstance(value, float) and not math.isfinite(value):
            continue  # said already
        try:
            _convert({**required, key: value}, into, where)
        except UnreadableInputError as error:
            yield str(error)


def _read(text: str, file: str) -> dict[str, Any]:
    """The file's tables, its schema version checked and taken off."""
    raw = _toml(text, file)
    for fault in (*_version_faults(raw.pop("schema_version", None), file), *_number_faults(raw, file)):
        raise UnreadableInputError(fault)
    return raw


def _toml(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UnreadableInputError(f"{file}: not valid TOML: {error}") from error


def _version_faults(version: object, file: str) -> Iterator[str]:
    if type(version) is not int or version < 1:
        yield f"{file}: schema_version is missing or not a whole number; write schema_version = {SCHEMA_VERSION} first"
    elif version > SCHEMA_VERSION:
        yield f"{file}: schema_version {version} is newer than this gpufit reads ({SCHEMA_VERSION}); upgrade gpufit"


def _number_faults(raw: Mapping[str, Any], file: str) -> Iterator[str]:
    for place, value in _numbers(raw):
        if not math.isfinite(value):
            yield f"{file}: {place}: {value} is not a figure; leave the key out"


def _numbers(value: Any, place: str = "") -> Iterator[tuple[str, float]]:
    if isinstance(value, float):
        yield place, value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _numbers(inner, f"{place}.{key}" if place else key)
    elif isinstance(value, list):
        for inner in value:
            yield from _numbers(inner, place)


def _bad_id(card_id: str, file: str) -> str:
    return f"{file}: card {card_id!r}: an id is lower-case letters, digits and single hyphens, as h100-pcie-80gb"


def _convert(raw: Mapping[str, Any], into: type[_T], where: str) -> _T:
    try:
        return msgspec.convert(raw, into)
    except msgspec.ValidationError as error:
        raise UnreadableInputError(f"{where}: {_in_words(str(error), into.__struct_fields__)}") from error


def _in_words(message: str, fields: Sequence[str]) -> str:
    """msgspec's message, key first: `memory.nominal_gb: expected int, got str; ...`; `fields` are the table's keys."""
    found = _PLACE.search(message)
    place = found["place"] if found else ""
    said = _PLACE.sub("", message)
    if unknown := _UNKNOWN.match(said):
        near = [] if place else difflib.get_close_matches(unknown["key"], fields, n=1)
        hint = f"did you mean {near[0]}?" if near else "remove it or correct its spelling"
        return f"{_join(place, unknown['key'])}: unknown key; {hint}"
    if missing := _MISSING.match(said):
        return f"{_join(place, missing['key'])}: missing; add it"
    said = said[:1].lower() + said[1:].replace("`", "").replace(" | null", "")
    return f"{place or 'file'}: {said}; correct it, or leave the key out where the value is not known"


def _join(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key
