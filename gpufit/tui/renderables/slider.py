"""A slider in one line, and the values that it stops at."""

from __future__ import annotations

from functools import cache

from rich.text import Text

from gpufit.tui.renderables.palette import DIM, STRONG

KNOB = "●"
_RAIL = "─"


@cache
def stops(limit: int) -> tuple[int, ...]:
    """1, 2, 3, 4, 6, 8, 12, 16 ... up to the limit, which is one of them."""
    found = {1, limit}
    power = 2
    while power <= limit:
        found |= {power, min(power + power // 2, limit)}
        power *= 2
    return tuple(sorted(found))


def place_of(value: int, limit: int, width: int) -> int:
    """The cell of a value on a rail of `width` cells, the first stop in the first and the limit in the last."""
    places = stops(limit)
    below = sum(stop <= value for stop in places) - 1
    return round(below * (width - 1) / max(len(places) - 1, 1))


def value_at(place: int, limit: int, width: int) -> int:
    """The stop nearest to a cell of the rail."""
    places = stops(limit)
    share = min(max(place, 0), width - 1) / max(width - 1, 1)
    return places[round(share * (len(places) - 1))]


def slider(title: str, value: int, limit: int, said: str, width: int) -> Text:
    """`context ───●───── 8k`, exactly as wide as asked; the rail takes what title and value leave."""
    rail = rail_width(title, said, width)
    at = place_of(value, limit, rail)
    text = Text(no_wrap=True).append(f"{title} ", DIM)
    text.append(_RAIL * at, DIM).append(KNOB, STRONG).append(_RAIL * (rail - at - 1), DIM)
    return text.append(f" {said}".ljust(VALUE_WIDTH), STRONG)


VALUE_WIDTH = 8
"""Cells kept for the value at least: a blank and `131,072`."""


def rail_width(title: str, said: str, width: int) -> int:
    """Cells of the rail in a slider of `width` cells; a longer value takes its room from it."""
    return max(width - len(title) - 1 - max(VALUE_WIDTH, len(said) + 1), 3)
