"""Whether a profile's memory model belongs to its cells: an edited or damaged one must not promise a fit. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.memory.predict import highest_moment
from gpufit.memory.terms import Knees, Shape, units_at
from gpufit.profile.record import Cell, Measured, MemoryModel, Phase, PhasePeak, Profile

ROUNDING_BYTES = 64
"""A prediction's parts are rounded to whole bytes each, and a miss is stored as a whole number."""


def faults(profile: Profile) -> Iterator[str]:
    """What does not agree, in words; nothing for a profile whose model foretells its own cells."""
    keys = [cell.key for cell in profile.cells]
    if len(set(keys)) != len(keys):
        yield "a cell stands in it twice"
    model = profile.memory_model
    if model is None:
        return
    phases = [one.phase for one in model.phases]
    if len(set(phases)) != len(phases):
        yield "its memory model has a phase twice"
    missing = _phases_seen(profile) - set(phases)
    if missing:
        yield f"its memory model lacks {', '.join(sorted(missing))}"
    for cell in profile.measured_cells:
        yield from _misses(profile, model, cell)


def _phases_seen(profile: Profile) -> set[Phase]:
    """The phases that every model of the profile must have: prefill or forward, which every cell went through."""
    return {Phase.PREFILL} if profile.model.generates else {Phase.FORWARD}


def _misses(profile: Profile, model: MemoryModel, cell: Cell) -> Iterator[str]:
    peaks: dict[Phase, PhasePeak] = (
        {peak.phase: peak for peak in cell.outcome.phases} if isinstance(cell.outcome, Measured) else {}
    )
    shape = Shape(cell.context_tokens, cell.new_tokens, cell.concurrency)
    for one in model.phases:
        peak = peaks.get(one.phase)
        if peak is None:
            continue
        _, predicted = highest_moment(one.moments, units_at(shape, one.phase, Knees.of(profile)))
        miss = abs(predicted.total_bytes - peak.allocated_bytes)
        if miss > one.worst_miss_bytes + ROUNDING_BYTES:
            yield (
                f"its memory model is {miss} bytes off at context {cell.context_tokens} x {cell.concurrency} in "
                f"{one.phase}, and claims {one.worst_miss_bytes} at worst"
            )
