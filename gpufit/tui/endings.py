"""Ends that come from outside: a signal closes the interface as a key would, and leaves a terminal as it was found."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

SIGNALS = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name))
"""`kill`, a terminal that was closed, and `kill -INT`: ctrl+c on a terminal is a key, and asks first where a run goes
on."""

_LOOK_SECONDS = 0.5

STUCK_SECONDS = 5.0
"""How long the interface has to close. It cannot where the terminal that it draws on is gone and takes nothing more."""


def exit_status(number: int) -> int:
    """What a shell says of a process that a signal ended: 143 for SIGTERM, 129 for SIGHUP."""
    return 128 + number


def hung_up(terminal: int) -> bool:
    """Whether nobody is at the other end of a terminal any more; False where the system cannot tell."""
    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(terminal, 0)
    return any(event & select.POLLHUP for _, event in poll.poll(0))


class Ending:
    """Hears the first of SIGNALS, and ends the process itself where the interface does not close in time."""

    def __init__(
        self, last_words: Callable[[], object], terminal: int | None = None, stuck_seconds: float = STUCK_SECONDS
    ) -> None:
        """`last_words` is called, on a thread of its own, before the process ends from here. `terminal` is its file
        descriptor; one that is gone counts as SIGHUP, which not every process gets."""
        self.number: int | None = None
        """The signal; None while none came."""
        self._last_words, self._terminal, self._stuck_seconds = last_words, terminal, stuck_seconds
        self._close: Callable[[], object] | None = None
        self._came, self._over = threading.Event(), threading.Event()

    @contextlib.contextmanager
    def heard(self) -> Iterator[None]:
        """Hear signals while the block runs. What ignores one from the start (`nohup`) goes on ignoring it."""
        before = {one: signal.getsignal(one) for one in SIGNALS}
        watch = threading.Thread(target=self._watch, daemon=True)
        watch.start()
        try:
            for one, how in before.items():
                if how is not signal.SIG_IGN:
                    signal.signal(one, self._hear)
            yield
        finally:
            self._over.set()
            self._came.set()
            for one, how in before.items():
                signal.signal(one, how)
            watch.join()

    @contextlib.contextmanager
    def closes(self, close: Callable[[], object]) -> Iterator[None]:
        """While the block runs a signal calls this, once, between any two steps of the main thread."""
        self._close = close
        try:
            if self.number is not None:
                close()
            yield
        finally:
            self._close = None

    def _hear(self, number: int, frame: FrameType | None) -> None:
        if self.number is not None:
            return
        self.number = number
        self._came.set()
        close = self._close
        if close is not None:
            close()

    def _watch(self) -> None:
        while not self._came.wait(_LOOK_SECONDS):
            if self._terminal is not None and hung_up(self._terminal):
                self._hear(signal.SIGHUP, None)
        if self.number is not None and not self._over.wait(self._stuck_seconds):
            self._last_words()
            os._exit(exit_status(self.number))
