"""One printed figure beside the predicted one, and what many of them say together."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Comparison:
    """One printed figure beside the predicted one."""

    row: str
    """The row's id in the data."""
    figure: str
    model: str
    predicted: float
    """Bytes, tokens, or sequences."""
    printed: float
    lower: float
    upper: float
    why: str = ""
    """Why it may differ, where that is known."""
    resolution: float = 0.0
    """Half of the last digit that was printed, in the figure's unit: nobody can be closer."""

    @property
    def error(self) -> float:
        """Predicted over printed, less one."""
        return self.predicted / self.printed - 1

    @property
    def inside(self) -> bool:
        """Whether the interval holds what was printed, as far as it was printed."""
        return self.lower - self.resolution <= self.printed <= self.upper + self.resolution

    @property
    def broken(self) -> bool:
        """Whether more was printed than the upper bound promises."""
        return self.printed - self.resolution > self.upper


@dataclass(frozen=True)
class Summary:
    """What comparisons of one kind say together."""

    rows: int
    mean: float
    """Of the absolute errors."""
    median: float
    worst: float
    inside: int
    broken: int


def summary(found: Sequence[Comparison]) -> Summary:
    """The summary of at least one comparison."""
    errors = [abs(one.error) for one in found]
    return Summary(
        rows=len(found),
        mean=statistics.mean(errors),
        median=statistics.median(errors),
        worst=max(errors),
        inside=sum(one.inside for one in found),
        broken=sum(one.broken for one in found),
    )
