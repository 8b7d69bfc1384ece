"""Recorded runs played again: what a real run said, at another pace, with the profile file that it wrote growing."""

from __future__ import annotations

import gzip
import random
import threading
from collections.abc import Callable, Iterator
from functools import cache
from itertools import count
from pathlib import Path

import msgspec

from gpufit.profile.cells import Cell
from gpufit.profile.codec import decode
from gpufit.profile.record import Profile
from gpufit.profile.store import save_profile
from gpufit.sources.measure.events import (
    CellDone,
    Crashed,
    Finished,
    Interrupted,
    RunEvent,
    RunRequest,
    Started,
    decode_event,
    encode,
)

RUNS = Path(__file__).parent / "facts" / "runs"
NAMES = ("measured", "limited", "stopped", "resumed", "simulated", "computed", "refused")
"""Those that `tests/facts/runs/README.md` tells of."""


@cache
def said(name: str) -> tuple[RunEvent, ...]:
    """What a run said, from its first word to its last."""
    return tuple(map(decode_event, gzip.decompress((RUNS / f"{name}.jsonl.gz").read_bytes()).splitlines()))


@cache
def left(name: str) -> Profile:
    """The profile that a run left."""
    return decode(gzip.decompress((RUNS / f"{name}.json.gz").read_bytes()), name)


class Replay:
    """A run as `flows_run.Run` is one, told from a recording; its file is written relative to the current folder."""

    def __init__(self, name: str, pause: Callable[[], float] = lambda: 0.0, killed_after: int | None = None) -> None:
        """`pause` gives the seconds before each event; after so many events the process is gone without a word."""
        self._name, self._pause, self._killed_after = name, pause, killed_after
        self._stopped = threading.Event()

    def events(self) -> Iterator[RunEvent]:
        """As recorded, until it is stopped."""
        output, cells = Path(), list[Cell]()
        for number, event in enumerate(said(self._name)):
            if self._stopped.wait(self._pause()):
                yield Interrupted()
                return
            if number == self._killed_after:
                yield Crashed(reason="the run was killed by signal 9")
                return
            match event:
                case Started():
                    output, cells = Path(event.output), list(event.cells)
                case CellDone():
                    cells.append(event.cell)
                    so_far = msgspec.structs.replace(
                        left(self._name), cells=tuple(cells), memory_model=None, complete=False
                    )
                    save_profile(so_far, output)
                case Finished():
                    save_profile(left(self._name), Path(event.output))
            yield event

    def stop(self) -> None:
        """As a run is stopped: its last word comes with its events."""
        self._stopped.set()


def held_before(number: int, gate: threading.Event) -> Callable[[], float]:
    """Pauses of a recording that waits before its event of this number, counted from 0, until the gate is open."""
    events = count()

    def pause() -> float:
        if next(events) == number:
            gate.wait(60)
        return 0.0

    return pause


class Recorded:
    """Begins a recorded run for every request: one of that kind, by chance ended early or not begun at all."""

    def __init__(self, chance: random.Random, longest_pause_seconds: float) -> None:
        self._chance, self._longest = chance, longest_pause_seconds
        self.begun: list[str] = []
        """Names of the recordings that were played."""

    def __call__(self, request: RunRequest) -> Replay:
        """Raises OSError as a machine does that has no process left."""
        encode(request)  # as a run is asked
        if request.profile is None:
            names: tuple[str, ...] = ("computed",)
        elif request.profile.simulation is not None:
            names = ("simulated", "refused")
        else:
            names = ("resumed",) if request.profile.resume else ("measured", "limited", "stopped", "refused")
        name = self._chance.choice(names)
        if self._chance.random() < 0.05:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        killed_after = self._chance.randrange(len(said(name))) if self._chance.random() < 0.15 else None
        self.begun.append(name)
        pace = random.Random(self._chance.random())
        return Replay(name, lambda: pace.uniform(0, self._longest), killed_after)
