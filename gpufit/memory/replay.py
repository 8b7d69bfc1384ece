"""One stream of memory events and what is known of its addresses, replayed into the composition at a peak.

Every feeder (CPU memory events, CUDA's allocator history) gives the same three things: the blocks that were
there all along, the events in order, and labels saying what lived at an address at some point of the stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Category = Literal["weights", "buffers", "kv_cache", "inputs", "outputs", "activations", "temporaries", "unexplained"]

_RANK: dict[Category, int] = {
    "temporaries": 0,
    "activations": 1,
    "unexplained": 2,
    "outputs": 3,
    "inputs": 4,
    "kv_cache": 5,
    "buffers": 6,
    "weights": 7,
}
"""When two labels claim one block, the higher rank keeps it: a cache's storage stays `kv_cache` although a
module also returned it."""


class Event(NamedTuple):
    """One change of the allocator's state."""

    address: int
    size_bytes: int
    """Bytes allocated, or 0 for a free."""


@dataclass(frozen=True)
class Given:
    """A block that was there before the first event and is known by name: a weight, a buffer."""

    address: int
    size_bytes: int
    category: Category


@dataclass(frozen=True)
class Label:
    """What a block is, known from outside the allocator."""

    address: int
    category: Category
    position: int
    """Events that had happened when this was known; the block meant is the one living at `address` then."""
    since_birth: bool = True
    """True: it counts as `category` for its whole life. False: only from `position` on (a cache adopts it)."""


@dataclass
class _Block:
    size_bytes: int
    labels: list[tuple[int, Category]] = field(default_factory=list)
    """(first position at which it counts, category)."""
    event: int | None = None
    """Index of the event that allocated it; None for one that was given."""


@dataclass(frozen=True)
class Peak:
    """The highest moment of a window of the stream."""

    position: int
    """Events that had happened at the peak."""
    live_bytes: int
    composition: Mapping[Category, int]
    """Bytes by category; they add up to `live_bytes`."""
    blocks: tuple[int, ...]
    """Sizes of the blocks alive then."""
    temporaries: tuple[int, ...] = ()
    """Which events allocated the temporaries alive then, by index."""


@dataclass(frozen=True)
class Window:
    """A stretch of the stream, as counts of events that had happened at its start and end."""

    start: int
    end: int


def replay(
    given: Iterable[Given], events: Sequence[Event], labels: Iterable[Label], windows: Sequence[Window]
) -> tuple[Peak, ...]:
    """The peak of every window, with its composition.

    A free of an address that is neither given nor allocated in the stream is ignored: it ends a block from
    before the recording, which is then in no category either. Raises ValueError for a window outside the stream.
    """
    for window in windows:
        if not 0 <= window.start <= window.end <= len(events):
            raise ValueError(f"window {window} lies outside a stream of {len(events)} events")
    known = sorted(labels, key=lambda label: label.position)
    for label in known[:1] + known[-1:]:
        if not 0 <= label.position <= len(events):
            raise ValueError(f"{label} lies outside a stream of {len(events)} events")
    blocks = _assign(given, events, known)
    positions = _peak_positions(blocks, events, windows)
    return tuple(_compose(blocks.alive_at(position), position) for position in positions)


class _Lifetimes:
    """Every block with its birth and death, as positions in the stream."""

    def __init__(self) -> None:
        self.rows: list[tuple[int, int, _Block]] = []

    def alive_at(self, position: int) -> list[_Block]:
        return [block for born, died, block in self.rows if born <= position < died]


def _assign(given: Iterable[Given], events: Sequence[Event], waiting: Sequence[Label]) -> _Lifetimes:
    """Walk the stream once, giving each label to the block that lives at its address at its position."""
    lifetimes = _Lifetimes()
    live: dict[int, tuple[int, _Block]] = {}
    never = len(events) + 1
    for one in given:
        live[one.address] = (0, _Block(one.size_bytes, [(0, one.category)]))
    next_label = 0
    for position in range(len(events) + 1):
        while next_label < len(waiting) and waiting[next_label].position == position:
            _apply(waiting[next_label], live)
            next_label += 1
        if position == len(events):
            break
        event = events[position]
        ended = live.pop(event.address, None)
        if ended is not None:
            lifetimes.rows.append((ended[0], position + 1, ended[1]))
        if event.size_bytes:
            live[event.address] = (position + 1, _Block(event.size_bytes, event=position))
    lifetimes.rows.extend((born, never, block) for born, block in live.values())
    return lifetimes


def _apply(label: Label, live: Mapping[int, tuple[int, _Block]]) -> None:
    found = live.get(label.address)
    if found is not None:
        born, block = found
        block.labels.append((born if label.since_birth else label.position, label.category))


def _peak_positions(lifetimes: _Lifetimes, events: Sequence[Event], windows: Sequence[Window]) -> list[int]:
    change = [0] * (len(events) + 2)
    for born, died, block in lifetimes.rows:
        change[born] += block.size_bytes
        change[died] -= block.size_bytes
    totals, running = [], 0
    for delta in change[: len(events) + 1]:
        running += delta
        totals.append(running)
    # Of equal moments the last: a block that a loader reserves and gives back is not what fills it afterwards.
    return [max(range(w.end, w.start - 1, -1), key=totals.__getitem__) for w in windows]


def _compose(alive: Sequence[_Block], position: int) -> Peak:
    composition: dict[Category, int] = {}
    temporaries = []
    for block in alive:
        category = _category_at(block, position)
        composition[category] = composition.get(category, 0) + block.size_bytes
        if category == "temporaries" and block.event is not None:
            temporaries.append(block.event)
    return Peak(
        position=position,
        live_bytes=sum(block.size_bytes for block in alive),
        composition=composition,
        blocks=tuple(block.size_bytes for block in alive),
        temporaries=tuple(temporaries),
    )


def _category_at(block: _Block, position: int) -> Category:
    known = [category for since, category in block.labels if since <= position]
    return max(known, key=_RANK.__getitem__, default="temporaries")
