"""From cards to lots: what a seller's lot size makes of the cards that are needed."""

from __future__ import annotations

from dataclasses import dataclass


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


def lots_for(cards_needed: int, lot_size: int) -> LotCount:
    """The fewest whole lots that hold the cards. Raises ValueError below one card or one card a lot."""
    if cards_needed < 1 or lot_size < 1:
        raise ValueError(f"cards_needed and lot_size must be at least 1, not {cards_needed} and {lot_size}")
    lots = -(-cards_needed // lot_size)
    return LotCount(lots=lots, lot_size=lot_size, idle_cards=lots * lot_size - cards_needed)
