"""The application under keys: what stands on the terminal, at two sizes, without colour."""

from __future__ import annotations

from dataclasses import replace

import msgspec
import pytest
from builders import make_profile
from tui_builders import (
    CATALOG,
    OFFERS,
    cards_screen,
    make_app,
    make_document,
    make_loaded,
    named,
    screen_lines,
    screen_text,
)

from gpufit.advice.verdict import Verdict
from gpufit.memory.terms import Shape
from gpufit.report.cells import COLUMNS, SYMBOLS
from gpufit.report.summary import headline
from gpufit.tui.app import GpufitApp
from gpufit.tui.listing import Filter, Sort
from gpufit.tui.loaded import LoadedProfile
from gpufit.tui.renderables.cards import POINTER
from gpufit.tui.screens.help import HelpScreen
from gpufit.tui.session import Session
from gpufit.tui.state import View
from gpufit.tui.widgets.card_list import CardList
from gpufit.tui.widgets.details import Details

SMALL, WIDE, ALL_CARDS = (80, 24), (160, 48), (160, 80)
CELL = {column.key: column.text for column in COLUMNS}
HEAVY = Shape(30_000, 4, 64)
"""A scenario at which the shipped catalog has cards of every verdict for the default profile."""


def heavy() -> LoadedProfile:
    """The default profile, started at that scenario."""
    return replace(make_loaded(), start=HEAVY)


class TestFirstFrame:
    @pytest.mark.parametrize("size", [SMALL, WIDE])
    async def test_shows_model_scenario_cards_bars_details_and_keys(self, size: tuple[int, int]) -> None:
        app = make_app()
        async with app.run_test(size=size):
            text = screen_text(app)
            for line in headline(make_document()).splitlines():
                assert line in text
            assert "t4-16gb ✓ fits" in text
            assert "█ weights" in text
            assert "│" in text
            assert "t4-16gb · NVIDIA T4 16GB" in text
            assert "lower .. upper" in text
            assert "? help q quit" in text
            assert app.focused is app.screen.query_one(CardList)

    @pytest.mark.parametrize("size", [SMALL, WIDE, (60, 20), (130, 40), (250, 60)])
    async def test_no_line_is_wider_than_the_terminal(self, size: tuple[int, int]) -> None:
        app = make_app()
        async with app.run_test(size=size):
            lines = screen_lines(app)
            assert len(lines) == size[1]
            assert {len(line) for line in lines} == {size[0]}

    async def test_eighty_columns_keep_every_key_in_the_footer(self) -> None:
        app = make_app(named("one"), named("two"))
        async with app.run_test(size=SMALL):
            keys = "←→ context -+ at once p profile r reset s sort f filter d details ? help q quit"
            assert " ".join(screen_lines(app)[-1].split()) == keys

    @pytest.mark.parametrize("view", [*View])
    async def test_help_and_quit_stand_in_every_footer(self, view: View) -> None:
        app = make_app(named("one"), named("two"))
        async with app.run_test(size=SMALL) as pilot:
            for size in (SMALL, WIDE, SMALL):
                await pilot.resize_terminal(*size)
                await pilot.press(str(tuple(View).index(view) + 1))
                await pilot.pause()
                last = screen_lines(app)[-1].rstrip()
                assert last.endswith("quit")
                assert "? help" in last
                assert ("e export" in last) is (size == WIDE)

    @pytest.mark.parametrize(
        ("key", "footer"), [("g", "esc leave"), ("e", "esc leave"), ("question_mark", "esc close")]
    )
    async def test_a_dialog_names_only_its_own_keys(self, key: str, footer: str) -> None:
        app = make_app(named("one"), named("two"))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press(key)
            await pilot.pause()
            last = " ".join(screen_lines(app)[-1].split())
            assert last.startswith(footer)
            assert "? help" not in last
            assert "export" not in last

    async def test_selects_the_smallest_card_that_fits(self) -> None:
        app = make_app(heavy())
        async with app.run_test(size=WIDE):
            screen = cards_screen(app)
            selected = screen.session.rows[screen.session.state.selected]
            fits = [row.capacity_bytes for row in screen.session.rows if row.verdict is Verdict.FITS]
            assert selected.capacity_bytes == min(size for size in fits if size is not None)
            assert any(line.startswith(f" {POINTER} {selected.card}") for line in screen_lines(app))


