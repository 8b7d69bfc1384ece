"""How far a single part of a prediction may be off: its own interval, not that of the whole phase. Pure.

A phase's interval is as wide as what is least certain in it: hundreds of gigabytes of attention scores say nothing
of a cache whose size follows from the config.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpufit.memory.predict import (
    ERROR_SAFETY_FACTOR,
    SMALLEST_GROWTH_ERROR,
    UNTESTED_GROWTH_ERROR,
    UNTESTED_SCRATCH_ERROR,
    PhasePrediction,
    distance_outside,
    highest_moment,
    predict_parts,
)
from gpufit.memory.terms import Knees, Shape, units_at
from gpufit.profile.cells import Measured
from gpufit.profile.memory_model import MemoryModel, PhaseModel
from gpufit.profile.record import Profile

_KNOWN_EXACTLY = ("weights_bytes", "buffers_bytes")
"""No interval is theirs: what grows has one (`memory.predict`)."""
_SCRATCH = ("activations_bytes", "temporaries_bytes")


@dataclass(frozen=True)
class PartInterval:
    """Bounds of one part, in bytes."""

    lower_bytes: int
    upper_bytes: int

    def excludes(self, other: PartInterval) -> bool:
        """Whether two parts differ by more than both intervals leave open."""
        return self.upper_bytes < other.lower_bytes or other.upper_bytes < self.lower_bytes


def part_interval(profile: Profile, shape: Shape, answer: PhasePrediction, part: str) -> PartInterval:
    """The interval of a part (a field of Parts) in a profile's answer at a shape.

    None where the answer is what was seen, nor of weights and buffers. Rules that no run has tested are trusted to the
    shares of `memory.predict`; a tested model to the worst miss of this part in the cells of its profile, widened as
    the phase's own interval is.
    """
    size: int = getattr(answer.parts, part)
    model = profile.memory_model
    one = next((phase for phase in model.phases if phase.phase is answer.phase), None) if model else None
    if model is None or one is None or part in _KNOWN_EXACTLY or answer.lower_bytes == answer.upper_bytes:
        return PartInterval(size, size)
    highest = max([size, *_otherwise(profile, model, one, shape, part)])
    if model.untested:
        return PartInterval(size - _untested_margin(part, size), highest + _untested_margin(part, highest))
    seen = list(_seen(profile, one, part))
    miss = max((abs(predicted - size) for size, predicted in seen), default=0)
    largest = max((size for size, _ in seen), default=0)
    distance = distance_outside(model, shape)
    lower = size - _margin(miss, largest, size, distance)
    return PartInterval(max(lower, 0), highest + _margin(miss, largest, highest, distance))


def _untested_margin(part: str, size: int) -> int:
    share = UNTESTED_GROWTH_ERROR + (UNTESTED_SCRATCH_ERROR if part in _SCRATCH else 0)
    return math.ceil(share * size)


def _margin(miss: int, largest: int, size: int, distance: float) -> int:
    """As `memory.predict.margin_bytes` has it for all that grows, of one part."""
    worst = max(miss, SMALLEST_GROWTH_ERROR * largest)
    return math.ceil(ERROR_SAFETY_FACTOR * worst * max(1.0, size / max(largest, 1)) * (1 + math.log2(distance)))


def _seen(profile: Profile, one: PhaseModel, part: str) -> Iterator[tuple[int, int]]:
    """(bytes of a part at the phase's peak, what the model says of it) for every cell that was measured."""
    knees, by_site = Knees.of(profile), {moment.site: moment for moment in one.moments}
    for cell in profile.measured_cells:
        units = units_at(Shape(cell.context_tokens, cell.new_tokens, cell.concurrency), one.phase, knees)
        for peak in cell.outcome.phases if isinstance(cell.outcome, Measured) else ():
            if peak.phase is one.phase:
                moment = by_site.get(peak.site)
                predicted = (
                    highest_moment(one.moments, units)[1]
                    if moment is None
                    else predict_parts(moment.parts, units.of(moment.site))
                )
                yield getattr(peak.parts, part), getattr(predicted, part)


def _otherwise(profile: Profile, model: MemoryModel, one: PhaseModel, shape: Shape, part: str) -> Iterator[int]:
    """What the part would be by the terms that the cells do not rule out, and at the shortest prompt that was
    seen where this one is shorter."""
    knees = Knees.of(profile)
    units = units_at(shape, one.phase, knees)
    for alternative in one.alternatives:
        yield getattr(predict_parts(alternative, units.usual), part)
    shortest = max(shape.context_tokens, model.min_context_tokens)
    if shortest != shape.context_tokens:
        longer = units_at(replace(shape, context_tokens=shortest), one.phase, knees)
        yield getattr(highest_moment(one.moments, longer)[1], part)
