"""A profile's prediction beside a repeat of one of its cells: which figures are inside, and whether it held. Pure."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from gpufit.advice.differences import FLAGGED, Difference, Topic, differences
from gpufit.advice.verdict import Verdict
from gpufit.catalog.record import Card
from gpufit.errors import UsageError
from gpufit.memory.carry import Carrier, carrier_to
from gpufit.memory.here import Expected, expected_here
from gpufit.memory.predict import PhasePrediction, predict
from gpufit.memory.terms import Shape
from gpufit.profile.base import Record, Size
from gpufit.profile.cells import Measured, OutOfMemory
from gpufit.profile.environment import DeviceInfo
from gpufit.profile.evidence import Evidence, weakest
from gpufit.profile.peaks import DeviceReading, Parts, Phase, PhasePeak
from gpufit.profile.record import Profile


class Ending(enum.StrEnum):
    """How a verification ended."""

    INSIDE = "inside"
    """It ran to its end, and every phase is inside its interval."""
    OUTSIDE = "outside"
    """It ran to its end, and a phase is not."""
    OUT_OF_MEMORY = "out_of_memory"


class PartPair(Record, frozen=True, kw_only=True):
    """One part at the peak of a phase."""

    part: str
    """A field of Parts."""
    predicted_bytes: Size
    measured_bytes: Size | None
    difference_bytes: int | None
    """Measured less predicted."""


class PhasePair(Record, frozen=True, kw_only=True):
    """One phase, predicted and measured; what was not measured is null."""

    phase: Phase
    evidence: Evidence
    """Of the prediction."""
    predicted_bytes: Size
    """Of `allocated`."""
    predicted_lower_bytes: Size
    predicted_upper_bytes: Size
    measured_bytes: Size | None
    difference_bytes: int | None
    """Measured less predicted."""
    inside: bool | None
    """Whether what was measured lies in the interval."""
    reserved_predicted_bytes: Size | None
    """What the profile's own cell had an allocator reserve; null where it ran none such, or on a CPU."""
    reserved_measured_bytes: Size | None
    parts: tuple[PartPair, ...]


@dataclass(frozen=True)
class Repeat:
    """What a cell came to when it was run again."""

    device: DeviceInfo | None
    """None where the model could not even be loaded."""
    peaks: tuple[PhasePeak, ...]
    """Of every phase that ended, `load` first."""
    out_of_memory: OutOfMemory | None = None


class CardCeiling(Record, frozen=True, kw_only=True):
    """The memory of a card, put as a limit on a run on another device."""

    card: str
    """Its id in the catalog."""
    capacity_bytes: Size
    """What torch sees on it."""
    context_bytes: Size
    """Driver context and loaded kernels, which take their part of it first."""
    limit_bytes: Size
    """The rest: what torch's allocator can have."""


class ContextPair(Record, frozen=True, kw_only=True):
    """Driver context and loaded kernels, which a card has to offer beside what is allocated."""

    predicted_bytes: Size
    predicted_upper_bytes: Size
    measured_bytes: Size
    inside: bool
    """Whether no more was measured than the upper bound; less is no harm."""


class Verification(Record, frozen=True, kw_only=True):
    """A prediction held against a run."""

    ending: Ending
    expected: Verdict
    """What the prediction said of the memory that the run had."""
    room_bytes: Size | None
    """That memory: the limit put on the run, or what the device had free."""
    phases: tuple[PhasePair, ...]
    context: ContextPair | None
    """Null where it was not measured (a CPU), or the catalog does not know the card."""


def verify(
    profile: Profile, shape: Shape, repeat: Repeat, limit_bytes: int | None, carrier: Carrier | None = None
) -> Verification:
    """A profile's prediction at a shape against its repeat, which ran within `limit_bytes` where there was a limit.

    `carrier` carries the profile to the card that is here; None where there is none, or none that is known.

    Raises UsageError where the profile cannot answer for the shape.
    """
    device = repeat.device or profile.environment.device
    found = predictions(profile, shape)
    expected = [expected_here(profile, one, device) for one in found]
    peaks = {peak.phase: peak for peak in repeat.peaks}
    reserved = {} if device.kind == "cpu" else _reserved_before(profile, shape)
    phases = tuple(
        _pair(_evidence(profile, prediction, device), one, peaks.get(one.phase), reserved.get(one.phase))
        for prediction, one in zip(found, expected, strict=True)
    )
    room = limit_bytes if limit_bytes is not None else _free(repeat.device)
    context = _context(repeat.device, carrier)
    return Verification(
        ending=_ending(phases, context, repeat),
        expected=verdict_within(expected, room),
        room_bytes=room,
        phases=phases,
        context=context,
    )


def ceiling_of(card: Card, profile: Profile, same_card: bool) -> CardCeiling:
    """The memory that a card leaves to torch's allocator; `same_card` says that the profile was measured on it.

    Raises UsageError where nobody has reported what software sees on the card.
    """
    if card.capacity_bytes is None:
        raise UsageError(f"nobody has reported what software sees on {card.id}, so there is no ceiling to run under")
    context = carrier_to(card, profile, same_card).context_bytes
    return CardCeiling(
        card=card.id,
        capacity_bytes=card.capacity_bytes,
        context_bytes=context,
        limit_bytes=card.capacity_bytes - context,
    )