async def test_the_screen_shows_the_documents_rows() -> None:
    app = make_app(heavy())
    document = make_document(HEAVY)
    assert {row.verdict for row in document.cards} >= {Verdict.FITS, Verdict.TOO_CLOSE, Verdict.DOES_NOT_FIT}
    async with app.run_test(size=ALL_CARDS):
        lines = screen_lines(app)
        for row in document.cards:
            line = next(line for line in lines if f" {row.card} " in line and SYMBOLS[row.verdict] in line)
            for key in ("capacity_bytes", "need_bytes", "headroom_bytes", "lots", "evidence"):
                assert f" {CELL[key](document, row)}" in line


async def test_too_close_and_fits_differ_without_colour() -> None:
    app = make_app(heavy())
    async with app.run_test(size=ALL_CARDS):
        rows = {row.card: row for row in cards_screen(app).session.rows}
        seen = set()
        for line in screen_lines(app)[6:60]:
            row = rows.get(line[3:].split(" ")[0])
            if row is None or row.capacity_bytes is None or "│" not in line:
                continue
            beyond = line.split("│")[1].split("▁")[0].strip(" ▁▂▃▄▅▆▇█▏")
            assert (SYMBOLS[row.verdict] in line, bool(beyond)) == (True, row.verdict is not Verdict.FITS)
            seen.add(row.verdict)
        assert seen >= {Verdict.FITS, Verdict.TOO_CLOSE}


