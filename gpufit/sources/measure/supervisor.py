"""The side that stays alive: starts workers, keeps what they find, and goes on after one has died or was given up.

Never imports torch. Each finished cell reaches the caller at once, so that it is on disk before the next begins.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from gpufit.errors import GpufitError, MeasurementError, TooLargeError, UnreadableInputError, UsageError
from gpufit.profile.cells import Cell, Failed, Outcome, OutOfMemory
from gpufit.sources.measure.process import Worker
from gpufit.sources.measure.protocol import (
    CellEnded,
    CellKey,
    CellStarted,
    Grid,
    Job,
    Loaded,
    Made,
    Message,
    Planned,
    Prepared,
    Progress,
    Ready,
    Refused,
    Spent,
)
from gpufit.sources.measure.sweep import ended, remaining, skipped_by_failures, skipped_by_limit, skipped_by_time

_ERRORS: dict[int, type[GpufitError]] = {2: UsageError, 3: UnreadableInputError}

_NO_MEMORY = ("bad_alloc", "MemoryError", "Cannot allocate memory", "Resource temporarily unavailable")
"""What the last words of a process say that a limit on its memory ended outside of torch's allocator."""


@dataclass
class Sweep:
    """Cells being measured: which come next, what is done, whom to tell."""

    job: Job
    cell_seconds: int
    """A cell that takes longer, both its runs together, is given up. Loading has no bound: it may read from afar."""
    on_planned: Callable[[Planned], None]
    """The model's kind and position limit are known; may raise UsageError."""
    next_cells: Callable[[Sequence[Cell]], tuple[CellKey, ...]]
    """The cells to run next, given all that have an outcome; none when all is done."""
    on_loaded: Callable[[Loaded], None]
    on_cell: Callable[[Cell], None]
    on_progress: Callable[[str], None]
    on_cell_began: Callable[[CellKey], None] = lambda key: None
    on_sample: Callable[[Prepared | Made], None] = lambda message: None
    """What became of the job's prompt, where it has one."""
    done: list[Cell] = field(default_factory=list)
    """Cells with an outcome, from earlier runs too."""
    _ended_here: list[Cell] = field(default_factory=list)
    _given_up: list[Cell] = field(default_factory=list)

    def run(self) -> None:
        """Measure every cell that is wanted and has no outcome yet.

        Raises the worker's refusal as the GpufitError it is, and MeasurementError when a worker dies before it has
        measured anything. A worker that dies in a cell, or is given up in it, costs that cell only.
        """
        while self._run_worker():
            pass

    def _run_worker(self) -> bool:
        """Run one worker to its end; True when cells are left for another."""
        with Worker(self.job) as worker:
            turn = _Turn()
            while True:
                try:
                    message = worker.receive(turn.seconds_left(self.cell_seconds))
                except TimeoutError:
                    self._give_up(worker, turn)
                    break
                if message is None:
                    self._bury(worker, turn)
                    break
                if not self._handle(message, worker, turn):
                    break
        return bool(self._open_cells())

    def _handle(self, message: Message, worker: Worker, turn: _Turn) -> bool:
        """Act on one message; False when this worker has nothing more to do."""
        match message:
            case Progress():
                self.on_progress(message.text)
            case Planned():
                self.on_planned(message)
                return self._send_cells(worker)
            case Loaded():
                self.on_loaded(message)
            case CellStarted():
                turn.begin(message.key)
                self.on_cell_began(message.key)
                self.on_progress(f"context {message.key.context_tokens} x {message.key.concurrency}")
            case CellEnded():
                turn.end()
                self._keep(message.cell)
            case Prepared() | Made():
                self.on_sample(message)
            case Ready():
                return self._send_cells(worker)
            case Refused():
                failed = TooLargeError if message.too_large else MeasurementError
                raise _ERRORS.get(message.exit_code, failed)(message.reason)
            case Spent():
                return False
        return True

    def _send_cells(self, worker: Worker) -> bool:
        """Send what is to be run now; False when that is nothing."""
        cells = self._open_cells()
        if cells:
            worker.send(Grid(cells=cells))
        return bool(cells)

    def _open_cells(self) -> tuple[CellKey, ...]:
        """The cells to run now; those that a limit or a row of failures answers get their outcome here."""
        while wanted := remaining(self.next_cells(self.done), self.done):
            for key in wanted:
                skipped = (
                    skipped_by_limit(key, self.done)
                    or skipped_by_time(key, self._given_up, self.cell_seconds)
                    or skipped_by_failures(key, self._ended_here)
                )
                if skipped is not None:
                    self._keep(skipped)
            still_open = remaining(wanted, self.done)
            if still_open:
                return still_open
        return ()

    def _keep(self, cell: Cell) -> None:
        self.done.append(cell)
        self._ended_here.append(cell)
        self.on_cell(cell)

    def _bury(self, worker: Worker, turn: _Turn) -> None:
        """Keep what a dead worker's cell came to. Raises MeasurementError for one that never ended a cell."""
        if turn.key is not None:
            self._keep(ended(turn.key, self._death(turn.key, worker)))
        elif not turn.cells_ended:
            raise MeasurementError(worker.obituary("before a cell was measured"))

    def _give_up(self, worker: Worker, turn: _Turn) -> None:
        """End a worker whose cell takes too long, and the cell with it."""
        assert turn.key is not None  # nothing else has a bound
        worker.kill()
        cell = ended(
            turn.key, Failed(error=f"took longer than {self.cell_seconds} s (--cell-timeout) and was given up")
        )
        self._given_up.append(cell)
        self._keep(cell)

    def _death(self, key: CellKey, worker: Worker) -> Outcome:
        """How a cell ended in which its worker died: out of memory by the system's or our limit's word, or crashed."""
        obituary = worker.obituary(f"in context {key.context_tokens} x {key.concurrency}")
        if worker.status() == -signal.SIGKILL:
            return OutOfMemory(phase=None, message=obituary)
        limit = self.job.memory_limit_bytes
        crashed = worker.status() in (-signal.SIGSEGV, -signal.SIGABRT)  # what libraries do whose allocation failed
        if limit is not None and (crashed or any(word in obituary for word in _NO_MEMORY)):
            return OutOfMemory(phase=None, message=obituary, limit_bytes=limit)
        return Failed(error=obituary)


@dataclass
class _Turn:
    """Where one worker stands."""

    key: CellKey | None = None
    """The cell it is in."""
    cells_ended: int = 0
    _began: float = 0.0

    def begin(self, key: CellKey) -> None:
        self.key, self._began = key, time.monotonic()

    def end(self) -> None:
        self.key = None
        self.cells_ended += 1

    def seconds_left(self, bound: int) -> float | None:
        """Until its cell is given up; None outside of a cell."""
        return None if self.key is None else max(self._began + bound - time.monotonic(), 0.0)
