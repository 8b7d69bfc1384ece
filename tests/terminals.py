"""The interface on a terminal of its own, as a user starts it: keys go in as bytes, what is drawn is thrown away."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from processes import wait_until

TAB, LEFT, START = "\t", "\x1b[D", "\x13"


class Terminal:
    """A process on a pseudo terminal of 120 x 40."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process, self._master = process, master
        self._drawn = b""
        threading.Thread(target=self._read, daemon=True).start()

    def send(self, *keys: str) -> None:
        """Press keys, one group after another: those that follow a change of field go to the next one, as a hand would
        press them."""
        for one in keys:
            os.write(self._master, one.encode())
            time.sleep(2)

    def wait_for(self, words: str, seconds: float = 60) -> None:
        """Until words have been drawn since the last wait; they must not stand where colours change."""
        wait_until(lambda: words.encode() in self._drawn, seconds, f"{words!r} on the terminal")
        self._drawn = b""

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the terminal's end
            while piece := os.read(self._master, 65536):
                self._drawn += piece


@contextlib.contextmanager
def interface(folder: Path, variables: Mapping[str, str], *arguments: str) -> Iterator[Terminal]:
    """`gpufit` with these arguments in a folder; gone when the block ends."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color", "HOME": str(folder)} | variables
    process = subprocess.Popen(
        [sys.executable, "-m", "gpufit", *arguments],
        cwd=folder, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        # As a terminal starts it, whatever ignores a hangup here (nohup does).
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    )  # fmt: skip
    os.close(slave)
    try:
        yield Terminal(process, master)
    finally:
        process.kill()
        process.wait()
        os.close(master)
