"""From cards to lots: what a seller's lot size makes of the cards that are needed."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

_HUNDREDTH = Decimal("0.01")


def to_the_cent(amount: Decimal | float) -> float:
    """An amount in hundredths of its currency, halves upwards as sheets round them; what is below one stays as it is,
    since no price is zero."""
    exact = amount if isinstance(amount, Decimal) else Decimal(repr(amount))
    return float(exact.quantize(_HUNDREDTH, ROUND_HALF_UP) or exact)


@dataclass(frozen=True)
class LotCount:
    """What has to be ordered for a number of cards."""

    lots: int
    lot_size: int
    """Cards in a lot."""
    idle_cards: int
    """Cards paid for and not needed."""

    @property
    def cards(self) -> int:
        """Cards paid for."""
        return self.lots * self.lot_size

    def price(self, of_one: float) -> float:
        """The price of all lots, to the cent."""
        return to_the_cent(Decimal(repr(of_one)) * self.lots)


def lots_for(cards_needed: int, lot_size: int) -> LotCount:
    """The fewest whole lots that hold the cards. Raises ValueError below one card or one card a lot."""
    if cards_needed < 1 or lot_size < 1:
        raise ValueError(f"cards_needed and lot_size must be at least 1, not {cards_needed} and {lot_size}")
    lots = -(-cards_needed // lot_size)
    return LotCount(lots=lots, lot_size=lot_size, idle_cards=lots * lot_size - cards_needed)


@dataclass(frozen=True)
class Remainder:
    """What is paid for beside what the work needs, and what it could host of the same work."""

    cards: int
    """Cards paid for and not needed."""
    cost_share: float
    """Their share of the price: idle cards / cards paid for."""
    copies: int
    """Whole copies of the model that the devices without work hold."""
    sequences: int | None
    """Sequences at once that those copies surely serve; None where it is not known what one serves."""


def remainder_of(lots: LotCount, devices_per_card: int, copies: int, ranks: int, each: int | None) -> Remainder:
    """What is left of some lots beside a number of copies, each over so many devices and surely serving `each`.

    Devices are counted, not cards: a card of several devices may be needed and still have one without work.
    """
    more = max(lots.cards * devices_per_card // ranks - copies, 0)
    return Remainder(
        cards=lots.idle_cards,
        cost_share=lots.idle_cards / lots.cards,
        copies=more,
        sequences=None if each is None else more * each,
    )
