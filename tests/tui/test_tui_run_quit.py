"""Leaving the interface while a run goes on: it asks, and what it is told to stop is gone."""

from __future__ import annotations

from functools import partial

import pytest
from processes import is_running
from run_screens import MEDIUM, SMALL, Script, scripted_app, started_run, state_of, text_of, until
from run_scripts import FLOOD, LOADING, WAIT, scripted_run

from gpufit.tui.run_state import Stage
from gpufit.tui.screens.cards import CardsScreen
from gpufit.tui.screens.quit import QuitScreen
from gpufit.tui.screens.run import RunScreen


def waiting() -> Script:
    return Script(partial(scripted_run, [LOADING], WAIT))


@pytest.mark.parametrize("size", [SMALL, MEDIUM])
@pytest.mark.parametrize("key", ["q", "ctrl+c", "ctrl+q"])
async def test_every_key_that_quits_asks_first_from_any_screen(key: str, size: tuple[int, int]) -> None:
    app = scripted_app(script := waiting())
    async with app.run_test(size=size) as pilot:
        await started_run(pilot, script)
        await until(pilot, lambda: state_of(app).stage is Stage.LOADING)
        await pilot.press("2", key)
        assert isinstance(app.screen, QuitScreen)
        text = text_of(app, "QuitScreen Vertical")
        assert "Still loading: finished cells are kept, whatever you choose." in text
        assert "s stop it and quit" in text
        await pilot.press(key)
        assert isinstance(app.screen, QuitScreen), "asked once"
        await pilot.press("escape")
        assert isinstance(app.screen, CardsScreen)
        assert state_of(app).stage is Stage.LOADING
        script.begun[0].stop()


async def test_stop_and_quit_ends_the_process_and_then_the_app() -> None:
    app = scripted_app(script := waiting())
    async with app.run_test(size=MEDIUM) as pilot:
        await started_run(pilot, script)
        await until(pilot, lambda: state_of(app).stage is Stage.LOADING)
        await pilot.press("q", "s")
        await until(pilot, lambda: not app.is_running or not state_of(app).alive)
        await until(pilot, lambda: not app.is_running)
    assert not is_running(script.begun[0].pid)
    assert state_of(app).stage is Stage.STOPPED


async def test_looking_at_it_lets_it_go_on() -> None:
    app = scripted_app(script := waiting())
    async with app.run_test(size=MEDIUM) as pilot:
        await started_run(pilot, script)
        await until(pilot, lambda: state_of(app).stage is Stage.LOADING)
        await pilot.press("2", "q", "l")
        assert isinstance(app.screen, RunScreen)
        assert state_of(app).stage is Stage.LOADING
        assert is_running(script.begun[0].pid)
        script.begun[0].stop()


async def test_by_mouse() -> None:
    app = scripted_app(script := waiting())
    async with app.run_test(size=MEDIUM) as pilot:
        await started_run(pilot, script)
        await until(pilot, lambda: state_of(app).stage is Stage.LOADING)
        await pilot.press("q")
        await pilot.click("#cancel")
        assert isinstance(app.screen, RunScreen)
        await pilot.press("q")
        await pilot.click("#stop")
        await until(pilot, lambda: not app.is_running)
    assert not is_running(script.begun[0].pid)


@pytest.mark.parametrize("then", [FLOOD, "sys.exit(1)"])
async def test_where_nothing_goes_on_it_quits_at_once(then: str) -> None:
    app = scripted_app(script := Script(partial(scripted_run, [], then)))
    async with app.run_test(size=MEDIUM) as pilot:
        await started_run(pilot, script)
        await until(pilot, lambda: not state_of(app).alive)
        await pilot.press("q")
        await until(pilot, lambda: not app.is_running)
