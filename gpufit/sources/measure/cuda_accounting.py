"""From a recording on a card to parts that add up to the allocator's own counter. Pure.

The allocator's history tells what was requested, its counters what was handed out. So the replay finds the peak of
what was requested and its composition, and the counter's peak of the same phase is `allocated`; what lies between
is rounding, as far as the allocator's rules allow that much, and `unexplained` beyond.

Where the two peaks are different moments, the gap lies between the rounding at one and the rounding at the other:
requested is highest at the first and allocated at the second. The parts are those of the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from gpufit.memory.replay import Event, Given, Label, Peak
from gpufit.profile.peaks import DeviceReading
from gpufit.sources.measure.cuda_history import CudaRecording
from gpufit.sources.measure.recording import Recording
from gpufit.units import MIB

BLOCK_BYTES = 512
"""Every size is rounded up to a multiple of this (kMinBlockSize in c10/core/AllocatorConfig.h)."""
LARGE_BYTES = MIB
"""Blocks above this come from the large pool, where a rest of up to as much is not split off (kSmallSize, there)."""

COUNTER = "torch.cuda.memory_stats"
"""The source of every reading of the allocator's counters."""
ALLOCATED = "allocated"
"""The quantity that the parts of a phase add up to."""


def slack_bytes(settings: str) -> int | None:
    """How much unsplit rest a large block may keep under an allocator's settings (`PYTORCH_ALLOC_CONF`).

    None where the settings change rounding itself. https://docs.pytorch.org/docs/stable/notes/cuda.html
    """
    plain = settings.lower().replace(" ", "")
    if any(name in plain for name in ("roundup_power2_divisions", "max_split_size_mb", "max_non_split_rounding_mb")):
        return None
    return 0 if "expandable_segments:true" in plain else LARGE_BYTES


def most_rounding(sizes: Iterable[int], slack: int) -> int:
    """The most that the allocator may add to blocks of these requested sizes, in bytes."""
    total = 0
    for size in sizes:
        rounding = -size % BLOCK_BYTES
        total += rounding + (slack if size + rounding > LARGE_BYTES else 0)
    return total


def known_blocks(
    recording: Recording, held: Sequence[Given], position: int, labels: Sequence[Label]
) -> tuple[Sequence[Given], Sequence[Label]]:
    """What is known of the blocks of a recording: on a card by block, elsewhere as it was given.

    `held` is what the model holds at `position`. On a card every block is known by its address: those from before
    the recording are given, as `unexplained` until a label names them, and a storage that lies inside a block (a
    slice of another allocation) names the whole block, for nothing else can use the rest of it.
    """
    if not isinstance(recording, CudaRecording):
        return held, labels
    given = [Given(block.address, block.requested_bytes, "unexplained") for block in recording.before]
    named = [Label(one.address, one.category, position) for one in held]
    return given, at_block_starts(given, recording.events, [*labels, *named])


def at_block_starts(given: Iterable[Given], events: Sequence[Event], labels: Iterable[Label]) -> list[Label]:
    """The labels with each address moved to the start of the block that it lies in at its position.

    A label of no block is left out: its storage is not the allocator's (host memory, another library's).
    """
    live = {one.address: one.size_bytes for one in given}
    waiting = sorted(labels, key=lambda label: label.position, reverse=True)
    moved = []
    for position in range(len(events) + 1):
        while waiting and waiting[-1].position == position:
            label = waiting.pop()
            start = _block_around(label.address, live)
            if start is not None:
                moved.append(Label(start, label.category, position, label.since_birth))
        if position < len(events):
            event = events[position]
            live.pop(event.address, None)
            if event.size_bytes:
                live[event.address] = event.size_bytes
    return moved


def _block_around(address: int, live: Mapping[int, int]) -> int | None:
    if address in live:
        return address
    return next((start for start, size in live.items() if start < address < start + size), None)


def account(
    recording: Recording, peak: Peak, readings: tuple[DeviceReading, ...]
) -> tuple[dict[str, int], tuple[DeviceReading, ...]]:
    """(bytes by part, readings) of a phase: on a card completed to the counter's peak, elsewhere as they are.

    Should the replay find more than the counter, the replay's blocks are kept, each of which the allocator's own
    history shows, and the difference is added to the readings in words.
    """
    parts = {str(category): size for category, size in peak.composition.items()}
    counted = _counted(readings)
    if not isinstance(recording, CudaRecording) or counted is None:
        return parts, readings
    gap = counted - peak.live_bytes
    if gap < 0:
        return parts, (*readings, _disagreement(-gap))
    rounding = gap if recording.slack_bytes is None else min(gap, most_rounding(peak.blocks, recording.slack_bytes))
    parts["rounding"] = rounding
    parts["unexplained"] = parts.get("unexplained", 0) + gap - rounding
    return parts, readings


def moment_parts(moment: Peak, peak: Peak, at_the_peak: Mapping[str, int]) -> dict[str, int]:
    """Bytes by part of another moment of the phase, whose parts at its peak are given.

    The counter tells what the allocator added at the peak alone; the same is taken to be added at any other moment.
    """
    parts = {str(category): size for category, size in moment.composition.items()}
    for name in ("rounding", "unexplained"):
        added = at_the_peak.get(name, 0) - peak.composition.get(name, 0)  # type: ignore[call-overload]
        if added:
            parts[name] = parts.get(name, 0) + added
    return parts


def _counted(readings: Iterable[DeviceReading]) -> int | None:
    return next((one.size_bytes for one in readings if one.source == COUNTER and one.quantity == ALLOCATED), None)


def _disagreement(excess: int) -> DeviceReading:
    return DeviceReading(
        source="replay of the allocator's history: more than its counter; the replay is kept",
        quantity="allocated_excess",
        size_bytes=excess,
    )
