"""The comparison: the same figures as `gpufit compare`, at the scenario both ran and at others."""

from __future__ import annotations

from pathlib import Path

import pytest
from builders import make_profile
from textual.widgets import Input
from tui_builders import CATALOG, OFFERS, named, plain, screen_lines, screen_text

from gpufit import flows
from gpufit.cli.main import main
from gpufit.memory.terms import Shape
from gpufit.tui.app import GpufitApp
from gpufit.tui.loaded import LoadedProfile, UnfinishedProfile, read_profile
from gpufit.tui.renderables.compare import comparison, sides
from gpufit.tui.screens.compare import CompareScreen
from gpufit.tui.screens.help import HelpScreen
from gpufit.tui.screens.profiles import ProfilesScreen
from gpufit.tui.session import Session

FOLDER = Path(__file__).parents[1] / "facts" / "profiles" / "architectures"
LLAMA, MISTRAL = FOLDER / "llama.json", FOLDER / "mistral.json"


def real(path: Path) -> LoadedProfile:
    one = read_profile(path)
    assert isinstance(one, LoadedProfile)
    return one


def compare_screen(app: GpufitApp) -> CompareScreen:
    assert isinstance(app.screen, CompareScreen)
    return app.screen


def compare_app(a: Path = LLAMA, b: Path = MISTRAL) -> GpufitApp:
    return GpufitApp(Session((real(a), real(b)), CATALOG, OFFERS))


OPEN = ("1", "down", "equals_sign")


def test_says_word_for_word_what_the_command_line_says(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["compare", str(LLAMA), str(MISTRAL), "--format", "table"]) == 0
    printed = capsysbinary.readouterr().out.decode()
    a, b = (flows.load_named_profile(path) for path in (LLAMA, MISTRAL))
    document = flows.compare(a, b, (str(LLAMA), str(MISTRAL)), flows.common_shape(a, b))
    shown = plain(sides(document), 300) + plain(comparison(document), 300)
    words = set(shown.split())
    missing = [word for word in printed.split() if word not in words and set(word) != {"-"}]
    assert missing == []


async def test_keys_ask_about_another_scenario_and_leave_the_other_screens_alone() -> None:
    app = compare_app()
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press(*OPEN)
        asked = app.session.state.shape
        assert "at context 1536 + 8 new x 4 at once, which both ran · evidence: measured" in screen_text(app)
        # 2,048 positions hold a prompt and all new tokens but the last, which is never fed back: 2048 - 7.
        await pilot.press("right")
        assert "at context 2041 + 8 new x 4 at once, which neither ran · evidence: scaled" in screen_text(app)
        await pilot.press("plus", "plus", "minus")
        document = compare_screen(app).document
        assert document is not None
        assert (document.scenario.context_tokens, document.scenario.concurrency) == (2041, 8)
        await pilot.press("r", "left")
        assert "at context 768 + 8 new x 4" in screen_text(app)
        assert app.session.state.shape == asked


async def test_swaps() -> None:
    app = compare_app()
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press(*OPEN)
        assert "A = llama" in screen_text(app)
        await pilot.press("x")
        assert "A = mistral" in screen_text(app)
        assert "B = llama" in screen_text(app)


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (120, 40), (200, 60)])
async def test_scrolls_and_stays_inside_the_terminal(size: tuple[int, int]) -> None:
    app = compare_app()
    async with app.run_test(size=size) as pilot:
        await pilot.press(*OPEN, "end")
        await pilot.pause()
        assert {len(line) for line in screen_lines(app)} == {size[0]}
        assert "window in B alone" in screen_text(app)


async def test_help_and_back() -> None:
    app = compare_app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press(*OPEN, "question_mark")
        assert isinstance(app.screen, HelpScreen)
        await pilot.press("escape")
        assert compare_screen(app)
        await pilot.press("escape")
        assert isinstance(app.screen, ProfilesScreen)


async def test_a_slider_asks_too() -> None:
    app = compare_app()
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press(*OPEN)
        await pilot.click("#slider-context", offset=(8, 0))
        document = compare_screen(app).document
        assert document is not None
        assert document.scenario.context_tokens == 1


async def test_an_unfinished_profile_is_named_as_the_reason() -> None:
    why = "the profile has no measured cell; gpufit profile --resume finishes it"
    empty = UnfinishedProfile(make_profile(cells=(), memory_model=None), "profiles/begun.json", why)
    app = GpufitApp(Session((named("first"),), CATALOG, OFFERS, (), (empty,)))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press(*OPEN)
        assert f"! profiles/begun.json: {why}" in screen_text(app)
        made = compare_screen(app).exportable()
        assert made is not None
        assert (made.name, list(made.formats)) == ("first-tiny-llama-compare", []), "a picture has its name, too"
        await pilot.press("right", "plus", "r", "x")
        assert compare_screen(app).document is None
        await pilot.press("escape")
        assert isinstance(app.screen, ProfilesScreen)


async def test_models_whose_positions_end_earlier_end_the_scenario_there() -> None:
    app = GpufitApp(Session((named("long"), named("short", position_limit=1024)), CATALOG, OFFERS))
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press(*OPEN, "right", "right", "right")
        document = compare_screen(app).document
        assert document is not None
        assert document.scenario.context_tokens == 1021  # 1024 positions less 4 new tokens but the last
        assert Shape(1021, 4, 4).cached_tokens == 1024


async def test_a_typed_scenario_is_compared_at() -> None:
    app = compare_app()
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.press(*OPEN, "g")
        app.screen.query_one(Input).value = "128x2"
        await pilot.press("enter")
        document = compare_screen(app).document
        assert document is not None
        assert (document.scenario.context_tokens, document.scenario.concurrency) == (128, 2)
