"""The run screen over scripted runs, and waiting for what a thread brings."""

from __future__ import annotations

import time
from collections.abc import Callable

from textual.app import App
from textual.pilot import Pilot
from tui_builders import make_session, named, screen_lines, screen_text

from gpufit.flows_run import Run
from gpufit.sources.measure.events import RunRequest
from gpufit.tui.app import GpufitApp
from gpufit.tui.run_state import RunState
from gpufit.tui.runner import Runner
from gpufit.tui.screens.run import RunScreen

SMALL, MEDIUM, WIDE = (80, 24), (120, 40), (200, 60)


class Script:
    """Begins a scripted run for every request, and keeps both."""

    def __init__(self, *runs: Callable[[], Run]) -> None:
        self._runs = list(runs)
        self.requests: list[RunRequest] = []
        self.begun: list[Run] = []

    def __call__(self, request: RunRequest) -> Run:
        self.requests.append(request)
        self.begun.append(self._runs.pop(0)())
        return self.begun[-1]


def scripted_app(script: Script) -> GpufitApp:
    """Two profiles, and runs by a script under a clock that stands still."""
    return GpufitApp(make_session(named("one"), named("two")), Runner(script, clock=lambda: 100.0))


def run_screen(app: App[None]) -> RunScreen:
    screen = app.screen
    assert isinstance(screen, RunScreen)
    return screen


def text_of(app: App[None], selector: str) -> str:
    """What stands in the place of one widget, every run of blanks as one."""
    place = app.screen.query_one(selector).content_region
    lines = [line[place.x : place.right] for line in screen_lines(app)[place.y : place.bottom]]
    return " ".join(" ".join(lines).split())


def state_of(app: GpufitApp) -> RunState:
    assert app.runner is not None
    return app.runner.state


async def until(pilot: Pilot[None], condition: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for what comes from a process or a thread; the screen is drawn when it is back."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, screen_text(pilot.app)
        await pilot.pause(0.02)
    await pilot.pause()


async def open_form(pilot: Pilot[None], model: str = "m") -> None:
    """Onto the run screen, a model typed in."""
    await pilot.press("8", "tab", "tab", *model)


async def started_run(pilot: Pilot[None], script: Script) -> None:
    """A run of a model named m, whose first word has come."""
    await open_form(pilot)
    await pilot.press("ctrl+s")
    await until(pilot, lambda: bool(script.begun))
