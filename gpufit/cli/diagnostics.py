"""The only writer of standard error, and the owner of the exit codes."""

from __future__ import annotations

import contextlib
import enum
import os
import signal
import sys
import traceback
from collections.abc import Iterator

from gpufit.errors import GpufitError, MeasurementError, UnreadableInputError, UsageError


class ExitCode(enum.IntEnum):
    """What the exit status says; the README lists the same."""

    ANSWERED = 0
    NOTHING_FITS = 1
    USAGE = 2
    UNREADABLE = 3
    MEASUREMENT_FAILED = 4
    INTERNAL = 70
    """A bug of gpufit's own (EX_SOFTWARE): never mistaken for an answer."""
    INTERRUPTED = 130


_CODES: dict[type[GpufitError], ExitCode] = {
    UsageError: ExitCode.USAGE,
    UnreadableInputError: ExitCode.UNREADABLE,
    MeasurementError: ExitCode.MEASUREMENT_FAILED,
}


def say(text: str) -> None:
    """A line of narration. Where standard error cannot be written there is nobody to tell, and the answer stands."""
    with contextlib.suppress(OSError):
        print(text, file=sys.stderr, flush=True)


def report_error(error: GpufitError, debug: bool) -> ExitCode:
    """One line that says what and why; the traceback only when asked for."""
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    say(f"gpufit: {' '.join(str(error).split())}")
    return next((code for kind, code in _CODES.items() if isinstance(error, kind)), ExitCode.UNREADABLE)


def report_bug(error: Exception, debug: bool) -> ExitCode:
    """A fault that gpufit did not expect."""
    if debug:
        traceback.print_exception(error, file=sys.stderr)
    hint = "" if debug else "; run again with --debug for the traceback"
    say(f"gpufit: internal error: {type(error).__name__}: {' '.join(str(error).split())}{hint}")
    return ExitCode.INTERNAL


@contextlib.contextmanager
def ended_as_interrupted() -> Iterator[None]:
    """`kill`, a service manager and a container's end interrupt what runs in the block as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def interactive() -> bool:
    """Whether standard error is a terminal that can redraw a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def has_screen() -> bool:
    """Whether somebody sits at a terminal that the interface can draw on."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM") not in (None, "", "dumb")


class ProgressBar:
    """One line that redraws itself on a terminal; elsewhere a plain line for each finished step."""

    WIDTH = 24

    def __init__(self) -> None:
        self._done = 0
        self._total = 0
        self._text = ""
        self._live = interactive()

    def start(self, done: int, total: int) -> None:
        """How many steps there are, and how many an earlier run did."""
        self._done, self._total = done, total
        self._draw()

    def grow(self, total: int) -> None:
        """There are more steps than was said at first."""
        self._total = total
        self._draw()

    def now(self, text: str) -> None:
        """What is being done."""
        self._text = text
        self._draw()

    def say(self, text: str) -> None:
        """A line of its own, above the bar."""
        self.close()
        say(text)
        self._draw()

    def step(self, text: str) -> None:
        """One step is finished."""
        self._done += 1
        self.say(f"[{self._done}/{self._total}] {text}")

    def close(self) -> None:
        """Take the line away."""
        if self._live:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def _draw(self) -> None:
        if not self._live:
            return
        filled = self.WIDTH * self._done // self._total if self._total else 0
        bar = "#" * filled + "-" * (self.WIDTH - filled)
        count = f"{self._done}/{self._total} " if self._total else ""
        width = os.get_terminal_size(sys.stderr.fileno()).columns
        line = f"[{bar}] {count}{self._text}"
        sys.stderr.write(f"\r\x1b[K{line[: max(width - 1, 1)]}")
        sys.stderr.flush()
