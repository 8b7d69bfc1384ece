"""Keeps a soak to itself: nothing is written outside its folder, no process is started, nobody is called."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Iterator
from pathlib import Path

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_CHANGES = {"os.mkdir": 1, "os.rename": 2, "os.remove": 1, "os.rmdir": 1, "os.truncate": 1, "os.link": 2,
            "os.symlink": 2, "os.chmod": 1}  # fmt: skip
"""What changes files beside opening them -> how many of its arguments are files."""
_STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.exec", "os.posix_spawn", "os.system")
_CALLS = ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname")


class Guard:
    """What was refused so far. Python calls an audit hook for everything of the kind, and keeps it for ever."""

    def __init__(self) -> None:
        self._folder: str | None = None
        self._hooked = False
        self.refused: list[str] = []
        """Files outside the folder that something wanted to write."""
        self.started: list[str] = []
        """Processes that something wanted to start, and addresses that something wanted to reach."""

    @contextlib.contextmanager
    def around(self, folder: Path) -> Iterator[None]:
        """Guard what happens in the block."""
        if not self._hooked:
            sys.addaudithook(self._hear)
            self._hooked = True
        self._folder = os.path.realpath(folder)
        try:
            yield
        finally:
            self._folder = None

    def _hear(self, event: str, arguments: tuple[object, ...]) -> None:
        if self._folder is None:
            return
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & _WRITES:
                self._keep_inside(path)
        elif event in _CHANGES:
            for path in arguments[: _CHANGES[event]]:
                self._keep_inside(path)
        elif event in _STARTS:
            self.started.append(f"{event} {arguments[0]}")
            raise PermissionError(errno.EPERM, "a soak starts no process")
        elif event in _CALLS:
            self.started.append(f"{event} {arguments}")
            raise OSError(errno.ENETUNREACH, os.strerror(errno.ENETUNREACH))

    def _keep_inside(self, path: object) -> None:
        if isinstance(path, int) or path == os.devnull:
            return
        whole = os.path.realpath(os.fsdecode(path))  # type: ignore[arg-type]
        if os.path.commonpath([whole, self._folder or ""]) != self._folder:
            self.refused.append(whole)
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), whole)


GUARD = Guard()
