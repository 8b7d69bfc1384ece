"""What torch's caching allocator would make of a fake run: the whole stream replayed through its rules."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from gpufit.memory.allocator import simulate
from gpufit.memory.replay import Given, Window
from gpufit.profile.record import DeviceReading, PhasePeak
from gpufit.sources.measure.recording import Recording
from gpufit.sources.measure.run import PhaseSpan

SOURCE = "caching allocator, by its rules"
"""Where these readings come from; docs/allocator.md says which rules."""


def with_reserved(
    phases: Sequence[PhasePeak], recording: Recording, given: Sequence[Given], spans: Sequence[PhaseSpan]
) -> tuple[PhasePeak, ...]:
    """The phases with the highest bytes that the allocator hands out and reserves in each, weights included.

    Only a run of every layer has such a stream: what few layers reserve says nothing of many, since free blocks are
    used again.
    """
    windows = [Window(recording.positions[span.start], recording.positions[span.end]) for span in spans]
    found = simulate(recording.events, given, windows=windows).windows
    return tuple(
        phase
        if usage is None
        else msgspec.structs.replace(
            phase,
            readings=(
                *phase.readings,
                DeviceReading(source=SOURCE, quantity="allocated", size_bytes=usage.allocated_bytes),
                DeviceReading(source=SOURCE, quantity="reserved", size_bytes=usage.reserved_bytes),
            ),
        )
        for phase, usage in zip(phases, found, strict=True)
    )
