"""Every key that the help lists does something that can be seen, on every screen that it is listed for."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import pytest
from builders import make_layout, make_profile
from recordings import Replay, held_before, said
from run_screens import until
from textual.pilot import Pilot
from textual.screen import ModalScreen, Screen
from textual.widget import Widget
from tui_builders import CATALOG, OFFERS, make_loaded, named, screen_lines

from gpufit.sources.measure.events import CellDone
from gpufit.tui import state
from gpufit.tui.app import GpufitApp
from gpufit.tui.keys import EVERYWHERE, OF_VIEWS, OVER_VIEWS, QUESTION, Key
from gpufit.tui.runner import Runner
from gpufit.tui.screens.base import SessionScreen
from gpufit.tui.session import Session
from gpufit.tui.state import View

LOW = (80, 12)
"""So low that every page has to be scrolled."""

NOTHING = "f9"
"""A key that nothing hears."""

_NOT_AT_THE_TOP: Mapping[str, tuple[str, ...]] = {
    "up": ("down",), "k": ("down",), "pageup": ("end",), "home": ("end",),
}  # fmt: skip
_OF_PAGES = _NOT_AT_THE_TOP | dict.fromkeys(("down", "j", "pagedown", "end"), ("home",))
_CHANGED_FIRST = {"r": ("right",), "minus": ("plus",), "left": ("right",)}
BEFORE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "everywhere": {"2": ("1",)},
    View.PROFILES: _NOT_AT_THE_TOP
    | dict.fromkeys(("down", "j", "pagedown", "end"), ("home",))
    | {"equals_sign": ("home", "down"), "escape": ("i",), "i": ("escape",)},
    View.CARDS: _NOT_AT_THE_TOP | {"escape": ("slash",), "a": ("f",)},
    View.CURVE: _NOT_AT_THE_TOP | {"a": ("2", "f", "3")},
    View.GROWTH: _OF_PAGES,
    View.PRECISION: _OF_PAGES,
    View.TIME: _OF_PAGES,
    View.ORDER: _NOT_AT_THE_TOP | {"a": ("2", "f", "7")},
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


SECOND_CELL_DONE = [number for number, event in enumerate(said("measured")) if isinstance(event, CellDone)][1]


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
    return BEFORE[place].get(name) or _CHANGED_FIRST.get(name, ())


def seen(app: Watched) -> tuple[object, ...]:
    """All that somebody could tell from the screen, and what stays when another is opened."""
    scrolled = [(one.id, one.scroll_offset) for one in app.screen.query(Widget) if one.is_scrollable]
    focused = None if app.focused is None else (type(app.focused), app.focused.id)
    return screen_lines(app), type(app.screen), app.session.state, app.theme, focused, scrolled, app.left


def has_begun(app: GpufitApp) -> bool:
    return bool(app.session.profiles)


def is_over(app: GpufitApp) -> bool:
    return app.runner is not None and not app.runner.state.alive


async def go_back(app: Watched, pilot: Pilot[None], start: state.ViewState) -> None:
    """To how it was when it was opened, on the screen of profiles."""
    while isinstance(app.screen, ModalScreen) or not isinstance(app.screen, SessionScreen):
        app.pop_screen()
        await pilot.pause()
    app.session.go(start)
    app.look_at(View.PROFILES)
    await pilot.pause()


async def open_place(pilot: Pilot[None], place: str) -> None:
    await pilot.press(*OPENS[place])
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


@pytest.mark.parametrize("place", [one for one in OPENS if one != View.RUN])
async def test_every_key_shows_what_it_does(place: str) -> None:
    # Of the first, weights and cache can be worked out in other bytes.
    divided = make_loaded(make_profile(layout=make_layout()))
    app = Watched(Session((divided, named("other"), named("third")), CATALOG, OFFERS))
    dead = []
    async with app.run_test(size=LOW) as pilot:
        start = app.session.state
        opened: type[Screen[object]] | None = None
        for name in (NOTHING, *names(place)):
            if type(app.screen) is not opened:
                await go_back(app, pilot, start)
                await open_place(pilot, place)
                opened = type(app.screen)
            app.session.go(start)
            app.draw_again()
            await pilot.press(*before(place, name))
            await app.workers.wait_for_complete()
            await pilot.pause()
            was = seen(app)
            await pilot.press(name)
            if seen(app) == was:
                dead.append(name)
    assert dead == [NOTHING]


def recorded(gate: threading.Event) -> Watched:
    """Its run is a recorded one, held after the first cell until the gate is opened, by a clock that stands."""
    runner = Runner(lambda request: Replay("measured", held_before(SECOND_CELL_DONE, gate)), lambda: 0.0)
    return Watched(Session((), CATALOG, OFFERS), runner)


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
                await until(pilot, partial(has_begun, app))
            if RUNS.get(name) == "stopped":
                await pilot.press("x")
                gate.set()
                await until(pilot, partial(is_over, app))
            await pilot.press(*before(View.RUN, name))
            was = seen(app)
            await pilot.press(name)
            await pilot.pause()
            if seen(app) == was:
                dead.append(name)
            gate.set()
    assert dead == [NOTHING]


def test_every_place_that_the_help_names_is_tried() -> None:
    assert set(OPENS) == {"everywhere", *OF_VIEWS, *OVER_VIEWS}
