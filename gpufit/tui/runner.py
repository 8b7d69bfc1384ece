"""The one run that the interface may have going: its process, a thread that hears it, and what is known of it.

Knows nothing of Textual: whoever shows it is told that there is news, on the thread, and takes it on his own.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Protocol

from gpufit.flows_run import start_run
from gpufit.sources.measure.events import Crashed, RunEvent, RunRequest
from gpufit.tui import run_state
from gpufit.tui.run_state import RunState


class Running(Protocol):
    """A run as the interface holds it; `flows_run.Run` is one."""

    def events(self) -> Iterable[RunEvent]:
        """Every event as it comes; the last one ends the run."""
        ...

    def stop(self) -> None:
        """Ask it to end, and wait until it has."""
        ...


class Runner:
    """Begins runs, one at a time, and keeps the state of the last one."""

    def __init__(
        self, start: Callable[[RunRequest], Running] = start_run, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._start, self.clock = start, clock
        self._run: Running | None = None
        self._news: deque[tuple[float, RunEvent]] = deque()
        self.state = RunState()

    def begin(self, request: RunRequest, notify: Callable[[], object]) -> None:
        """Start a run; `notify` is called on a thread for everything that `take` then gives. One that is alive stays
        the only one."""
        if self.state.alive:
            return
        self.state = run_state.begin(request, self.clock())
        try:
            self._run = self._start(request)
        except OSError as error:
            self._news.append((self.clock(), Crashed(reason=f"no process could be started ({error.strerror})")))
            notify()
            return
        # Daemons: the interface never waits for a run that it was not told to stop.
        threading.Thread(target=self._hear, args=(self._run, notify), daemon=True).start()

    def forget(self) -> None:
        """Nothing more of a run that was refused: something else is going to be asked for."""
        if not self.state.alive:
            self.state = RunState()

    def take(self) -> tuple[RunEvent, ...]:
        """Let what was heard since the last time change the state, and give it."""
        taken = []
        while self._news:
            at, event = self._news.popleft()
            self.state = run_state.apply(self.state, event, at)
            taken.append(event)
        return tuple(taken)

    def stop(self) -> None:
        """Ask the run to end, with its worker; its last event tells when it has."""
        if self._run is not None and self.state.may_stop:
            self.state = run_state.stop_asked(self.state)
            threading.Thread(target=self._run.stop, daemon=True).start()

    def end(self) -> None:
        """Stop the run that goes on, where one does, and wait until it has ended: for whoever hears no more of it."""
        if self._run is not None and self.state.alive:
            self._run.stop()

    def _hear(self, run: Running, notify: Callable[[], object]) -> None:
        for event in run.events():
            self._news.append((self.clock(), event))
            notify()
