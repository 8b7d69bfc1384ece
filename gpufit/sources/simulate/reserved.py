"""What torch's caching allocator would make of a fake run: the stream of all layers replayed through its rules."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gpufit.memory.allocator import Usage, simulate
from gpufit.memory.replay import Event, Given, Window
from gpufit.profile.peaks import DeviceReading, Phase, PhasePeak

SOURCE = "caching allocator, by its rules"
"""Where these readings come from; docs/allocator.md says which rules."""

Windows = dict[Phase, Window]


def with_reserved(
    phases: Sequence[PhasePeak], events: Sequence[Event], given: Sequence[Given], windows: Windows
) -> tuple[PhasePeak, ...]:
    """The phases with the highest bytes that the allocator hands out and reserves in each, weights included.

    `events`: those of every layer; `windows`: where in them each phase lies, those left out being told of elsewhere.
    """
    asked = [phase for phase in windows if any(peak.phase is phase for peak in phases)]
    found = dict(zip(asked, simulate(events, given, windows=[windows[one] for one in asked]).windows, strict=True))
    return tuple(_read(peak, found.get(peak.phase)) for peak in phases)


def _read(peak: PhasePeak, usage: Usage | None) -> PhasePeak:
    if usage is None:
        return peak
    readings = (
        DeviceReading(source=SOURCE, quantity="allocated", size_bytes=usage.allocated_bytes),
        DeviceReading(source=SOURCE, quantity="reserved", size_bytes=usage.reserved_bytes),
    )
    return msgspec.structs.replace(peak, readings=readings)
