"""The side that stays alive: starts workers, keeps what they find, and goes on after one has died.

Never imports torch. Each finished cell reaches the caller at once, so that it is on disk before the next begins.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO

import msgspec

from gpufit.errors import GpufitError, MeasurementError, UnreadableInputError, UsageError
from gpufit.profile.record import Cell, Failed, OutOfMemory
from gpufit.sources.measure.protocol import (
    CellEnded,
    CellKey,
    CellStarted,
    Finished,
    Grid,
    Job,
    Loaded,
    Message,
    Planned,
    Progress,
    Refused,
)
from gpufit.sources.measure.sweep import remaining, skipped_by_failures, skipped_by_limit

_WORKER = "gpufit.sources.measure.worker"
_ERRORS: dict[int, type[GpufitError]] = {2: UsageError, 3: UnreadableInputError}


@dataclass
class Sweep:
    """One grid being measured: what is wanted, what is done, whom to tell."""

    job: Job
    choose_cells: Callable[[Planned], tuple[CellKey, ...]]
    """The grid, once the model's kind and position limit are known; may raise UsageError."""
    on_loaded: Callable[[Loaded], None]
    on_cell: Callable[[Cell], None]
    on_progress: Callable[[str], None]
    done: list[Cell] = field(default_factory=list)
    """Cells with an outcome, from earlier runs too."""
    _ended_here: list[Cell] = field(default_factory=list)

    def run(self) -> None:
        """Measure every cell that has no outcome yet.

        Raises the worker's refusal as the GpufitError it is, and MeasurementError when a worker dies before the
        model is loaded. A worker that dies in a cell costs that cell only.
        """
        while self._run_worker():
            pass

    def _run_worker(self) -> bool:
        """Run one worker to its end; True when cells are left for another."""
        with _Worker(self.job) as worker:
            cells: tuple[CellKey, ...] = ()
            current: CellKey | None = None
            loaded = False
            for message in worker.messages():
                match message:
                    case Progress():
                        self.on_progress(message.text)
                    case Planned():
                        cells = self._open_cells(self.choose_cells(message))
                        if not cells:
                            return False
                        worker.send(Grid(cells=cells))
                    case Loaded():
                        loaded = True
                        self.on_loaded(message)
                    case CellStarted():
                        current = message.key
                        self.on_progress(f"context {current.context_tokens} x {current.concurrency}")
                    case CellEnded():
                        current = None
                        self._keep(message.cell)
                    case Refused():
                        raise _ERRORS.get(message.exit_code, MeasurementError)(message.reason)
                    case Finished():
                        return bool(self._open_cells(cells))
            if current is None and not (loaded and self._open_cells(cells)):
                raise MeasurementError(worker.obituary("before a cell was measured" if not loaded else "at its end"))
            if current is not None:
                self._keep(_died(current, worker))
            return bool(self._open_cells(cells))

    def _open_cells(self, wanted: tuple[CellKey, ...]) -> tuple[CellKey, ...]:
        """The cells still to run; those that a limit or a row of failures answers get their outcome here."""
        for key in remaining(wanted, self.done):
            skipped = skipped_by_limit(key, self.done) or skipped_by_failures(key, self._ended_here)
            if skipped is not None:
                self._keep(skipped)
        return remaining(wanted, self.done)

    def _keep(self, cell: Cell) -> None:
        self.done.append(cell)
        self._ended_here.append(cell)
        self.on_cell(cell)


def _died(key: CellKey, worker: _Worker) -> Cell:
    """The cell in which a worker died: killed by the system's out-of-memory killer, or crashed."""
    obituary = worker.obituary(f"in context {key.context_tokens} x {key.concurrency}")
    killed = worker.process.returncode == -signal.SIGKILL
    return Cell(
        context_tokens=key.context_tokens,
        new_tokens=key.new_tokens,
        concurrency=key.concurrency,
        outcome=OutOfMemory(phase=None, message=obituary) if killed else Failed(error=obituary),
    )


class _Worker:
    """One worker process; always gone when the block ends."""

    def __init__(self, job: Job) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        self.process = subprocess.Popen(
            [sys.executable, "-m", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        self.send(job)

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()
        self._log.close()

    def send(self, record: Job | Grid) -> None:
        """One line to the worker."""
        if self.process.stdin is not None:
            self.process.stdin.write(msgspec.json.encode(record) + b"\n")
            self.process.stdin.flush()

    def messages(self) -> Iterator[Message]:
        """What the worker says, until it has nothing more to say or dies."""
        decoder = msgspec.json.Decoder(Message)
        for line in self.process.stdout or ():
            message: Message = decoder.decode(line)
            yield message
        self.process.wait()

    def obituary(self, where: str) -> str:
        """How the process ended, with the last thing it said."""
        self.process.wait()
        code = self.process.returncode
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        hint = "; the system's memory ran out, most likely" if code == -signal.SIGKILL else ""
        self._log.seek(0)
        lines = [line for line in self._log.read().decode("utf-8", "replace").splitlines() if line.strip()]
        last = f": {lines[-1].strip()[:300]}" if lines and code != -signal.SIGKILL else ""
        return f"the worker {how} {where}{hint}{last}"
