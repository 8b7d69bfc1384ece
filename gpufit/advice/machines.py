"""How many devices of a card stand in one machine, and what of a copy reaches over several. Pure."""

from __future__ import annotations

from gpufit.advice.verdict import Devices
from gpufit.catalog.record import Card

ASSUMED_CARDS = 8
"""Cards in a machine where the catalog has no figure: as many as HGX boards carry and PCIe servers take."""


def cards_in_one(card: Card) -> int:
    """The most of a card in one machine."""
    return ASSUMED_CARDS if card.machine is None else card.machine.cards


def devices_in_one(card: Card) -> int:
    """The most devices of a card in one machine."""
    return cards_in_one(card) * card.devices_per_card


def spans(card: Card, over: Devices) -> bool:
    """Whether devices that share every layer reach over several machines, which nothing here models."""
    return over.tensor > devices_in_one(card)


def machines_for(card: Card, over: Devices, copies: int) -> int:
    """The fewest machines that hold so many copies, the devices that share a layer each in one."""
    groups_in_one = max(devices_in_one(card) // over.tensor, 1)
    in_one_group = -(-over.tensor // devices_in_one(card))
    return -(-copies * over.stages // groups_in_one) * in_one_group


def machine_words(card: Card) -> str:
    """How many stand in a machine, in words: `a machine holds at most 8 cards by the catalog`."""
    count = cards_in_one(card)
    cards = "1 card" if count == 1 else f"{count} cards"
    known = card.machine is not None and not card.machine.assumed
    return f"a machine holds at most {cards}{' by the catalog' if known else ' (assumed)'}"


def spanning_words(card: Card, over: Devices) -> str:
    """What is wrong with a copy that `spans`, and what to do about it."""
    return (
        f"spans machines: {over.tensor} devices share every layer, and {machine_words(card)}; what machines exchange "
        "is not modelled: share layers inside a machine, and spread them over machines (a pipeline)"
    )
