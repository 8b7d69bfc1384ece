"""What a profile's model could be held and computed in, beside what it was: three switches, each apart. Pure."""

from __future__ import annotations

import enum
from dataclasses import dataclass

AS_PROFILED = "as profiled"
"""What a switch says while it changes nothing."""


class Weights(enum.StrEnum):
    """What linear layers and experts are held in."""

    AS_PROFILED = AS_PROFILED
    BITS_16 = "16-bit"
    FP8 = "FP8"
    BITS_4 = "4-bit"


class Compute(enum.StrEnum):
    """What activations and temporaries are in."""

    AS_PROFILED = AS_PROFILED
    FLOAT32 = "float32"
    BITS_16 = "16-bit"


class Cache(enum.StrEnum):
    """What the KV cache is held in."""

    AS_PROFILED = AS_PROFILED
    BITS_16 = "16-bit"
    FP8 = "FP8"


@dataclass(frozen=True)
class Held:
    """One choice of each."""

    weights: Weights = Weights.AS_PROFILED
    compute: Compute = Compute.AS_PROFILED
    kv_cache: Cache = Cache.AS_PROFILED

    @property
    def as_profiled(self) -> bool:
        """Nothing is changed."""
        return self == Held()
