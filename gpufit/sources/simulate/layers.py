"""Which layers of a deep stack need to run: a repeating pattern is run a few times and extended. Pure.

A stack is a row of kinds: `dense dense dense moe moe moe ...`, or `slide slide full slide slide full ...`. What lies
before and after its repeating middle runs whole; of the middle only a few repetitions do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FEWEST_REPEATS = 1
"""Repetitions of the pattern in the shallowest run."""

APART = 1
"""Layers at the start that are no part of the pattern, whatever their kind: nothing lies before the first, and it reads
the embeddings themselves, which from the second on are kept beside what the layers hand on."""


@dataclass(frozen=True)
class Pattern:
    """A stack of layers whose middle repeats."""

    layers: int
    before: int
    """Layers before the repeating middle."""
    period: int
    """Layers of one repetition."""
    repeats: int
    """Repetitions in the whole stack."""

    @property
    def saved(self) -> int:
        """Layers fewer to run, over two runs that differ by one repetition; 0 or less where nothing is gained."""
        return self.layers - self.layers_at(FEWEST_REPEATS) - self.layers_at(FEWEST_REPEATS + 1)

    def layers_at(self, repeats: int) -> int:
        """Layers of the stack with so many repetitions."""
        return self.layers - (self.repeats - repeats) * self.period

    def places(self, repeats: int) -> tuple[int, ...]:
        """For each layer of the stack with so many repetitions the layer of the whole stack that it stands for."""
        kept = self.before + repeats * self.period
        skipped = (self.repeats - repeats) * self.period
        return (*range(kept), *range(kept + skipped, self.layers))


def pattern_of(kinds: Sequence[str]) -> Pattern | None:
    """The repeating pattern that leaves fewest layers to run; None where running all of them is as cheap."""
    found = [one for period in range(1, len(kinds) // 2 + 1) for one in _with_period(kinds, period)]
    best = max(found, key=lambda one: one.saved, default=None)
    return best if best is not None and best.saved > 0 else None


def _with_period(kinds: Sequence[str], period: int) -> list[Pattern]:
    """Every longest stretch of the row that repeats after so many layers."""
    found = []
    start = APART
    for place in range(APART, len(kinds) - period + 1):
        if place < len(kinds) - period and kinds[place] == kinds[place + period]:
            continue
        repeats = (place + period - start) // period
        if repeats > 1:
            found.append(Pattern(len(kinds), start, period, repeats))
        start = place + 1
    return found
