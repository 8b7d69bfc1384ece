"""Cards, books and catalogs with defaults, for tests that care about one field."""

from __future__ import annotations

from typing import Any

from gpufit.catalog.card_parts import CardMemory
from gpufit.catalog.offers import Offer, OfferBook
from gpufit.catalog.record import Card, Catalog


def make_card(card_id: str = "x1-48gb", **fields: Any) -> Card:
    memory = fields.pop("memory", None) or make_memory()
    return Card(**({"vendor": "NVIDIA", "name": f"Card {card_id}"} | fields | {"id": card_id, "memory": memory}))


def make_memory(**fields: Any) -> CardMemory:
    return CardMemory(**({"nominal_gb": 48} | fields))


def make_catalog(*cards: Card) -> Catalog:
    return Catalog(cards=cards)


def make_book(name: str = "seller", *offers: Offer, **fields: Any) -> OfferBook:
    return OfferBook(name=name, offers=offers, **fields)


MINIMAL = """
schema_version = 1

[x1-48gb]
vendor = "NVIDIA"
name = "Card X1"

[x1-48gb.memory]
nominal_gb = 48
"""
"""The smallest card file."""
