"""Prices that a seller hardly means: a slip of the keyboard, or a price a day where one for the term belongs. Pure."""

from __future__ import annotations

from gpufit.catalog.offers import Offer

LEAST_A_CARD_AND_DAY = 1.0
"""Below this a price is odd, in any currency: a fifth of the lowest in public-indicative, 5.04 USD a day for an L4."""


def odd_prices(offer: Offer) -> dict[int, str]:
    """What is odd about an offer's prices, in words, by term in days; a price that is not odd has no key."""
    found: dict[int, str] = {}
    for days, price in offer.prices.items():
        a_card_and_day = price / offer.lot_size / days
        dearer = [shorter for shorter, other in offer.prices.items() if shorter < days and other > price]
        if a_card_and_day < LEAST_A_CARD_AND_DAY:
            found[days] = f"{a_card_and_day:.2g} a card and day"
        elif dearer:
            found[days] = f"less than for {dearer[-1]} days"
    return found
