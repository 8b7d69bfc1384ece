"""The interface on a terminal of its own, as a user starts it: keys go in as bytes, what is drawn is thrown away."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from processes import wait_until

TAB, LEFT, START = "\t", "\x1b[D", "\x13"


class Terminal:
    """A process on a pseudo terminal of 120 x 40."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process, self._master = process, master
        self._seen = 0
        """How much of it has been waited for."""
        self.all_drawn = b""
        """Everything since the start."""
        self._closed = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, *keys: str) -> None:
        """Press keys, one group after another: those that follow a change of field go to the next one, as a hand would
        press them. Nobody types into the first frame."""
        time.sleep(0.5)
        for one in keys:
            os.write(self._master, one.encode())
            time.sleep(2)

    def wait_for(self, words: str, seconds: float = 60) -> None:
        """Until words have been drawn since the last wait; they must not stand where colours change."""
        sought = words.encode()
        wait_until(lambda: self.all_drawn.find(sought, self._seen) >= 0, seconds, f"{words!r} on the terminal")
        self._seen = self.all_drawn.find(sought, self._seen) + len(sought)

    def size(self, columns: int, rows: int) -> None:
        """Another size of the window."""
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def local_modes(self) -> int:
        """The terminal's `lflag`: ECHO and ICANON are set where a shell can be typed into."""
        flags: int = termios.tcgetattr(self._master)[3]
        return flags

    def close(self) -> None:
        """Close the window: what runs in it has no terminal any more."""
        if not self._closed.is_set():
            self._closed.set()
            self._reader.join()  # a terminal that is being read stays open
            os.close(self._master)

    def _read(self) -> None:
        with contextlib.suppress(OSError):  # the terminal's end
            while not self._closed.is_set():
                if select.select([self._master], [], [], 0.1)[0]:
                    piece = os.read(self._master, 65536)
                    self.all_drawn += piece


@contextlib.contextmanager
def interface(
    folder: Path, variables: Mapping[str, str], *arguments: str, hears_hangup: bool = True
) -> Iterator[Terminal]:
    """`gpufit` with these arguments in a folder; gone when the block ends. Without hearing a hangup it is as `nohup`
    starts it."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    environment = os.environ | {"TERM": "xterm-256color", "HOME": str(folder)} | variables
    process = subprocess.Popen(
        [sys.executable, "-m", "gpufit", *arguments],
        cwd=folder, env=environment, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
        preexec_fn=partial(_as_a_terminal_does, hears_hangup),
    )  # fmt: skip
    os.close(slave)
    terminal = Terminal(process, master)
    try:
        yield terminal
    finally:
        process.kill()
        process.wait()
        terminal.close()


def _as_a_terminal_does(hears_hangup: bool) -> None:
    """It hears a hangup or not, whatever does here, and standard input is the terminal that sends it."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL if hears_hangup else signal.SIG_IGN)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
