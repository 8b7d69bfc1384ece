"""Runs in a process of their own: start one, hear how it goes, stop it; whatever ends it, its caller lives on."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import IO

import msgspec

from gpufit.sources.measure.campaign_process import LEAVE_SECONDS, MODULE
from gpufit.sources.measure.events import (
    LAST_EVENTS,
    Crashed,
    Interrupted,
    RunEvent,
    RunRequest,
    decode_event,
    encode,
)

STOP_SECONDS = LEAVE_SECONDS + 2
"""How long a run has to end after it was asked to, before it is killed."""


class Run:
    """A run that has begun. It ends by itself, by `stop`, and with the process that started it."""

    def __init__(self, command: Sequence[str], request: bytes) -> None:
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed when the last event is out)
        self._stopped = False
        # A session of its own: what ends the terminal's programs (ctrl-c, a closed window) ends the run only through
        # the program that asked for it.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log, start_new_session=True
        )
        with contextlib.suppress(BrokenPipeError):
            self._stdin.write(request)
            self._stdin.flush()

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    def events(self) -> Iterator[RunEvent]:
        """Every event as it comes; the last one is always one of LAST_EVENTS. Waits, so it is for a thread; once."""
        assert self._process.stdout is not None
        said_last = False
        with self._log:
            with self._process.stdout as stream:
                for line in stream:
                    event = _event(line)
                    if event is None:
                        self._process.kill()
                        break
                    said_last = isinstance(event, LAST_EVENTS)
                    yield event
                    if said_last:
                        break
            if not said_last:
                yield self._end()
            with contextlib.suppress(BrokenPipeError):
                self._stdin.close()
            self._wait()

    def stop(self) -> None:
        """Ask it to end and wait until it has, with its worker; one that does not is killed. Finished cells stay."""
        self._stopped = True
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()
        self._wait()

    def _wait(self) -> int:
        """The exit status, negative for a signal; one that takes too long to come is not waited for."""
        try:
            return self._process.wait(timeout=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()

    def _end(self) -> RunEvent:
        """What stands for the last word of a process that ended without one, or spoke no sense."""
        code = self._wait()
        if self._stopped:
            return Interrupted()
        self._log.seek(0)
        said = [line for line in self._log.read().decode("utf-8", "replace").splitlines() if line.strip()]
        how = f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"
        return Crashed(reason=f"the run {how}" + (f": {said[-1].strip()[:300]}" if said else ""))


def start_run(request: RunRequest) -> Run:
    """Begin a run in a process of its own; it reads and writes relative to this one's folder."""
    return Run([sys.executable, "-m", MODULE], encode(request))


def _event(line: bytes) -> RunEvent | None:
    """The event of a line; None for half a line of a killed process, and for one that is no event."""
    try:
        return decode_event(line)
    except msgspec.DecodeError:
        return None
