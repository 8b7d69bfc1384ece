"""The rules of PyTorch's CUDA caching allocator, replayed: what a stream makes it reserve, and where it ends.

Pure: no torch, no device. `docs/allocator.md` says which rules, and how close they come to readings of a real card.
"""

from __future__ import annotations

from gpufit.memory.allocator.run import OutOfMemory, Simulation, Usage, least_capacity, simulate
from gpufit.memory.allocator.settings import (
    DEFAULTS,
    Settings,
    handed_out,
    parse_settings,
    rounded_size,
    segment_size,
)

__all__ = [
    "DEFAULTS",
    "OutOfMemory",
    "Settings",
    "Simulation",
    "Usage",
    "handed_out",
    "least_capacity",
    "parse_settings",
    "rounded_size",
    "segment_size",
    "simulate",
]