class TestKeys:
    @pytest.mark.parametrize(
        ("keys", "shape"),
        [
            (["right"], Shape(1024, 4, 4)),
            (["left"], Shape(256, 4, 4)),
            (["left"] * 12, Shape(1, 4, 4)),
            (["right"] * 8, Shape(32_765, 4, 4)),
            (["right"] * 8 + ["left"], Shape(16_384, 4, 4)),
            (["plus"], Shape(512, 4, 8)),
            (["equals_sign"], Shape(512, 4, 8)),
            (["minus"], Shape(512, 4, 2)),
            (["minus"] * 5, Shape(512, 4, 1)),
            (["right", "plus", "r"], Shape(512, 4, 4)),
        ],
    )
    async def test_scenario(self, keys: list[str], shape: Shape) -> None:
        app = make_app()
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press(*keys)
            assert cards_screen(app).session.state.shape == shape
            assert headline(make_document(shape)).splitlines()[1] in screen_text(app)

    @pytest.mark.parametrize("size", [SMALL, WIDE])
    async def test_moves(self, size: tuple[int, int]) -> None:
        app = make_app()
        moves = {"up": 0, "down": 1, "j": 2, "k": 1, "end": 40, "home": 0}
        async with app.run_test(size=size) as pilot:
            for key, place in moves.items():
                await pilot.press(key)
                assert cards_screen(app).session.state.selected == place
                card = CATALOG.cards[place].id
                assert any(line.startswith(f" {POINTER} {card} ") for line in screen_lines(app))
                assert f"{card} · " in screen_text(app)

    async def test_pages(self) -> None:
        app = make_app()
        async with app.run_test(size=SMALL) as pilot:
            page = app.screen.query_one(CardList).page
            await pilot.press("pagedown", "pagedown")
            assert cards_screen(app).session.state.selected == 2 * page
            await pilot.press("pageup")
            assert cards_screen(app).session.state.selected == page

    async def test_sort(self) -> None:
        app = make_app()
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("s")
            screen = cards_screen(app)
            headroom = [row.headroom_bytes for row in screen.session.rows if row.headroom_bytes is not None]
            assert headroom == sorted(headroom, reverse=True)
            assert str(Sort.HEADROOM) in screen_text(app)
            await pilot.press("s")
            assert str(Sort.CAPACITY) in screen_text(app)
            await pilot.press("s")
            assert [row.card for row in screen.session.rows] == [card.id for card in CATALOG.cards]

    async def test_filter(self) -> None:
        app = make_app(heavy())
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("f")
            screen = cards_screen(app)
            assert {row.verdict for row in screen.session.rows} == {Verdict.FITS}
            assert f"showing {Filter.FITS} ({len(screen.session.rows)} of 41)" in screen_text(app)
            await pilot.press("f")
            assert all(row.cards_needed for row in screen.session.rows)
            assert {row.verdict for row in screen.session.rows} > {Verdict.FITS}, "some with several"
            await pilot.press("f")
            verdicts = {row.verdict for row in screen.session.rows}
            assert Verdict.TOO_CLOSE in verdicts
            assert Verdict.DOES_NOT_FIT not in verdicts
            await pilot.press("f")
            assert len(screen.session.rows) == 41

    async def test_a_filter_that_leaves_nothing_says_so(self) -> None:
        app = make_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press(*["right"] * 8, *["plus"] * 10, "f")
            assert cards_screen(app).session.rows == ()
            assert f"no card to list: showing {Filter.FITS}" in screen_text(app)
            await pilot.press("down", "d", "d", "7")
            assert "on Cards (2): f: other verdicts" in screen_text(app)
            await pilot.press("a", "2")
            assert len(cards_screen(app).session.rows) == 41

    async def test_next_profile(self) -> None:
        app = make_app(named("first"), named("second"))
        async with app.run_test(size=SMALL) as pilot:
            assert "first · transformers" in screen_text(app)
            await pilot.press("right", "p")
            text = screen_text(app)
            assert "second · transformers" in text
            assert "context 1k + 4 new x 4 at once" in text
            assert "profile 2 of 2" in text
            await pilot.press("p")
            assert "first · transformers" in screen_text(app)

    async def test_next_profile_is_not_offered_for_one(self) -> None:
        app = make_app()
        async with app.run_test(size=WIDE) as pilot:
            assert "p profile" not in screen_text(app)
            await pilot.press("p")
            assert cards_screen(app).session.state.profile == 0

    async def test_help(self) -> None:
        app = make_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("question_mark")
            assert isinstance(app.screen, HelpScreen)
            assert "ctrl+z back to the shell for now; `fg` goes on here" in screen_text(app)
            await pilot.press("end")
            assert "sequences held at the same time" in screen_text(app)
            await pilot.press("escape")
            assert cards_screen(app)
            await pilot.press("question_mark", "question_mark")
            assert cards_screen(app)

    async def test_details_take_the_screen_and_give_it_back(self) -> None:
        app = make_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("down", "d")
            assert app.focused is app.screen.query_one(Details)
            assert not app.screen.query_one(CardList).display
            assert "binds driver context in prefill" in screen_text(app)
            await pilot.press("end")
            assert "offer book" in screen_text(app)
            await pilot.press("right")
            assert cards_screen(app).session.state.shape.context_tokens == 1024
            await pilot.press("escape")
            assert app.focused is app.screen.query_one(CardList)
            await pilot.press("down")
            assert cards_screen(app).session.state.selected == 2

    async def test_tab_scrolls_the_details_beside_the_list(self) -> None:
        app = make_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("tab", "j", "j")
            await pilot.pause()
            assert cards_screen(app).session.state.selected == 0
            assert app.screen.query_one(Details).scroll_offset.y == 2
            await pilot.press("tab", "j")
            assert cards_screen(app).session.state.selected == 1

    @pytest.mark.parametrize("key", ["q", "ctrl+c"])
    @pytest.mark.parametrize("before", [[], ["question_mark"], ["d"]])
    async def test_quit(self, key: str, before: list[str]) -> None:
        app = make_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press(*before, key)
            await pilot.pause()
            assert not app.is_running

    async def test_a_click_selects_a_card(self) -> None:
        app = make_app()
        async with app.run_test(size=WIDE) as pilot:
            await pilot.click(CardList, offset=(10, 5))
            assert cards_screen(app).session.state.selected == 5


