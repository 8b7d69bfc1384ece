"""The process that runs the model: one job from standard input, messages to standard output, then it ends."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, BinaryIO

# Kineto's own chatter would drown what a failing library says on standard error.
os.environ.setdefault("KINETO_LOG_LEVEL", "5")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import msgspec  # noqa: I001 (the environment has to be set before anything else is imported)

from gpufit.errors import GpufitError, MeasurementError, UnreadableInputError, UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.record import Cell, Failed, Measured, OutOfMemory, Outcome
from gpufit.sources.measure.protocol import (
    CellEnded,
    CellKey,
    CellStarted,
    Finished,
    Grid,
    Job,
    Message,
    Progress,
    Refused,
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


class Channel:
    """The way back to the supervisor. Whatever a library prints goes to standard error instead."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def send(self, message: Message) -> None:
        """One message, one line, at once."""
        self._stream.write(msgspec.json.encode(message) + b"\n")
        self._stream.flush()


def main() -> int:
    """Do the job on standard input."""
    stream = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    channel = Channel(stream)
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    try:
        work(job, channel)
    except GpufitError as error:
        code = 2 if isinstance(error, UsageError) else 3 if isinstance(error, UnreadableInputError) else 4
        channel.send(Refused(reason=str(error), exit_code=code))
    return 0


def work(job: Job, channel: Channel) -> None:
    """Plan, load, then run cell after cell until the list or the memory ends."""
    channel.send(Progress(text="importing torch and transformers"))
    from gpufit.sources.measure import converted, session

    job = converted.prepare(job, lambda text: channel.send(Progress(text=text)))
    planned = session.plan(job)
    channel.send(planned.message)
    answer = sys.stdin.buffer.readline()
    if not answer:
        return
    threading.Thread(target=_end_with_the_supervisor, daemon=True).start()
    channel.send(Progress(text="loading the model"))
    opened = session.open_session(planned)
    channel.send(opened.loaded)
    for key in msgspec.json.decode(answer, type=Grid).cells:
        channel.send(CellStarted(key=key))
        outcome = _outcome(opened, key)
        channel.send(CellEnded(cell=_cell(key, outcome)))
        if isinstance(outcome, OutOfMemory) or (isinstance(outcome, Failed) and opened.on_a_card):
            break  # what is left of memory, or of a card's context after an error, is not what a fresh process has
    channel.send(Finished())


def _end_with_the_supervisor() -> None:
    """Leave at once when the supervisor is gone, however it went: nobody would read the result.

    Reads the descriptor itself: a thread that held the buffer of `sys.stdin` would abort the interpreter at its end.
    """
    while os.read(0, 4096):
        pass
    os._exit(0)


def _outcome(opened: Any, key: CellKey) -> Outcome:
    """Run one cell; an error of the model ends the cell, not the sweep, and is kept in words."""
    from gpufit.sources.measure.session import asked_bytes, is_out_of_memory

    try:
        outcome: Measured = opened.run(Shape(key.context_tokens, key.new_tokens, key.concurrency))
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
    raise SystemExit(main())
