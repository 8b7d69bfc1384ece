"""What grows along one axis of a scenario, and where it crosses what a card offers. Pure."""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from gpufit.advice.limits import CEILING, largest_with_room
from gpufit.advice.verdict import limits_of
from gpufit.catalog.record import Card
from gpufit.memory.adapt import Predicts
from gpufit.memory.carry import Carrier, carrier_to
from gpufit.memory.positions import longest_context
from gpufit.memory.predict import PhasePrediction, is_inside
from gpufit.memory.terms import Shape
from gpufit.profile.memory_model import MemoryModel
from gpufit.profile.record import Profile

SAMPLES = 60
"""Places along a curve that are predicted, beside those that are asked for by name."""

LOWEST_CONTEXT = 256
"""Where a curve over contexts begins, tokens, unless something shorter was asked for or measured."""


class Axis(enum.StrEnum):
    """What a curve runs along."""

    CONTEXT = "context"
    CONCURRENCY = "concurrency"

    def of(self, shape: Shape) -> int:
        """A shape's place on the axis: tokens or sequences."""
        return shape.context_tokens if self is Axis.CONTEXT else shape.concurrency

    def at(self, shape: Shape, place: int) -> Shape:
        """The shape at another place, all else as it is."""
        return replace(shape, context_tokens=place) if self is Axis.CONTEXT else replace(shape, concurrency=place)


@dataclass(frozen=True)
class Crossing:
    """The largest place on an axis at which one card holds everything; 0 where not even the first does."""

    estimate: int
    """By the point estimate of the need."""
    possibly: int
    """By its lower bound: anything larger surely does not fit."""


def last_place(profile: Profile, axis: Axis, new_tokens: int) -> int | None:
    """Where an axis ends: a context at the model's own position limit; None where only memory ends it."""
    model = profile.model
    limit = longest_context(model.position_limit, model.decodes_apart, new_tokens) if axis is Axis.CONTEXT else None
    return None if limit is None else max(limit, 1)


def first_place(profile: Profile, axis: Axis) -> int:
    """The least that can be asked: one, or a prompt that holds its images and a token of text."""
    return profile.workload.image_tokens + 1 if axis is Axis.CONTEXT else 1


def crossing(predictor: Predicts, card: Card, shape: Shape, axis: Axis, same_card: bool) -> Crossing | None:
    """Where the need crosses a card's capacity; None for a card of unknown memory, and for a profile that answers only
    for the cells it measured."""
    profile, capacity = predictor.profile, card.capacity_bytes
    if capacity is None or profile.memory_model is None:
        return None
    carrier = carrier_to(card, profile, same_card, profile.workload.tensor_parallel_size)
    limits = limits_of(profile) if same_card else ()

    def most(of: Callable[[PhasePrediction], int]) -> int:
        def room(place: int) -> int:
            asked = axis.at(shape, place)
            if any(
                one.context_tokens <= asked.context_tokens and one.concurrency <= asked.concurrency for one in limits
            ):
                return -1
            return capacity - max(map(of, predictor.at(asked)))

        return largest_with_room(room, last_place(profile, axis, shape.new_tokens) or CEILING)

    return Crossing(most(carrier.point_bytes), most(carrier.lower_bytes))


def ceiling_of(carrier: Carrier, capacity_bytes: int) -> int:
    """What a card leaves the allocator in every phase but loading, in bytes: its capacity less what is its own, so that
    a curve of what is allocated crosses it exactly where the need crosses the capacity."""
    return capacity_bytes - carrier.beside_bytes


def domain(profile: Profile, shape: Shape, axis: Axis) -> tuple[int, int] | None:
    """The first and the last place of an axis that lie within what was measured, all else as in the shape; None where
    none does, and for arithmetic, which reaches as far as one likes."""
    model = profile.memory_model
    if model is None or model.untested:
        return None
    first, last = _domain(model, shape, axis)
    inside = first <= last and is_inside(model, axis.at(shape, first)) and is_inside(model, axis.at(shape, last))
    return (first, last) if inside else None


def _domain(model: MemoryModel, shape: Shape, axis: Axis) -> tuple[int, int]:
    if axis is Axis.CONCURRENCY:
        return 1, min(model.max_concurrency, model.max_total_tokens // shape.cached_tokens)
    beside = shape.cached_tokens - shape.context_tokens
    return model.min_context_tokens, min(
        model.max_cached_tokens - beside, model.max_total_tokens // shape.concurrency - beside
    )


def places(low: int, high: int, named: Iterable[int]) -> tuple[int, ...]:
    """Places to predict from `low` to `high`, each about the same ratio above the one before, and those named."""
    step = math.log2(max(high, low) / low) / (SAMPLES - 1)
    even = {round(low * 2 ** (step * at)) for at in range(SAMPLES)}
    return tuple(sorted({low, high} | even | {place for place in named if low <= place <= high}))
