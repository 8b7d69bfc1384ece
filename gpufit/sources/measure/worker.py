"""The process that runs the model: a job and grids from standard input, messages to standard output, then it ends."""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import sys
import threading
from collections.abc import Callable
from typing import BinaryIO, Protocol

# Kineto's own chatter would drown what a failing library says on standard error.
os.environ.setdefault("KINETO_LOG_LEVEL", "5")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import msgspec  # noqa: I001 (the environment has to be set before anything else is imported)

from gpufit.errors import GpufitError, MeasurementError, TooLargeError, UnreadableInputError, UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, Failed, Measured, OutOfMemory, Outcome
from gpufit.profile.peaks import Phase
from gpufit.sources.measure.protocol import (
    CellEnded,
    CellKey,
    CellStarted,
    Grid,
    Job,
    Loaded,
    Message,
    Planned,
    Progress,
    Ready,
    Refused,
    Spent,
)


_MODEL_ERRORS = (
    RuntimeError,
    MemoryError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    ImportError,
    ArithmeticError,
    MeasurementError,
)
"""What a model's own code, or a recording of it, can end in; anything else is a fault of ours and ends the worker."""


class Opened(Protocol):
    """A model that is ready to run cells."""

    loaded: Loaded
    limit_bytes: int
    """The memory that an out-of-memory would run into."""

    @property
    def phase_reached(self) -> Phase:
        """The phase that began last."""
        ...

    def run(self, shape: Shape) -> Measured:
        """Run one cell; the errors of the model come through."""
        ...


class PlannedModel(Protocol):
    """A model that was looked at, before it is loaded."""

    @property
    def message(self) -> Planned:
        """What the supervisor needs in order to choose the cells."""
        ...

    def open(self) -> Opened:
        """Load it. Raises a GpufitError when that is refused."""
        ...


Tell = Callable[[Message], None]
"""Sends a message to the supervisor."""

Planner = Callable[[Job, Tell], PlannedModel]
"""Looks at a job's model; told whom to tell what happens. Imports what is heavy. Raises a GpufitError."""


class Channel:
    """The way back to the supervisor. Whatever a library prints goes to standard error instead."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def send(self, message: Message) -> None:
        """One message, one line, at once."""
        self._stream.write(msgspec.json.encode(message) + b"\n")
        self._stream.flush()


class Inbox:
    """The lines that the supervisor sends, read by a thread of its own, so that its end is noticed while a model runs.

    When the supervisor is gone or wants no more, however it went, the process leaves at once: nobody would read the
    result. The thread reads the descriptor itself: one that held the buffer of `sys.stdin` would abort the interpreter
    at its end.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def take(self) -> bytes:
        """The next line; waits for it."""
        return self._lines.get()

    def _read(self) -> None:
        rest = b""
        while piece := os.read(self._descriptor, 65536):
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                self._lines.put(line)
        os._exit(0)


def measured(job: Job, tell: Tell) -> PlannedModel:
    """A model that runs on this machine's device."""
    from gpufit.sources.measure import converted, sample, session

    planned = session.plan(converted.prepare(job, lambda text: tell(Progress(text=text))))
    return planned if job.prompt is None else sample.SampledPlan(planned, job.prompt, tell)


def main(planner: Planner) -> int:
    """Do the job on standard input, with what the planner makes of it."""
    _end_with_the_supervisor()
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    channel = Channel(stream)
    inbox = Inbox(0)
    job = msgspec.json.decode(inbox.take(), type=Job)
    try:
        work(job, channel, inbox, planner)
    except GpufitError as error:
        code = 2 if isinstance(error, UsageError) else 3 if isinstance(error, UnreadableInputError) else 4
        channel.send(Refused(reason=str(error), exit_code=code, too_large=isinstance(error, TooLargeError)))
    return 0


def work(job: Job, channel: Channel, inbox: Inbox, planner: Planner) -> None:
    """Plan, load, then run grid after grid until the supervisor wants no more or a cell ends in an error."""
    channel.send(Progress(text="importing torch and transformers"))
    planned = planner(job, channel.send)
    channel.send(planned.message)
    cells = _grid(inbox)
    channel.send(Progress(text="loading the model"))
    opened = planned.open()
    channel.send(opened.loaded)
    while _run_grid(opened, cells, channel):
        channel.send(Ready())
        cells = _grid(inbox)
    channel.send(Spent())


def _grid(inbox: Inbox) -> tuple[CellKey, ...]:
    return msgspec.json.decode(inbox.take(), type=Grid).cells


def _run_grid(opened: Opened, cells: tuple[CellKey, ...], channel: Channel) -> bool:
    """Run cell after cell; False once one did not end as measured.

    What an error left behind is not what a fresh process has: a card's context may be spoilt, memory be short or in
    pieces, a module of the model have kept half of a step. No later figure shall hang on it.
    """
    for key in cells:
        channel.send(CellStarted(key=key))
        outcome = _outcome(opened, key)
        channel.send(CellEnded(cell=_cell(key, outcome)))
        if not isinstance(outcome, Measured):
            return False
    return True


def _end_with_the_supervisor() -> None:
    """On Linux the kernel kills this process with its parent, stuck in a kernel's code as it may be.

    https://man7.org/linux/man-pages/man2/PR_SET_PDEATHSIG.2const.html; elsewhere, and where the parent was gone before
    this call, the end of standard input does it.
    """
    set_death_signal = 1
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(set_death_signal, ctypes.c_ulong(signal.SIGKILL))


def _outcome(opened: Opened, key: CellKey) -> Outcome:
    """Run one cell; an error of the model ends the cell, not the sweep, and is kept in words."""
    from gpufit.sources.measure.session import asked_bytes, is_out_of_memory

    try:
        outcome = opened.run(Shape(key.context_tokens, key.new_tokens, key.concurrency))
    except _MODEL_ERRORS as error:
        text = " ".join(str(error).split())[:500] or type(error).__name__
        if is_out_of_memory(error):
            return OutOfMemory(
                phase=opened.phase_reached, message=text, asked_bytes=asked_bytes(text), limit_bytes=opened.limit_bytes
            )
        return Failed(error=f"{type(error).__name__}: {text}")
    return outcome


def _cell(key: CellKey, outcome: Outcome) -> Cell:
    return Cell(
        context_tokens=key.context_tokens,
        new_tokens=key.new_tokens,
        concurrency=key.concurrency,
        outcome=outcome,
    )


if __name__ == "__main__":
    raise SystemExit(main(measured))
