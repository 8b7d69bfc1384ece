"""Where a number comes from, and what that makes of a total."""

from __future__ import annotations

import enum
from collections.abc import Iterable


class Evidence(enum.StrEnum):
    """Where a number comes from, strongest first."""

    MEASURED = "measured"
    """Read from this device during this run."""
    IMPORTED = "imported"
    """Printed by a serving engine in its own log."""
    SIMULATED = "simulated"
    """From the same run on fake tensors."""
    COMPUTED = "computed"
    """Arithmetic over a config and file headers."""
    SCALED = "scaled"
    """A measured number carried beyond where it was seen, by a stated rule."""
    ASSUMED = "assumed"
    """A default or a catalog constant."""

    @property
    def weakness(self) -> int:
        """0 for the strongest evidence, growing as it weakens."""
        return _WEAKNESS[self]


_WEAKNESS = {evidence: rank for rank, evidence in enumerate(Evidence)}


def weakest(evidence: Iterable[Evidence]) -> Evidence:
    """The evidence of a total: the weakest among its parts. Raises ValueError when there are none."""
    return max(evidence, key=lambda one: one.weakness)
