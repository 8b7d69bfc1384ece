"""The stream of all layers made from a stream of few: one repetition of the layers is written down as often as it is
missing, each time with blocks of its own. Pure.

Two repetitions that follow one another, A and B, were run. What B frees of A's, every further one frees of the one
before it; what B frees of its own, now or from an earlier pass through the layers, every further one frees of its own.
A block that B leaves to whatever comes after it is left by the last of them alone if B found its like left by A, and by
all of them, together, if not (a cache that ends with the run).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpufit.memory.replay import Event, Given


@dataclass(frozen=True)
class Pass:
    """One way through the layers: events that had happened when each repetition began, and when the second was over."""

    first: int
    second: int
    end: int


@dataclass(frozen=True)
class Stream:
    """Events, and where those of the original stream stand in it."""

    events: tuple[Event, ...]
    positions: tuple[int, ...]
    """For each number of events of the original stream how many of this one had happened by then."""


class NotRepeatedError(Exception):
    """The two repetitions do not make the same blocks, so a third cannot be told."""


@dataclass(frozen=True)
class _Born:
    """A block that was allocated in the original stream."""

    event: int
    size_bytes: int
    turn: int | None = None
    """The pass that it was made in, for those of the repetitions."""
    second: bool = False
    """Whether it was made in the second repetition."""
    number: int = 0
    """Which of the blocks of its repetition it is."""


def with_repetitions(events: Sequence[Event], passes: Sequence[Pass], missing: int, held: Sequence[Given]) -> Stream:
    """The stream with so many repetitions more behind the second, in every pass.

    `held`: blocks that are there all along, whose addresses no new block gets. Raises NotRepeatedError.
    """
    return _Writer(events, passes, missing, held).write()


class _Writer:
    def __init__(self, events: Sequence[Event], passes: Sequence[Pass], missing: int, held: Sequence[Given]) -> None:
        self._events, self._passes, self._missing = events, passes, missing
        self._next = 1 + max((one.address for one in held), default=0)
        self._born, self._freed = _lives(events, passes)
        self._made = [_made_in(self._born, turn) for turn in range(len(passes))]
        self._handed_on = {
            (one.turn, one.number)
            for index, one in self._freed.items()
            if one.turn is not None and not one.second and self._turn_of(index) == one.turn
        }
        """Blocks of the first repetition that the second frees in the same pass."""
        self._addresses: dict[tuple[int, int], int] = {}
        """(event that allocated it, copy) -> address; copy 0 is the block itself."""
        self._written: list[Event] = []

    def write(self) -> Stream:
        ends = {one.end: turn for turn, one in enumerate(self._passes)}
        positions = [0]
        for index in range(len(self._events) + 1):
            turn = ends.get(index)
            if turn is not None:
                for copy in range(1, self._missing + 1):
                    self._repeat(turn, copy)
                positions[-1] = len(self._written)
            if index < len(self._events):
                self._original(index)
                positions.append(len(self._written))
        return Stream(tuple(self._written), tuple(positions))

    def _original(self, index: int) -> None:
        event = self._events[index]
        if event.size_bytes:
            self._allocate(self._born[index], 0)
            return
        born = self._freed.get(index)
        if born is None:
            return  # it was there before the stream began
        if not born.second or self._turn_of(index) is not None:
            self._free(born, 0)
        elif (born.turn, born.number) in self._handed_on:
            self._free(born, self._missing)
        else:
            for copy in range(self._missing + 1):
                self._free(born, copy)

    def _repeat(self, turn: int, copy: int) -> None:
        span = self._passes[turn]
        for index in range(span.second, span.end):
            event = self._events[index]
            if event.size_bytes:
                self._allocate(self._born[index], copy)
                continue
            born = self._freed.get(index)
            if born is None or born.turn is None:
                continue  # nobody's, or not of the layers: it goes once
            if born.second:
                self._free(born, copy)
            else:
                self._free(self._made[born.turn][1][born.number], copy - 1)

    def _turn_of(self, index: int) -> int | None:
        """The pass in whose second repetition an event happened; None for all other events."""
        return next((turn for turn, one in enumerate(self._passes) if one.second <= index < one.end), None)

    def _allocate(self, born: _Born, copy: int) -> None:
        self._addresses[born.event, copy] = self._next
        self._written.append(Event(self._next, born.size_bytes))
        self._next += 1

    def _free(self, born: _Born, copy: int) -> None:
        address = self._addresses.pop((born.event, copy), None)
        if address is not None:
            self._written.append(Event(address, 0))


def _lives(events: Sequence[Event], passes: Sequence[Pass]) -> tuple[dict[int, _Born], dict[int, _Born]]:
    """(event that allocated -> block, event that freed -> block)"""
    born: dict[int, _Born] = {}
    freed: dict[int, _Born] = {}
    alive: dict[int, _Born] = {}
    counts: dict[tuple[int, bool], Iterator[int]] = {}
    for index, event in enumerate(events):
        if not event.size_bytes:
            block = alive.pop(event.address, None)
            if block is not None:
                freed[index] = block
            continue
        block = _Born(index, event.size_bytes)
        for turn, one in enumerate(passes):
            if one.first <= index < one.end:
                second = index >= one.second
                number = next(counts.setdefault((turn, second), iter(range(len(events)))))
                block = _Born(index, event.size_bytes, turn, second, number)
        born[index] = alive[event.address] = block
    return born, freed


def _made_in(born: dict[int, _Born], turn: int) -> tuple[list[_Born], list[_Born]]:
    """The blocks of both repetitions in one pass, in the order in which they were made."""
    first, second = (
        [one for one in born.values() if one.turn == turn and one.second is second] for second in (False, True)
    )
    if [one.size_bytes for one in first] != [one.size_bytes for one in second]:
        raise NotRepeatedError(f"pass {turn}: {len(first)} and {len(second)} blocks")
    return first, second
