"""Two profiles at one shape, part by part: bytes, difference, and what accounts for it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import msgspec

from gpufit.advice.accounts import Account, Asked, TermDifference, accounts_of, terms_of
from gpufit.advice.differences import Difference, differences
from gpufit.memory.part_intervals import PartInterval, part_interval
from gpufit.memory.predict import PhasePrediction, observed, predict
from gpufit.memory.terms import Shape
from gpufit.profile.base import Record, Size
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.record import Profile


class PhaseSide(Record, frozen=True, kw_only=True):
    """One phase of one profile."""

    site: str
    """Where in the model the peak lies; empty where nobody looked."""
    allocated_bytes: Size
    allocated_lower_bytes: int
    allocated_upper_bytes: int
    ran: bool
    """Whether the profile ran this very cell, so that its bytes are as they were; else they are predicted."""
    evidence: Evidence
    counters: dict[str, Size]
    """What the device's own counters said of the cell where it ran, or the allocator's rules of a simulated one:
    `reserved`, `process`, ... -> bytes."""


class PartDifference(Record, frozen=True, kw_only=True):
    """One part at the peak of one phase."""

    part: str
    """A field of Parts."""
    a_bytes: int | None
    b_bytes: int | None
    difference_bytes: int | None
    """B less A; null where one of them has no such phase."""
    beyond_intervals: bool | None
    """Whether it is more than the part's own intervals leave open."""
    accounts: tuple[Account, ...]
    """What accounts for it: what arithmetic tells first, then what is recorded and bears on it."""
    terms: tuple[TermDifference, ...]
    """How its growth differs, where both have a memory model."""


class PhaseDifference(Record, frozen=True, kw_only=True):
    """One phase of both."""

    phase: Phase
    a: PhaseSide | None
    b: PhaseSide | None
    difference_bytes: int | None
    """Of `allocated`: B less A."""
    beyond_intervals: bool | None
    """Whether the intervals of the two exclude each other."""
    parts: tuple[PartDifference, ...]


class Comparison(Record, frozen=True, kw_only=True):
    """Everything said about two profiles."""

    same: bool
    """Whether they hold the same in all but the time they were made."""
    differences: tuple[Difference, ...]
    """What they record differently, in the order to look."""
    phases: tuple[PhaseDifference, ...]


def compare(a: Profile, b: Profile, shape: Shape) -> Comparison:
    """Both profiles at one shape. Raises UsageError where one of them cannot answer for it."""
    found = differences(a, b)
    one, other = _answers(a, shape), _answers(b, shape)
    order = [phase for phase in Phase if phase in one or phase in other]
    return Comparison(
        same=a == msgspec.structs.replace(b, created_at=a.created_at),
        differences=found,
        phases=tuple(_phase(phase, one.get(phase), other.get(phase), found) for phase in order),
    )


def shape_for(profile: Profile, shape: Shape) -> Shape:
    """The shape as a profile is asked about it: a model that generates nothing has no new tokens."""
    return shape if profile.model.generates else replace(shape, new_tokens=0)


def _answers(profile: Profile, shape: Shape) -> dict[Phase, Asked]:
    """What each phase took where this very cell was run, else what is predicted of it."""
    asked = shape_for(profile, shape)
    seen = observed(profile, asked)
    return {one.phase: Asked(profile, asked, one, seen is not None) for one in seen or predict(profile, asked)}


def _phase(phase: Phase, a: Asked | None, b: Asked | None, found: Sequence[Difference]) -> PhaseDifference:
    if a is None or b is None:
        return PhaseDifference(
            phase=phase, a=_side(a), b=_side(b), difference_bytes=None, beyond_intervals=None, parts=_alone(a, b)
        )
    return PhaseDifference(
        phase=phase,
        a=_side(a),
        b=_side(b),
        difference_bytes=b.answer.allocated_bytes - a.answer.allocated_bytes,
        beyond_intervals=_beyond(a.answer, b.answer),
        parts=tuple(_part(name, a, b, found) for name in Parts.NAMES),
    )


def _side(asked: Asked | None) -> PhaseSide | None:
    if asked is None:
        return None
    one, peak = asked.answer, asked.peak
    return PhaseSide(
        site=one.site,
        allocated_bytes=one.allocated_bytes,
        allocated_lower_bytes=one.lower_bytes,
        allocated_upper_bytes=one.upper_bytes,
        ran=asked.ran,
        evidence=one.evidence,
        counters={
            reading.quantity: reading.size_bytes
            for reading in (() if peak is None else peak.readings)
            if not reading.quantity.startswith(_HOST)
        },
    )


_HOST = "rss"
"""How readings of the host's own memory begin, which no card has to offer."""


def _alone(a: Asked | None, b: Asked | None) -> tuple[PartDifference, ...]:
    """The parts of a phase that only one of them has."""
    return tuple(
        PartDifference(
            part=name,
            a_bytes=None if a is None else a.size(name),
            b_bytes=None if b is None else b.size(name),
            difference_bytes=None,
            beyond_intervals=None,
            accounts=(),
            terms=(),
        )
        for name in Parts.NAMES
    )


def _beyond(a: PhasePrediction, b: PhasePrediction) -> bool:
    """Whether the intervals of two phases exclude each other."""
    return a.upper_bytes < b.lower_bytes or b.upper_bytes < a.lower_bytes


def _part(name: str, a: Asked, b: Asked, found: Sequence[Difference]) -> PartDifference:
    a_bytes, b_bytes = a.size(name), b.size(name)
    if a_bytes == b_bytes:
        return _no_difference(name, a_bytes)
    beyond = _interval(name, a).excludes(_interval(name, b))
    return PartDifference(
        part=name,
        a_bytes=a_bytes,
        b_bytes=b_bytes,
        difference_bytes=b_bytes - a_bytes,
        beyond_intervals=beyond,
        accounts=accounts_of(name, a, b, found, beyond),
        terms=terms_of(name, a, b),
    )


def _interval(name: str, asked: Asked) -> PartInterval:
    return part_interval(asked.profile, asked.shape, asked.answer, name)


def _no_difference(name: str, size_bytes: int) -> PartDifference:
    return PartDifference(
        part=name,
        a_bytes=size_bytes,
        b_bytes=size_bytes,
        difference_bytes=0,
        beyond_intervals=False,
        accounts=(),
        terms=(),
    )
