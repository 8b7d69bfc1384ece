"""Whether a profile's memory model belongs to its cells: an edited or damaged one must not promise a fit. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.memory.predict import growth_of, highest_moment
from gpufit.memory.terms import Knees, Shape, units_at
from gpufit.profile.cells import Cell, Measured
from gpufit.profile.evidence import Evidence
from gpufit.profile.memory_model import MemoryModel, PhaseModel
from gpufit.profile.peaks import ELSEWHERE, END_OF_PHASE, Phase, PhasePeak
from gpufit.profile.record import Profile

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
    if model.untested:
        if profile.evidence is not Evidence.COMPUTED:
            yield "its memory model is made of rules, and it calls itself " + profile.evidence
        return
    yield from _wrong_reach(profile, model)
    for one in model.phases:
        yield from _missing_moments(profile, one)
    for cell in profile.measured_cells:
        yield from _misses(profile, model, cell)


def _phases_seen(profile: Profile) -> set[Phase]:
    """The phases that every model of the profile must have: prefill or forward, which every cell went through."""
    return {Phase.PREFILL} if profile.model.generates else {Phase.FORWARD}


def _wrong_reach(profile: Profile, model: MemoryModel) -> Iterator[str]:
    """A model that claims to have been fitted to more than the cells are: it would call measured what is stretched."""
    shapes = [Shape(*cell.key) for cell in profile.measured_cells]
    if not shapes:
        yield "it has a memory model, and no measured cell"
        return
    seen = {
        "cached tokens": (model.max_cached_tokens, max(shape.cached_tokens for shape in shapes)),
        "sequences": (model.max_concurrency, max(shape.concurrency for shape in shapes)),
        "tokens in all": (model.max_total_tokens, max(shape.total_tokens for shape in shapes)),
        "new tokens": (model.max_new_tokens or 0, max(shape.new_tokens for shape in shapes)),
    }
    for name, (claimed, measured) in seen.items():
        if claimed > measured:
            yield f"its memory model claims to reach {claimed} {name}, and its cells reach {measured}"


def _missing_moments(profile: Profile, one: PhaseModel) -> Iterator[str]:
    """A model without the moment that was some cell's peak, or with a reach that its cells do not have."""
    peaks = [
        peak
        for cell in profile.measured_cells
        for peak in (cell.outcome.phases if isinstance(cell.outcome, Measured) else ())
        if peak.phase is one.phase
    ]
    growth = max((growth_of(peak.parts) for peak in peaks), default=0)
    if one.largest_growth_bytes != growth:
        yield f"its memory model claims that {one.largest_growth_bytes} bytes grew in {one.phase}, not {growth}"
    sites = {moment.site for moment in one.moments}
    named = {peak.site for peak in peaks if peak.moments}
    if named and not (named | {END_OF_PHASE}) <= sites and ELSEWHERE not in sites:
        lost = sorted((named | {END_OF_PHASE}) - sites)
        yield f"its memory model of {one.phase} lacks the moment at {lost[0]}"
    if not sites:
        yield f"its memory model of {one.phase} has no moment"


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