def predictions(profile: Profile, shape: Shape) -> tuple[PhasePrediction, ...]:
    """What the profile says of a shape, without a decode phase where no second token is generated."""
    found = predict(profile, shape)
    return tuple(one for one in found if one.phase is not Phase.DECODE or shape.new_tokens > 1)


def verdict_within(expected: Sequence[Expected], room_bytes: int | None) -> Verdict:
    """Whether all phases fit into so much memory, by their bounds."""
    if room_bytes is None:
        return Verdict.UNKNOWN
    if max(one.upper_bytes for one in expected) <= room_bytes:
        return Verdict.FITS
    if max(one.lower_bytes for one in expected) > room_bytes:
        return Verdict.DOES_NOT_FIT
    return Verdict.TOO_CLOSE


def what_differs(profile: Profile, repeat: Profile) -> tuple[Difference, ...]:
    """What the two runs record differently and what bears on memory; that one is a repeat of the other's cell, and what
    it was asked for, is no difference, and a device only where the profile is of one. Each run has flags of its own."""
    nowhere = profile.environment.device.kind == "none"
    left_out = (Topic.EVIDENCE, Topic.WORKLOAD, *((Topic.DEVICE,) if nowhere else ()))
    found = differences(profile, repeat)
    return tuple(one for one in found if one.bears_on and one.topic not in left_out and one.what != FLAGGED)


def _ending(phases: Sequence[PhasePair], context: ContextPair | None, repeat: Repeat) -> Ending:
    if repeat.out_of_memory is not None:
        return Ending.OUT_OF_MEMORY
    held = all(one.inside for one in phases) and (context is None or context.inside)
    return Ending.INSIDE if held else Ending.OUTSIDE


def _context(device: DeviceInfo | None, carrier: Carrier | None) -> ContextPair | None:
    if device is None or device.context_bytes is None or carrier is None:
        return None
    most = carrier.context_bytes + carrier.context_spread_bytes
    return ContextPair(
        predicted_bytes=carrier.context_bytes,
        predicted_upper_bytes=most,
        measured_bytes=device.context_bytes,
        inside=device.context_bytes <= most,
    )


def _free(device: DeviceInfo | None) -> int | None:
    """What a device had for the allocator: its own total less what others used, and less the context."""
    if device is None:
        return None
    return max(device.total_bytes - (device.used_before_bytes or 0) - (device.context_bytes or 0), 0)


def _evidence(profile: Profile, prediction: PhasePrediction, device: DeviceInfo) -> Evidence:
    """That of the prediction; a figure that another device gave is scaled to this one."""
    ran_on = profile.environment.device
    elsewhere = ran_on.kind != "none" and (ran_on.kind, ran_on.name) != (device.kind, device.name)
    return weakest([prediction.evidence, Evidence.SCALED]) if elsewhere else prediction.evidence


def _reserved_before(profile: Profile, shape: Shape) -> dict[Phase, int]:
    """What an allocator reserved in each phase, where the profile ran this very cell and read or replayed it."""
    key = (shape.context_tokens, shape.new_tokens, shape.concurrency)
    cells = [cell.outcome for cell in profile.measured_cells if cell.key == key]
    peaks = [peak for outcome in cells if isinstance(outcome, Measured) for peak in outcome.phases]
    sizes = {peak.phase: _reserved(peak.readings) for peak in (profile.load, *peaks)}
    return {phase: size for phase, size in sizes.items() if size is not None}


def _reserved(readings: Sequence[DeviceReading]) -> int | None:
    return next((one.size_bytes for one in readings if one.quantity == "reserved"), None)


def _pair(evidence: Evidence, one: Expected, peak: PhasePeak | None, reserved: int | None) -> PhasePair:
    predicted = one.parts.total_bytes
    measured = None if peak is None else peak.allocated_bytes
    return PhasePair(
        phase=one.phase,
        evidence=evidence,
        predicted_bytes=predicted,
        predicted_lower_bytes=one.lower_bytes,
        predicted_upper_bytes=one.upper_bytes,
        measured_bytes=measured,
        difference_bytes=None if measured is None else measured - predicted,
        inside=None if measured is None else one.lower_bytes <= measured <= one.upper_bytes,
        reserved_predicted_bytes=reserved,
        reserved_measured_bytes=None if peak is None else _reserved(peak.readings),
        parts=tuple(_part(name, one.parts, None if peak is None else peak.parts) for name in Parts.NAMES),
    )


def _part(name: str, predicted: Parts, measured: Parts | None) -> PartPair:
    before: int = getattr(predicted, name)
    after: int | None = None if measured is None else getattr(measured, name)
    return PartPair(
        part=name,
        predicted_bytes=before,
        measured_bytes=after,
        difference_bytes=None if after is None else after - before,
    )
