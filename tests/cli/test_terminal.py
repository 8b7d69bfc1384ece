"""The interface on a real (pseudo) terminal, started as people start it."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import subprocess
import sys
import time
from pathlib import Path

import pytest
from model_files import REPOSITORY


class Terminal:
    """A program on a terminal of its own, 80 x 24."""

    def __init__(self, *arguments: str, where: Path, **environment: str) -> None:
        self.shown = b""
        self._end, other = pty.openpty()
        self._program = subprocess.Popen(
            [sys.executable, "-m", "gpufit", *arguments],
            cwd=where,
            env=os.environ
            | {"PYTHONPATH": str(REPOSITORY), "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
            | environment,
            stdin=other,
            stdout=other,
            stderr=other,
        )
        os.close(other)

    def read_until(self, text: str, seconds: float = 60) -> None:
        """Wait until a text was written."""
        until = time.monotonic() + seconds
        while text.encode() not in self.shown:
            assert time.monotonic() < until, self.shown[-2000:]
            self._read()

    def _read(self) -> None:
        if select.select([self._end], [], [], 0.1)[0]:
            with contextlib.suppress(OSError):  # how the other end says that it is closed
                self.shown += os.read(self._end, 65536)

    def press(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    def end(self, seconds: float = 60) -> int:
        """The exit status; what is still written is read, so that it can end."""
        until = time.monotonic() + seconds
        while self._program.poll() is None:
            assert time.monotonic() < until, self.shown[-2000:]
            self._read()
        self._read()
        os.close(self._end)
        return self._program.returncode


@pytest.mark.parametrize("arguments", [(), ("tui",)])
def test_without_a_command_the_interface_opens_and_q_ends_it(arguments: tuple[str, ...], tmp_path: Path) -> None:
    terminal = Terminal(*arguments, where=tmp_path)
    terminal.read_until("No profile yet")
    terminal.press("q")
    assert terminal.end() == 0
    assert b"Traceback" not in terminal.shown


def test_a_terminal_that_can_only_print_is_told_what_prints(tmp_path: Path) -> None:
    terminal = Terminal("tui", where=tmp_path, TERM="dumb")
    assert terminal.end() == 2
    assert b"gpufit fit PROFILE" in terminal.shown
    terminal = Terminal(where=tmp_path, TERM="dumb")
    assert terminal.end() == 0
    assert b"usage: gpufit" in terminal.shown
