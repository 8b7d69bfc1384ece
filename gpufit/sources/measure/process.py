"""One worker process as its supervisor holds it: lines in, messages out, and always gone in the end."""

from __future__ import annotations

import contextlib
import queue
import signal
import subprocess
import sys
import tempfile
import threading
from typing import IO

import msgspec

from gpufit.errors import MeasurementError
from gpufit.sources.measure.protocol import Grid, Job, Message

MEASURING = "gpufit.sources.measure.worker"
SIMULATING = "gpufit.sources.simulate.worker"
"""Modules that are a worker's whole program."""

_CHATTER = "USDT:"
"""How lines begin that torch's profiler writes to standard error whatever happens."""

END_SECONDS = 5
"""How long a worker has to end by itself once it was asked to."""
KILL_SECONDS = 60
"""How long the system has to take a killed one away; a driver that hangs can hold it for ever."""


class Worker:
    """One worker process; always gone when the block ends.

    Its output is read by a thread, so that waiting for a message can end with the time.
    """

    def __init__(self, job: Job) -> None:
        module = MEASURING if job.simulation is None else SIMULATING
        self._log: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        self._process = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._log
        )
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self._decoder = msgspec.json.Decoder(Message)
        self.send(job)

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *error: object) -> None:
        with contextlib.suppress(BrokenPipeError):
            self._stdin.close()  # which ends it at once, whatever it is doing
        try:
            self._process.wait(timeout=END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
        finally:
            self._reader.join(timeout=END_SECONDS)
            self._log.close()

    @property
    def _stdin(self) -> IO[bytes]:
        assert self._process.stdin is not None
        return self._process.stdin

    def send(self, record: Job | Grid) -> None:
        """One line to the worker. One that is gone shows when it is asked for its next message."""
        with contextlib.suppress(BrokenPipeError):
            self._stdin.write(msgspec.json.encode(record) + b"\n")
            self._stdin.flush()

    def receive(self, seconds: float | None) -> Message | None:
        """The next message; None once it has nothing more to say or is dead.

        Raises TimeoutError when none comes within `seconds` (None: wait for as long as it takes).
        """
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError from None
        if line is None or not line.endswith(b"\n"):  # a line without its end: killed while it was speaking
            self._process.wait()
            return None
        message: Message = self._decoder.decode(line)
        return message

    def kill(self) -> None:
        """End it now, whatever it is stuck in. Raises MeasurementError when the system cannot take it away."""
        self._process.kill()
        try:
            self._process.wait(timeout=KILL_SECONDS)
        except subprocess.TimeoutExpired as error:
            raise MeasurementError(
                f"the worker (process {self._process.pid}) does not end although it was killed: the device's driver "
                "holds it, most likely; finished cells are in the profile"
            ) from error

    def status(self) -> int:
        """Its exit status, negative for the signal that ended it; waits for its end."""
        return self._process.wait()

    def obituary(self, where: str) -> str:
        """How the process ended, with the last thing it said."""
        code = self.status()
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
        hint = "; the system's memory ran out, most likely" if code == -signal.SIGKILL else ""
        self._log.seek(0)
        said = self._log.read().decode("utf-8", "replace").splitlines()
        lines = [line for line in said if line.strip() and not line.startswith(_CHATTER)]
        last = f": {lines[-1].strip()[:300]}" if lines and code != -signal.SIGKILL else ""
        return f"the worker {how} {where}{hint}{last}"

    def _read(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as stream:
            for line in stream:
                self._lines.put(line)
        self._lines.put(None)
