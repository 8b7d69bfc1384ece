"""What follows from the cards needed, cards in a lot and the price of a lot, as formulas that all sheets share."""

from __future__ import annotations


def lots_formula(needed: str, lot_size: str) -> str:
    """Whole lots; blank where no number of cards serves. Arguments are cells or parts of a formula."""
    return f'=IF({needed}="","",ROUNDUP({needed}/{lot_size},0))'


def idle_formula(needed: str, lot_size: str, lots: str) -> str:
    """Cards paid for and not needed."""
    return f'=IF({needed}="","",{lots}*{lot_size}-{needed})'


def idle_price_formula(total: str, idle: str, lots: str, lot_size: str) -> str:
    """What of a total is for cards that are not needed."""
    return f'=IF({total}="","",ROUND({total}*{idle}/({lots}*{lot_size}),2))'


def total_formula(lots: str, of_one: str) -> str:
    """The price of all lots, to a hundredth; blank while one of them is."""
    return f'=IF(OR({lots}="",{of_one}=""),"",ROUND({lots}*{of_one},2))'
