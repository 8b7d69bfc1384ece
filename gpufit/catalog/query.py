"""From what a user types to one card: ids, names and nicknames, in any case and punctuation. Pure."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from gpufit.catalog.record import Card, Catalog
from gpufit.errors import UsageError

MOST_CANDIDATES = 8
"""How many cards an answer lists before it says how many more there are."""

_NOT_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")
_SPACED_SIZE = re.compile(r"\b(\d+)[\s_-]*gi?b\b")


def find_card(catalog: Catalog, text: str) -> Card:
    """The one card that `text` means: its id, a device name, an alias, or words that only this card has.

    Raises UsageError in one line: with the ids to choose from when several cards match (a bare `h100` always
    does), with the nearest names when none does.
    """
    found = _exactly_named(catalog.cards, text) or _having_all_words(catalog.cards, text)
    if not found:
        raise UsageError(_unknown(catalog.cards, text))
    if len(found) > 1:
        raise UsageError(f"{text!r} could be several cards; say which: {_listed(card.id for card in found)}")
    return found[0]


def find_cards(catalog: Catalog, texts: Iterable[str]) -> tuple[Card, ...]:
    """The cards that the texts mean, each once. Raises UsageError as `find_card` does."""
    return tuple({card.id: card for card in (find_card(catalog, text) for text in texts)}.values())


def names_of(card: Card) -> tuple[str, ...]:
    """Every name that means exactly this card, id first."""
    return (card.id, card.name, *card.aliases, *card.device_names)


def squash(name: str) -> str:
    """A name without case and punctuation: `H100 PCIe` and `h100-pcie` are both `h100pcie`."""
    return _NOT_ALPHANUMERIC.sub("", name.lower())


def _exactly_named(cards: Sequence[Card], text: str) -> list[Card]:
    wanted = squash(text)
    return [card for card in cards if wanted and any(squash(name) == wanted for name in names_of(card))]


def _having_all_words(cards: Sequence[Card], text: str) -> list[Card]:
    wanted = _words(text)
    return [card for card in cards if wanted and wanted <= _card_words(card)]


def _words(name: str) -> frozenset[str]:
    joined = _SPACED_SIZE.sub(r" \1gb ", name.lower())
    return frozenset(_NOT_ALPHANUMERIC.sub(" ", joined).split())


def _card_words(card: Card) -> frozenset[str]:
    """Words of id, name and aliases, and the bare size; printed device names count only as a whole."""
    names = (card.id, card.name, *card.aliases)
    return frozenset.union(*map(_words, names)) | {str(card.memory.nominal_gb)}


def _unknown(cards: Sequence[Card], text: str) -> str:
    ids = {squash(name): card.id for card in cards for name in names_of(card)}
    near = difflib.get_close_matches(squash(text), ids, n=5, cutoff=0.6)
    meant = list(dict.fromkeys(ids[name] for name in near))
    hint = f"did you mean {_listed(meant)}?" if meant else "`gpufit catalog list` shows them all"
    return f"no card {text!r} in the catalog; {hint}"


def _listed(ids: Iterable[str]) -> str:
    every = list(ids)
    more = len(every) - MOST_CANDIDATES
    shown = ", ".join(every[:MOST_CANDIDATES])
    return f"{shown} and {more} more" if more > 0 else shown
