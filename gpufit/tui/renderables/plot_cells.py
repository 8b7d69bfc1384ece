"""Which cells of the terminal the places of a plot come to, so that words keep off what must be seen."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

Place = tuple[float, float]
Taken = dict[int, set[int]]
"""Columns by row."""


@dataclass(frozen=True)
class PlotCells:
    """The cells inside the frame: the library draws a frame one cell wide, with the ticks' words outside of it, and two
    rows of ticks below."""

    x_range: tuple[float, float]
    y_range: tuple[float, float]
    left: int
    """Column of the lowest x."""
    right: int
    """Column of the highest x."""
    height: int
    """Rows of the whole plot."""

    def row(self, y: float) -> int:
        """Counted from the bottom."""
        low, high = self.y_range
        return round((y - low) / (high - low) * max(self.height - 4, 1))

    def column(self, x: float) -> int:
        """Counted from the left of the whole plot."""
        low, high = self.x_range
        return self.left + round((x - low) / (high - low) * (self.right - self.left))

    def x(self, column: int) -> float:
        """The place of a column."""
        low, high = self.x_range
        return low + (column - self.left) / max(self.right - self.left, 1) * (high - low)

    def take(self, taken: Taken, place: Place, width: int, beside: int = 0) -> None:
        """Note `width` cells from a place on, and as many as `beside` at both ends."""
        at = self.column(place[0])
        taken.setdefault(self.row(place[1]), set()).update(range(at - beside, at + width + beside))

    def covered(self, taken: Taken, place: Place, width: int) -> int:
        """How many cells that are taken, or outside, words from a place on would stand on."""
        at = self.column(place[0])
        wanted = range(at, at + width)
        outside = max(at + width - 1 - self.right, 0) + max(self.left - at, 0)
        return len(taken.get(self.row(place[1]), set()).intersection(wanted)) + outside

    def best(self, taken: Taken, places: Iterable[Place], width: int) -> Place:
        """The first of the places where words cover least."""
        return min(places, key=lambda place: self.covered(taken, place, width))
