"""A chart as data: lines, levels and marks over two axes. A page draws it as SVG, a workbook as its own chart."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class ChartAxis:
    """One axis."""

    title: str
    """With its unit."""
    low: float
    high: float
    """Of what is drawn, in the axis's unit; above `low`."""
    ticks: tuple[tuple[float, str], ...]
    doublings: bool = False
    """Whether equal ways are equal ratios."""

    def share(self, place: float) -> float:
        """How far along the axis a place lies: 0 at `low`, 1 at `high`."""
        low, high, at = (math.log2(one) for one in (self.low, self.high, place)) if self.doublings else (
            self.low, self.high, place
        )  # fmt: skip
        return (at - low) / (high - low)


@dataclass(frozen=True)
class ChartLine:
    """One line, from left to right."""

    title: str
    points: tuple[tuple[float, float], ...]
    colour: str
    """`#rrggbb`, to be read on white and on black."""
    dotted: bool = False
    """What is carried beyond where it was seen."""


@dataclass(frozen=True)
class ChartLevel:
    """A height across the whole chart."""

    title: str
    height: float
    strong: bool
    """The one that is asked about."""


@dataclass(frozen=True)
class ChartMark:
    """A point with its own meaning."""

    title: str
    x: float
    y: float
    sign: str
    means: str
    """What the sign says wherever it stands."""


@dataclass(frozen=True)
class Chart:
    """What is drawn, later things in front."""

    title: str
    words: str
    """What it shows, for whoever cannot see it."""
    x: ChartAxis
    y: ChartAxis
    """Heights are in bytes."""
    levels: tuple[ChartLevel, ...]
    lines: tuple[ChartLine, ...]
    """Several of one title are pieces of one line."""
    marks: tuple[ChartMark, ...]
    here: float | None = None
    """Where on the x axis the question stands."""
