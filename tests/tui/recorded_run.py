"""A real run as it was told, told again: `tests/facts/runs` holds every event with the second that it came in.

Recorded with `flows_run.start_run` of `gpufit profile SmolLM2-135M-Instruct.Q4_1.gguf` on a processor; the home folder
is written `~`.
"""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from gpufit.sources.measure.events import CellDone, RunEvent, RunRequest

RUNS = Path(__file__).resolve().parent.parent / "facts" / "runs"
SMOLLM2 = RUNS / "SmolLM2-135M-Instruct.Q4_1.jsonl.gz"
MODEL = "models/SmolLM2-135M-Instruct.Q4_1.gguf"
"""What that run was asked to measure."""


class _Line(msgspec.Struct):
    at: float
    """Seconds since the run was asked for."""
    told: RunEvent


class RecordedRun:
    """Tells what was told in the first seconds, then goes on without a word until it is stopped."""

    def __init__(self, seconds: float, path: Path = SMOLLM2) -> None:
        lines = [msgspec.json.decode(line, type=_Line) for line in gzip.decompress(path.read_bytes()).splitlines()]
        self._lines = [line for line in lines if line.at <= seconds]
        self._seconds, self._now = seconds, 0.0
        self.cells_done = sum(isinstance(line.told, CellDone) for line in self._lines)
        """How many cells it tells the outcome of."""
        self._stopped = threading.Event()
        self.told = threading.Event()
        """Set when everything was told."""

    def clock(self) -> float:
        """The recorded second of what is being told; after it, that at which the telling ends."""
        return self._now

    def __call__(self, request: RunRequest) -> RecordedRun:
        """Begin: the run itself, whatever is asked for."""
        return self

    def events(self) -> Iterator[RunEvent]:
        """In the order they came."""
        for line in self._lines:
            self._now = line.at
            yield line.told
        self._now = self._seconds
        self.told.set()
        self._stopped.wait()

    def stop(self) -> None:
        """Go on no longer."""
        self._stopped.set()
