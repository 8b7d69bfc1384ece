"""The caching allocator's own history, read into the replay's events. Pure: plain dictionaries in, records out.

The dictionaries are those of `torch.cuda.memory._snapshot()` (shape: its docstring,
https://docs.pytorch.org/docs/stable/torch_cuda_memory.html) and of `torch.cuda.memory_stats_as_nested_dict()`
(https://docs.pytorch.org/docs/stable/generated/torch.cuda.memory.memory_stats.html).

What is counted as one event: an `alloc` entry and a `free_requested` entry. The allocator writes an `alloc` entry in
the same locked step that raises `allocation.all.allocated`, and a `free_requested` entry in the step that raises
`allocation.all.freed` and lowers `allocated_bytes`; so these two counters together are, at any moment, the exact
position in the stream. `free_completed` is not counted: it follows its `free_requested`, at once on one stream, later
for a block that another stream still uses. Such a block has left `allocated_bytes` and cannot be handed out again; it
stays in `active_bytes` and in `requested_bytes` until it completes (`pending` below).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from gpufit.errors import MeasurementError
from gpufit.memory.replay import Event
from gpufit.sources.measure.recording import Recording

_DOUBT = "this version of torch cannot be measured on a card"


class Block(NamedTuple):
    """A piece of memory that the allocator had handed out."""

    address: int
    size_bytes: int
    """What it takes, rounding included."""
    requested_bytes: int
    """What was asked for."""


class Counters(NamedTuple):
    """The allocator's counters at one moment."""

    allocations: int
    """`allocation.all.allocated`: allocations since the process began."""
    frees: int
    """`allocation.all.freed`: frees since the process began."""
    pending: int
    """Blocks freed, and still waiting for a stream that uses them."""
    allocated_bytes: int
    """`allocated_bytes.all.current`."""
    requested_bytes: int
    """`requested_bytes.all.current`; the pending blocks are still in it."""

    @property
    def changes(self) -> int:
        """Events since the process began."""
        return self.allocations + self.frees


@dataclass(frozen=True)
class History:
    """All that a recording on a card consists of, before it is read."""

    before: tuple[Block, ...]
    """What the device's allocator had handed out when the recording began."""
    start: Counters
    marks: Sequence[Counters]
    """The counters at each moment marked, in order."""
    stop: Counters
    trace: Sequence[Mapping[str, Any]]
    """The entry of the device in `_snapshot()["device_traces"]`, taken at `stop`."""
    max_entries: int
    """The number of entries after which the allocator overwrites its oldest ones."""
    slack_bytes: int | None
    """See CudaRecording."""


@dataclass(frozen=True)
class CudaRecording(Recording):
    """A stopped recording on a card. Events carry what was requested, as the allocator's trace does."""

    before: tuple[Block, ...] = ()
    """What was allocated when the recording began, block by block."""
    slack_bytes: int | None = None
    """How much more than its 512-byte rounding a block over 1 MiB may keep; None: the rule is not known."""


def counters_of(stats: Mapping[str, Any]) -> Counters:
    """The counters among `torch.cuda.memory_stats_as_nested_dict()`."""
    allocation = stats["allocation"]["all"]
    return Counters(
        allocations=allocation["allocated"],
        frees=allocation["freed"],
        pending=stats["active"]["all"]["current"] - allocation["current"],
        allocated_bytes=stats["allocated_bytes"]["all"]["current"],
        requested_bytes=stats["requested_bytes"]["all"]["current"],
    )


def live_blocks(snapshot: Mapping[str, Any], device: int) -> tuple[Block, ...]:
    """The blocks of a device that are allocated in a snapshot. A block freed but pending is none of them."""
    return tuple(
        Block(block["address"], block["size"], block["requested_size"])
        for segment in snapshot["segments"]
        if segment["device"] == device
        for block in segment["blocks"]
        if block["state"] == "active_allocated"
    )


def read_history(history: History) -> CudaRecording:
    """Turn a history into events and positions.

    Raises MeasurementError for a history that lost entries or that does not follow from the allocator's counters.
    """
    # Each alloc and free_requested brings further entries (free_completed, segment_alloc, ...), so a full buffer is
    # the only sign that the oldest entries may have been overwritten; the exact count below finds every other loss.
    if len(history.trace) >= history.max_entries:
        raise MeasurementError(
            f"the allocator's history is full ({history.max_entries} entries) and has lost its beginning: "
            "measure fewer new tokens at once"
        )
    events = _events(history.trace, history.before)
    recorded = history.stop.changes - history.start.changes
    if len(events) != recorded:
        raise MeasurementError(
            f"the allocator counted {recorded} allocations and frees but its history holds {len(events)}: {_DOUBT}"
        )
    positions = [mark.changes - history.start.changes for mark in history.marks]
    _check_bytes(history, events, positions)
    return CudaRecording(events=events, positions=positions, before=history.before, slack_bytes=history.slack_bytes)


def _events(trace: Iterable[Mapping[str, Any]], before: Iterable[Block]) -> list[Event]:
    """The allocations and frees, each checked against what is live: no address twice, no free of the unknown."""
    live = {block.address: block.requested_bytes for block in before}
    events = []
    for entry in trace:
        action = entry["action"]
        if action == "alloc":
            address, size = entry["addr"], entry["size"]
            if address in live:
                raise MeasurementError(f"address {address:#x} was allocated twice in the allocator's history: {_DOUBT}")
            live[address] = size
            events.append(Event(address, size))
        elif action == "free_requested":
            address, size = entry["addr"], entry["size"]
            if live.pop(address, None) != size:
                raise MeasurementError(
                    f"{size} bytes at {address:#x} were freed that the allocator's history does not know: {_DOUBT}"
                )
            events.append(Event(address, 0))
    return events


def _check_bytes(history: History, events: Sequence[Event], positions: Sequence[int]) -> None:
    """At the start, at every moment marked and at the end: what the events say is requested is what the counter said.

    A moment at which frees are pending is passed over: the counter still holds those blocks, the events do not.
    """
    moments = zip((0, *positions, len(events)), (history.start, *history.marks, history.stop), strict=True)
    expected = {position: counters.requested_bytes for position, counters in moments if counters.pending == 0}
    sizes = {block.address: block.requested_bytes for block in history.before}
    running = sum(sizes.values())
    for position in range(len(events) + 1):
        if expected.get(position, running) != running:
            raise MeasurementError(
                f"after {position} events {running} bytes are requested by the allocator's history and "
                f"{expected[position]} by its counter: {_DOUBT}"
            )
        if position < len(events):
            event = events[position]
            running += event.size_bytes - sizes.pop(event.address, 0)
            if event.size_bytes:
                sizes[event.address] = event.size_bytes