class TestScenariosWithoutAnAnswer:
    async def test_a_position_limit_is_its_own_line(self) -> None:
        app = make_app(named("short", position_limit=2))
        async with app.run_test(size=SMALL) as pilot:
            assert "short takes at most 2 tokens (its own position limit, not memory)" in screen_text(app)
            await pilot.press("right", "plus", "down", "s", "f", "d", "d", "r")
            assert "no answer" in screen_text(app)

    async def test_a_profile_without_a_model_answers_only_what_it_measured(self) -> None:
        app = make_app(make_loaded(make_profile(memory_model=None)))
        async with app.run_test(size=SMALL) as pilot:
            assert "t4-16gb" in screen_text(app)
            await pilot.press("right")
            text = screen_text(app)
            assert "the profile has too few measured cells (6) to answer" in text
            assert "r: back to the first scenario" in text
            assert "t4-16gb" not in text
            await pilot.press("r")
            assert "t4-16gb" in screen_text(app)


class TestProblems:
    async def test_no_profile_says_how_to_make_one_and_stays(self) -> None:
        app = GpufitApp(Session((), CATALOG, OFFERS))
        async with app.run_test(size=SMALL) as pilot:
            assert "gpufit profile MODEL" in screen_text(app)
            await pilot.press(
                "right", "plus", "down", "s", "escape", "question_mark", "escape", "p", "r", "d", "tab", "b"
            )
            assert "gpufit profile MODEL" in screen_text(app)
            await pilot.press("q")
            await pilot.pause()
            assert not app.is_running

    async def test_an_unreadable_profile_is_a_line_and_the_others_stay(self) -> None:
        app = make_app(problems=["profiles/bad.json: not a profile (not whole JSON)"])
        async with app.run_test(size=SMALL):
            text = screen_text(app)
            assert "! profiles/bad.json: not a profile (not whole JSON)" in text
            assert "t4-16gb" in text

    async def test_words_in_brackets_are_not_markup(self) -> None:
        card = msgspec.structs.replace(CATALOG.cards[0], name="Card [b]48[/] GB")
        catalog = msgspec.structs.replace(CATALOG, cards=(card, *CATALOG.cards[1:]))
        app = GpufitApp(Session((named("model[bold]"),), catalog, OFFERS, ["[red]x: no"]))
        async with app.run_test(size=WIDE):
            text = screen_text(app)
            assert "model[bold]" in text
            assert "Card [b]48[/] GB" in text
            assert "[red]x: no" in text


class TestResize:
    async def test_columns_follow_the_width(self) -> None:
        app = make_app()
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("end")
            assert "evidence" in screen_lines(app)[5]
            for width, height in ((80, 24), (40, 10), (20, 4), (160, 48)):
                await pilot.resize_terminal(width, height)
                await pilot.pause()
                assert {len(line) for line in screen_lines(app)} == {width}
            assert "evidence" in screen_lines(app)[5]
            assert any(line.startswith(f" {POINTER} {CATALOG.cards[-1].id}") for line in screen_lines(app))

    async def test_the_heading_stays_above_its_column(self) -> None:
        app = make_app()
        async with app.run_test(size=WIDE) as pilot:
            await pilot.resize_terminal(100, 30)
            await pilot.pause()
            lines = screen_lines(app)
            heading = next(line for line in lines if "▾" in line)
            assert lines[lines.index(heading) + 1].index("│") == heading.index("▾")
