"""A stream of events through the allocator: what it reserved, what that cost, and the request that ended it.

The stream is the replay's (`gpufit.memory.replay`): addresses only say which block is meant, and where the blocks
really lie is decided here. What was `Given` is allocated first, in its order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from gpufit.memory.allocator.blocks import Block
from gpufit.memory.allocator.caching import Allocator
from gpufit.memory.allocator.settings import SEGMENT_STEP_BYTES, Settings, rounded_size
from gpufit.memory.replay import Event, Given, Window


@dataclass(frozen=True)
class Usage:
    """The highest values of a stretch of the stream, in bytes; each has a moment of its own.

    There is no `active` beside them: with one stream nothing waits to be reused, so it is `allocated`.
    """

    requested_bytes: int
    allocated_bytes: int
    reserved_bytes: int


@dataclass(frozen=True)
class OutOfMemory:
    """The request that could not be met, after everything unused had been given back."""

    position: int | None
    """Events that had happened before it; None for a block that was given."""
    address: int
    requested_bytes: int
    allocated_bytes: int
    """Handed out at that moment."""
    reserved_bytes: int
    """Still reserved: `reserved_bytes - allocated_bytes` is what fragmentation kept from the request."""


@dataclass(frozen=True)
class Simulation:
    """What a run made of the allocator, up to its end or to the request that failed."""

    peak: Usage
    windows: tuple[Usage | None, ...]
    """One a window asked for; None for a window that the run did not get to."""
    fragmentation_at_peak_bytes: int
    """Reserved minus allocated when `reserved` first stood at its peak."""
    fragmentation_at_end_bytes: int
    segments: int
    """Times that the driver gave memory (`num_device_alloc`): a segment, or pages for an expandable one."""
    retries: int
    """Times that everything unused was given back for want of memory (`num_alloc_retries`)."""
    out_of_memory: OutOfMemory | None

    @property
    def fits(self) -> bool:
        """The run went through."""
        return self.out_of_memory is None


def simulate(
    events: Sequence[Event],
    given: Iterable[Given] = (),
    settings: Settings | None = None,
    capacity_bytes: int | None = None,
    windows: Sequence[Window] = (),
) -> Simulation:
    """Run a stream under a ceiling of `capacity_bytes` (None: none), by torch's settings unless others are given.

    The ceiling is what the driver can give the allocator: memory of the card without context and other libraries.
    Garbage collection works as if the ceiling had been set with `set_per_process_memory_fraction`; without one torch
    does not collect. Peaks are those between events, and end with the event before a request that fails. A free of an
    address that nothing lives at is ignored, and a block at an address that is taken ends the one before it, as in the
    replay. Raises ValueError for a window outside the stream.
    """
    for window in windows:
        if not 0 <= window.start <= window.end <= len(events):
            raise ValueError(f"window {window} lies outside a stream of {len(events)} events")
    track = _Track(Allocator(settings or Settings(), capacity_bytes))
    for one in given:
        if not track.apply(one.address, one.size_bytes):
            track.note()
            ended = track.result((), track.refusal(one.address, one.size_bytes, None))
            return replace(ended, windows=(None,) * len(windows))
    track.note()
    for position, (address, size) in enumerate(events):
        if not track.apply(address, size):
            return track.result(windows, track.refusal(address, size, position))
        track.note()
    return track.result(windows, None)


def least_capacity(events: Sequence[Event], given: Sequence[Given] = (), settings: Settings | None = None) -> int:
    """The least ceiling in bytes, a multiple of 2 MiB, that halving finds the stream to go through under.

    Searched are the multiples of 2 MiB (`reserved` always is one), from the peak of the rounded sizes up to a ceiling
    under which nothing is ever given back. Held for the answer: the run goes through there, and not under 2 MiB less.
    Not claimed: that no smaller ceiling would do, nor that every larger one does. Under a ceiling the allocator gives
    back what is unused and takes it again in other sizes, so a run may fail under one ceiling and go through under a
    smaller one; every ceiling from a run's reserved peak up to the one it ran under gives that same run.
    """
    settings = settings or Settings()
    floor = -(-_least_allocated(events, given, settings) // SEGMENT_STEP_BYTES)
    free_run = simulate(events, given, settings).peak.reserved_bytes
    # So high that no collection begins either.
    ample = free_run / (settings.garbage_collection_threshold or 1)
    fails, goes = floor - 1, int(ample // SEGMENT_STEP_BYTES) + (settings.garbage_collection_threshold is not None)
    while goes - fails > 1:
        middle = (fails + goes) // 2
        if simulate(events, given, settings, middle * SEGMENT_STEP_BYTES).fits:
            goes = middle
        else:
            fails = middle
    return goes * SEGMENT_STEP_BYTES


def _least_allocated(events: Sequence[Event], given: Iterable[Given], settings: Settings) -> int:
    """The peak of the rounded sizes alive: what any ceiling must hold, however well the blocks lie."""
    live: dict[int, int] = {}
    now = peak = 0
    for address, size in [*((one.address, one.size_bytes) for one in given), *events]:
        now -= live.pop(address, 0)
        if size:
            live[address] = rounded_size(size, settings)
            now += live[address]
            peak = max(peak, now)
    return peak


class _Track:
    """The allocator beside the stream: which block lives at which of its addresses, and the counters so far."""

    def __init__(self, allocator: Allocator) -> None:
        self.allocator = allocator
        self.live: dict[int, tuple[Block, int]] = {}
        self.requested_now = 0
        self.requested: list[int] = []
        self.allocated: list[int] = []
        self.reserved: list[int] = []

    def apply(self, address: int, size: int) -> bool:
        """One change; False when it is a request that cannot be met."""
        ended = self.live.pop(address, None)
        if ended is not None:
            self.requested_now -= ended[1]
            self.allocator.free(ended[0])
        if size:
            block = self.allocator.allocate(size)
            if block is None:
                return False
            self.live[address] = (block, size)
            self.requested_now += size
        return True

    def note(self) -> None:
        """Keep the counters of this position."""
        self.requested.append(self.requested_now)
        self.allocated.append(self.allocator.allocated_bytes)
        self.reserved.append(self.allocator.reserved_bytes)

    def refusal(self, address: int, size: int, position: int | None) -> OutOfMemory:
        """The request that could not be met just now."""
        allocator = self.allocator
        return OutOfMemory(position, address, size, allocator.allocated_bytes, allocator.reserved_bytes)

    def result(self, windows: Sequence[Window], refusal: OutOfMemory | None) -> Simulation:
        """What there is to say at the end."""
        peak = Usage(max(self.requested), max(self.allocated), max(self.reserved))
        highest = self.reserved.index(peak.reserved_bytes)
        return Simulation(
            peak=peak,
            windows=tuple(self._usage(window.start, window.end + 1) for window in windows),
            fragmentation_at_peak_bytes=peak.reserved_bytes - self.allocated[highest],
            fragmentation_at_end_bytes=self.allocator.reserved_bytes - self.allocator.allocated_bytes,
            segments=self.allocator.segments,
            retries=self.allocator.retries,
            out_of_memory=refusal,
        )

    def _usage(self, start: int, stop: int) -> Usage | None:
        if stop > len(self.reserved):
            return None
        stretch = slice(start, stop)
        return Usage(max(self.requested[stretch]), max(self.allocated[stretch]), max(self.reserved[stretch]))
