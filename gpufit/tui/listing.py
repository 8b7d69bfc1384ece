"""Which cards are listed, and in which order. Pure, and knows nothing of Textual."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from gpufit.advice.verdict import Verdict
from gpufit.catalog.record import Card
from gpufit.report.document import CardRow

Choice = TypeVar("Choice")


class Sort(enum.StrEnum):
    """The order of the cards, as it reads on screen."""

    CATALOG = "catalog order"
    HEADROOM = "most headroom first"
    CAPACITY = "most capacity first"


class Filter(enum.StrEnum):
    """Which verdicts are listed, as it reads on screen."""

    ALL = "all cards"
    FITS = "only what fits"
    SERVES = "only what serves it, alone or several together"
    POSSIBLE = "all but what does not fit"


MEMORY_STEPS = (0, 24, 48, 80, 96, 141, 180)
"""Least memory by the size in a card's name, GB; 0: any."""


@dataclass(frozen=True)
class Listing:
    """What keys and the search box choose."""

    sort: Sort = Sort.CATALOG
    filter: Filter = Filter.ALL
    vendor: str = ""
    """Empty: any."""
    form: str = ""
    """A family of form factors, as `form_of` gives it; empty: any."""
    least_gb: int = 0
    """The size in a card's name is at least this, GB."""
    search: str = ""
    """All its words are in the card's id, name or aliases."""

    @property
    def words(self) -> tuple[str, ...]:
        """What is chosen, a phrase each, for the line above the list."""
        chosen = (
            "" if self.filter is Filter.ALL else str(self.filter),
            self.vendor,
            self.form,
            f"{self.least_gb} GB or more" if self.least_gb else "",
            f"'{self.search}'" if self.search else "",
        )
        return tuple(one for one in chosen if one) or (str(Filter.ALL),)


def form_of(card: Card) -> str:
    """`PCIe`, `SXM`, `OAM`, `Superchip`: what a card's form factor begins with; empty where none is known."""
    found = re.match(r"[A-Za-z]+", card.form_factor or "")
    return found[0] if found else ""


def vendors_of(cards: Iterable[Card]) -> tuple[str, ...]:
    """Every vendor once, in the catalog's order."""
    return tuple(dict.fromkeys(card.vendor for card in cards))


def forms_of(cards: Iterable[Card]) -> tuple[str, ...]:
    """Every family of form factors once, in the catalog's order."""
    return tuple(dict.fromkeys(filter(None, map(form_of, cards))))


def next_vendor(listing: Listing, cards: Sequence[Card]) -> Listing:
    """The next vendor; after the last, any."""
    return replace(listing, vendor=after(listing.vendor, ("", *vendors_of(cards))))


def next_form(listing: Listing, cards: Sequence[Card]) -> Listing:
    """The next family of form factors; after the last, any."""
    return replace(listing, form=after(listing.form, ("", *forms_of(cards))))


def next_memory(listing: Listing) -> Listing:
    """The next larger least memory; after the last, any."""
    return replace(listing, least_gb=after(listing.least_gb, MEMORY_STEPS))


def all_cards(listing: Listing) -> Listing:
    """Every card again, in the same order."""
    return Listing(sort=listing.sort)


def listed_rows(
    rows: Sequence[CardRow], listing: Listing, cards: Mapping[str, Card], settled: bool = True
) -> tuple[CardRow, ...]:
    """The rows that a listing keeps, in its order; a card of unknown capacity comes last. `cards` are those of the
    catalog by their ids. Until the answer is settled, what several of a card may do is not held against it."""
    keeps = _KEEPS[listing.filter]
    kept = [row for row in rows if keeps(row, settled) and _chosen(listing, cards.get(row.card))]
    key = _SORT_KEYS[listing.sort]
    return tuple(kept if key is None else sorted(kept, key=lambda row: _descending(key(row))))


def _chosen(listing: Listing, card: Card | None) -> bool:
    if card is None:  # of another catalog: nothing is known to choose it by
        return not (listing.vendor or listing.form or listing.least_gb or listing.search)
    text = " ".join((card.id, card.name, *card.aliases)).casefold()
    return (
        listing.vendor in ("", card.vendor)
        and listing.form in ("", form_of(card))
        and card.memory.nominal_gb >= listing.least_gb
        and all(word in text for word in listing.search.casefold().split())
    )


def first_that_fits(rows: Sequence[CardRow]) -> int:
    """Place of the first card that fits, 0 when none does."""
    return next((place for place, row in enumerate(rows) if row.verdict is Verdict.FITS), 0)


def _descending(size: int | None) -> tuple[bool, int]:
    return (size is None, -(size or 0))


def after(choice: Choice, choices: Sequence[Choice]) -> Choice:
    """The one after a choice, the first after the last and after one that is not among them."""
    return choices[(choices.index(choice) + 1) % len(choices)] if choice in choices else choices[0]


_KEEPS: Mapping[Filter, Callable[[CardRow, bool], bool]] = {
    Filter.ALL: lambda row, settled: True,
    Filter.FITS: lambda row, settled: row.verdict is Verdict.FITS,
    Filter.SERVES: lambda row, settled: row.cards_needed is not None or not (settled or row.verdict is Verdict.UNKNOWN),
    Filter.POSSIBLE: lambda row, settled: row.verdict is not Verdict.DOES_NOT_FIT,
}

_SORT_KEYS: Mapping[Sort, Callable[[CardRow], int | None] | None] = {
    Sort.CATALOG: None,
    Sort.HEADROOM: lambda row: row.headroom_bytes,
    Sort.CAPACITY: lambda row: row.capacity_bytes,
}
