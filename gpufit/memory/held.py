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

    @property
    def changed(self) -> dict[str, str]:
        """Each switch that changes something, by its field, with what it is set to."""
        found = {"weights": self.weights, "compute": self.compute, "kv_cache": self.kv_cache}
        return {name: str(value) for name, value in found.items() if value != AS_PROFILED}

    @property
    def words(self) -> str:
        """The same in words: `weights FP8 and KV cache FP8`; empty where nothing is changed."""
        return " and ".join(f"{TITLES[name]} {value}" for name, value in self.changed.items())


TITLES = {"weights": "weights", "compute": "compute", "kv_cache": "KV cache"}
"""The switches as they read on screen."""
