"""Every key that the help lists does something that can be seen, on every screen that it is listed for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from builders import make_profile
from recordings import Replay, held_before
from run_screens import until
from textual.pilot import Pilot
from textual.screen import ModalScreen
from textual.widget import Widget
from tui_builders import CATALOG, OFFERS, make_loaded, named, screen_lines

from gpufit.tui import state
from gpufit.tui.app import GpufitApp
from gpufit.tui.keys import EVERYWHERE, OF_VIEWS, OVER_VIEWS, QUESTION, Key
from gpufit.tui.runner import Runner
from gpufit.tui.screens.base import SessionScreen
from gpufit.tui.session import Session
from gpufit.tui.state import View

LOW = (80, 15)
"""So low that every page has to be scrolled."""

PROFILES_KEY = "1"
NOTHING = "f9"
"""A key that nothing hears."""

_NOT_AT_THE_TOP: Mapping[str, tuple[str, ...]] = {
    "up": ("down",), "k": ("down",), "pageup": ("end",), "home": ("end",),
}  # fmt: skip
_CHANGED_FIRST = {"r": ("right",), "minus": ("plus",), "left": ("right",)}
BEFORE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "everywhere": {"2": ("1",)},
    "question": _CHANGED_FIRST,
    View.PROFILES: _NOT_AT_THE_TOP | {"equals_sign": ("down",), "escape": ("i",)},
    View.CARDS: _NOT_AT_THE_TOP | {"escape": ("d",)},
    View.CURVE: _NOT_AT_THE_TOP,
    View.GROWTH: _NOT_AT_THE_TOP,
    View.PRECISION: _NOT_AT_THE_TOP,
    View.TIME: _NOT_AT_THE_TOP,
    View.ORDER: _NOT_AT_THE_TOP,
    View.RUN: {"escape": ("tab",)},
    "Compare, over the profiles": _CHANGED_FIRST,
    "The order file, over the orders": {"shift+tab": ("tab",)},
}
"""What has to be done first, where a key does nothing on the screen as it opens: nothing lies above the first line."""

OPENS: Mapping[str, tuple[str, ...]] = {
    "everywhere": ("2",),
    **{view: (str(place),) for place, view in enumerate(View, 1)},
    "Compare, over the profiles": ("1", "down", "equals_sign"),
    "The order file, over the orders": ("7", "enter"),
}
"""The keys that lead to a screen from any other."""

RUNS = {"x": "going on", "o": "going on", "u": "stopped"}
"""Keys of the run screen that need a run, and how it has to stand."""


class Watched(GpufitApp):
    """Counts what leaves the interface, and stays."""

    left = 0

    def exit(self, *given: object, **options: object) -> None:
        """Asked to close."""
        self.left += 1

    def action_suspend_process(self) -> None:
        """Asked to be put aside; `tests/cli/test_terminal_endings.py` does it on a terminal."""
        self.left += 1


def listed(place: str) -> tuple[Key, ...]:
    """The keys that help lists for a place."""
    if place == "everywhere":
        return EVERYWHERE
    if place in OVER_VIEWS:
        return OVER_VIEWS[place]
    view = View(place)
    return (*OF_VIEWS[view], *(() if view in (View.PROFILES, View.RUN) else QUESTION))


def names(place: str) -> Iterator[str]:
    for one in listed(place):
        yield from one.keys.split(",")


def before(place: str, name: str) -> tuple[str, ...]:
    return BEFORE[place].get(name) or (_CHANGED_FIRST.get(name, ()) if place not in ("everywhere",) else ())


def seen(app: Watched) -> tuple[object, ...]:
    """All that somebody could tell from the screen, and what stays when another is opened."""
    scrolled = [(one.id, one.scroll_offset) for one in app.screen.query(Widget) if one.is_scrollable]
    focused = None if app.focused is None else (type(app.focused), app.focused.id)
    return screen_lines(app), type(app.screen), app.session.state, app.theme, focused, scrolled, app.left


def profiles() -> tuple[object, ...]:
    return (make_loaded(make_profile()), named("other"), named("third"))


async def go_back(app: Watched, pilot: Pilot[None], start: state.ViewState) -> None:
    """To how it was when it was opened, on the screen of profiles."""
    while isinstance(app.screen, ModalScreen) or not isinstance(app.screen, SessionScreen):
        app.pop_screen()
        await pilot.pause()
    app.session.go(start)
    app.look_at(View.PROFILES)
    await pilot.pause()
    await pilot.press("escape", "home")


async def open_place(pilot: Pilot[None], place: str) -> None:
    for key in OPENS[place]:
        await pilot.press(key)
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


@pytest.mark.parametrize("place", [one for one in OPENS if one != View.RUN])
async def test_every_key_shows_what_it_does(place: str) -> None:
    app = Watched(Session((make_loaded(), named("other"), named("third")), CATALOG, OFFERS))
    dead = []
    async with app.run_test(size=LOW) as pilot:
        start = app.session.state
        for name in (NOTHING, *names(place)):
            await go_back(app, pilot, start)
            await open_place(pilot, place)
            for key in before(place, name):
                await pilot.press(key)
            was = seen(app)
            await pilot.press(name)
            await pilot.pause()
            if seen(app) == was:
                dead.append(name)
    assert dead == [NOTHING]


async def test_every_key_of_the_run_screen_shows_what_it_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dead = []
    for name in (NOTHING, *names(View.RUN)):
        gate = threading.Event()
        app = Watched(
            Session((), CATALOG, OFFERS),
            Runner(lambda request, gate=gate: Replay("measured", held_before(8, gate)), lambda: 0.0),
        )
        async with app.run_test(size=LOW) as pilot:
            await open_place(pilot, View.RUN)
            if name in RUNS:
                await pilot.press("tab", "tab", "m", "ctrl+s")
                await until(pilot, lambda app=app: bool(app.session.profiles))
            if RUNS.get(name) == "stopped":
                await pilot.press("x")
                gate.set()
                await until(pilot, lambda app=app: not app.runner.state.alive)
            for key in before(View.RUN, name):
                await pilot.press(key)
            was = seen(app)
            await pilot.press(name)
            await pilot.pause()
            if seen(app) == was:
                dead.append(name)
            gate.set()
            app.runner.end()
    assert dead == [NOTHING]
