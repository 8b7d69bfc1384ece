"""The question: typed, by sliders; search and filters; every key does something on the screens that name it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.command import CommandPalette
from textual.widgets import Input
from tui_builders import CATALOG, cards_screen, make_app, named, screen_lines, screen_text

from gpufit.memory.terms import Shape
from gpufit.tui.listing import MEMORY_STEPS
from gpufit.tui.renderables.slider import VALUE_WIDTH, place_of, rail_width, slider, stops, value_at
from gpufit.tui.screens.ask import AskScreen
from gpufit.tui.state import Axis
from gpufit.tui.widgets.slider import Slider

SMALL, WIDE = (80, 24), (160, 48)


class TestSlider:
    def test_stops_are_powers_of_two_and_halfway_between_and_the_limit(self) -> None:
        assert stops(13) == (1, 2, 3, 4, 6, 8, 12, 13)
        assert stops(1) == (1,)

    @given(st.integers(1, 2**24), st.integers(2, 80))
    def test_ends_of_the_rail_are_one_and_the_limit(self, limit: int, width: int) -> None:
        assert value_at(0, limit, width) == 1
        assert value_at(width - 1, limit, width) == limit
        assert place_of(1, limit, width) == 0
        assert place_of(limit, limit, width) == (width - 1 if limit > 1 else 0)

    @given(st.integers(1, 2**24), st.integers(3, 80), st.data())
    def test_a_place_and_its_value_belong_together(self, limit: int, width: int, data: st.DataObject) -> None:
        value = data.draw(st.sampled_from(stops(limit)))
        place = place_of(value, limit, width)
        assert 0 <= place < width
        if len(stops(limit)) <= width:  # room for a cell a stop
            assert value_at(place, limit, width) == value

    @given(st.integers(1, 200_000), st.integers(20, 80))
    def test_it_is_as_wide_as_asked(self, value: int, width: int) -> None:
        line = slider("context", value, 200_000, "196608", width).plain
        assert len(line) == width == len("context ") + rail_width("context", "196608", width) + VALUE_WIDTH

    @given(st.integers(20, 80))
    def test_a_long_value_takes_its_room_from_the_rail(self, width: int) -> None:
        line = slider("at once", 1_000_000, 1_000_000, "1,000,000", width).plain
        assert line.endswith("● 1,000,000")
        assert len(line) == max(width, len("at once ───  1,000,000") - 1)

    async def test_a_click_and_a_drag_ask(self) -> None:
        app = make_app()
        async with app.run_test(size=WIDE) as pilot:
            context = app.screen.query_one(f"#slider-{Axis.CONTEXT}", Slider)
            await pilot.click(context, offset=(len("context "), 0))
            assert cards_screen(app).session.state.shape.context_tokens == 1
            end = len("context ") + rail_width("context", "512", context.size.width) - 1
            await pilot.mouse_down(context, offset=(10, 0))
            await pilot.hover(context, offset=(end, 0))
            await pilot.mouse_up(context, offset=(end, 0))
            assert cards_screen(app).session.state.shape == Shape(32_765, 4, 4)
            await pilot.hover(context, offset=(10, 0))
            assert cards_screen(app).session.state.shape == Shape(32_765, 4, 4), "let go"
            await pilot.click(f"#slider-{Axis.CONCURRENCY}", offset=(len("at once "), 0))
            assert cards_screen(app).session.state.shape == Shape(32_765, 4, 1)


class TestTyped:
    @pytest.mark.parametrize(
        ("typed", "shape"),
        [
            ("700x9", Shape(700, 4, 9)),
            ("1kx2+128", Shape(1024, 128, 2)),
            ("2K\u00d73+1", Shape(2048, 1, 3)),
            ("8k", Shape(8192, 4, 4)),
        ],
    )
    async def test_what_is_typed_is_asked(self, typed: str, shape: Shape) -> None:
        app = make_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("g")
            app.screen.query_one(Input).value = typed
            await pilot.press("enter")
            assert cards_screen(app).session.state.shape == shape

    @pytest.mark.parametrize(
        ("typed", "said"),
        [
            ("", "not of the form"),
            ("8k+", "not of the form"),
            ("0", "the context must be a whole number of at least 1"),
            ("0x1", "at least 1"),
            ("[bold][/nothing]", "[bold][/nothing]"),
        ],
    )
    async def test_what_cannot_be_read_is_said_and_can_be_mended_or_left(self, typed: str, said: str) -> None:
        app = make_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("g")
            app.screen.query_one(Input).value = typed
            await pilot.press("enter")
            assert isinstance(app.screen, AskScreen)
            assert said in screen_text(app)
            await pilot.press("escape")
            assert cards_screen(app).session.state.shape == Shape(512, 4, 4)

    async def test_more_than_the_model_takes_is_answered_in_words_and_new_tokens_move_the_limit(self) -> None:
        app = make_app()
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("g")
            app.screen.query_one(Input).value = "32768x1+129"
            await pilot.press("enter")
            assert "takes at most 32768 tokens" in screen_text(app)
            await pilot.press("left", "right", "right")
            # The last of 129 new tokens needs no position: 32,768 - 128.
            assert cards_screen(app).session.state.shape == Shape(32_640, 129, 1)

    @pytest.mark.parametrize("size", [SMALL, WIDE])
    async def test_what_is_kept_stands_where_it_is_typed_and_in_a_question_without_answer(
        self, size: tuple[int, int]
    ) -> None:
        app = make_app()
        async with app.run_test(size=size) as pilot:
            await pilot.press("g")
            app.screen.query_one(Input).value = "8kx1000000+200k"
            await pilot.press("enter")
            assert "context 8k + 200k new x 1,000,000 at once: no answer" in screen_text(app)
            assert screen_text(app).count("1,000,000") > 1, "beside its slider, too"
            await pilot.press("g")
            assert "8kx16 leaves the new ones at 200k" in screen_text(app)

    async def test_letters_are_letters_while_typing(self) -> None:
        app = make_app(named("one"), named("two"))
        async with app.run_test(size=SMALL) as pilot:
            await pilot.press("slash", *"q1sprT?")
            screen = cards_screen(app)
            assert screen.session.state.listing.search == "q1sprT?"
            assert screen.session.state.profile == 0


class TestListing:
    async def test_search_lists_as_one_types_and_escape_lists_all(self) -> None:
        app = make_app()
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("slash", *"H100 sx")
            ids = [row.card for row in cards_screen(app).session.rows]
            assert ids == [card.id for card in CATALOG.cards if card.id.startswith("h100-sxm")]
            assert "showing 'H100 sx'" in screen_text(app)
            assert screen_lines(app)[-1].split() == ["esc", "leave"], "every other key is a letter now"
            await pilot.press("enter", "down")
            assert cards_screen(app).session.state.selected == 1
            assert "f filter" in screen_lines(app)[-1]
            await pilot.press("escape")
            assert len(cards_screen(app).session.rows) == 41

    async def test_brand_form_and_size(self) -> None:
        app = make_app()
        async with app.run_test(size=WIDE) as pilot:
            await pilot.press("b", "b")
            assert {row.card for row in cards_screen(app).session.rows} == {
                card.id for card in CATALOG.cards if card.vendor == "AMD"
            }
            await pilot.press("b", "o")
            forms = {card.form_factor for card in CATALOG.cards if card.id in cards_screen(app).session.state.cards}
            assert all(form is not None and form.startswith("PCIe") for form in forms)
            await pilot.press("m")
            assert f"PCIe, {MEMORY_STEPS[1]} GB or more" in screen_text(app)
            await pilot.press(*["m"] * (len(MEMORY_STEPS) - 1), *["o"] * 4)
            assert len(cards_screen(app).session.rows) == 41


async def test_every_command_of_the_palette_does_what_its_key_does() -> None:
    app = make_app(named("one"), named("two"))
    async with app.run_test(size=WIDE) as pilot:
        commands = {one.title: one.callback for one in app.get_system_commands(app.screen)}
        assert {"Halve the context", "Double the context", "Light or dark", "Quit"} <= set(commands)
        await commands["Double the context"]()
        assert cards_screen(app).session.state.shape == Shape(1024, 4, 4)
        await commands["Light or dark"]()
        assert not app.current_theme.dark
        await commands["List: any brand, or one vendor's cards"]()
        assert cards_screen(app).session.state.listing.vendor == CATALOG.cards[0].vendor
        await commands["The next profile, at the same scenario"]()
        assert cards_screen(app).session.state.profile == 1
        await pilot.press("ctrl+p")
        assert isinstance(app.screen, CommandPalette)
        await pilot.press("escape")
        await commands["Quit"]()
        await pilot.pause()
        assert not app.is_running
