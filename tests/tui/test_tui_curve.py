"""The curve: what is drawn where, and the screen under keys at three sizes."""

from __future__ import annotations

import math
import re

import msgspec
import pytest
from builders import make_profile
from textual_plotext import Plot
from tui_builders import CATALOG, OFFERS, make_app, make_loaded, plain, screen_lines, screen_text

from gpufit import flows
from gpufit.advice.curve import Axis
from gpufit.flows_curve import curve
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, OutOfMemory
from gpufit.profile.peaks import Phase
from gpufit.profile.record import Profile
from gpufit.report.curve import CurveDocument
from gpufit.report.curve_chart import ESTIMATE, FULL, PHASE_COLOURS, POSSIBLY, RAN, SURELY, size_tick
from gpufit.report.curve_text import crossing_cells, crossing_sentence
from gpufit.tui.renderables.crossings import crossings, legend
from gpufit.tui.renderables.curve import SELECTED_RAIL, Label, Picture, paint, picture, shown_cards
from gpufit.tui.renderables.plot_cells import PlotCells
from gpufit.tui.screens.curve import CurveScreen
from gpufit.tui.state import View

SIZES = [(80, 24), (120, 40), (200, 60)]
LISTED = [card.id for card in CATALOG.cards]
SELECTED = LISTED.index("a10-24gb")


def make_curve(axis: Axis = Axis.CONCURRENCY, profile: Profile | None = None) -> CurveDocument:
    profile = profile or make_profile()
    answer = flows.fit(profile, "p.json", Shape(512, 4, 4), CATALOG, OFFERS)
    return curve(profile, answer, axis, CATALOG)


def drawn(document: CurveDocument, width: int, height: int, selected: int = SELECTED) -> list[str]:
    near = shown_cards(document, LISTED, selected)
    return painted(picture(document, near, LISTED[selected], width, height), width, height)


def painted(found: Picture, width: int, height: int) -> list[str]:
    plot = Plot()
    plot.plotsize(width, height)
    plot._set_size(width, height)  # as the widget does: `plotsize` stops at the terminal of whoever runs the tests
    paint(plot, found)
    return re.sub(r"\x1b\[[0-9;]*m", "", plot.build()).rstrip("\n").split("\n")


class TestPicture:
    @pytest.mark.parametrize(("width", "height"), [(78, 14), (118, 22), (106, 48)])
    @pytest.mark.parametrize("axis", list(Axis))
    def test_fills_its_size_and_names_phases_cards_and_ticks(self, axis: Axis, width: int, height: int) -> None:
        lines = drawn(make_curve(axis), width, height)
        assert (len(lines), max(map(len, lines))) == (height, width)
        text = "\n".join(lines)
        for word in ("load", "prefill", "decode", "a10-24gb", "GiB", SELECTED_RAIL):
            assert word in text
        assert ("1k" if axis is Axis.CONTEXT else "256") in lines[-1]

    def test_the_marks_of_the_selected_card_stand_at_its_crossings(self) -> None:
        document = make_curve()
        card = document.cards[SELECTED]
        found = picture(document, shown_cards(document, LISTED, SELECTED), card.card, 118, 22)
        marks = {
            one.marker: one
            for one in found.strokes
            if not one.joined and one.ys == (math.log2(card.ceiling_bytes or 1),)
        }
        places = {SURELY: card.surely_up_to, ESTIMATE: card.estimate_up_to, POSSIBLY: card.possibly_up_to}
        assert {sign: mark.xs for sign, mark in marks.items()} == {
            sign: (math.log2(place or 1),) for sign, place in places.items()
        }
        rail = next(line for line in drawn(document, 118, 22) if SELECTED_RAIL in line)
        assert rail.index(SURELY) < rail.index(ESTIMATE) < rail.index(POSSIBLY)

    def test_the_decode_line_meets_the_ceiling_at_the_estimate(self) -> None:
        """The curve is of what is allocated and the ceiling of what a card leaves: they meet where the need does."""
        document = make_curve()
        card = document.cards[SELECTED]
        assert card.estimate_up_to is not None
        assert card.ceiling_bytes is not None
        # 512 tokens of 25,016 B and logits of 100,000 B a sequence, on 257,004,000 B
        allocated = 257_004_000 + card.estimate_up_to * 12_908_192
        assert allocated <= card.ceiling_bytes < allocated + 12_908_192

    def test_solid_within_what_was_run_and_dotted_beyond(self) -> None:
        found = picture(make_curve(), shown_cards(make_curve(), LISTED, SELECTED), "a10-24gb", 118, 22)
        lines = [one for one in found.strokes if one.marker == "braille" and one.colour == PHASE_COLOURS[Phase.PREFILL]]
        assert [one.joined for one in lines] == [True, False]
        assert (lines[0].xs[0], lines[0].xs[-1], lines[1].xs[0]) == (0, 2, 2)  # 1 to 4 sequences

    def test_a_run_and_one_out_of_memory_have_their_signs(self) -> None:
        out = Cell(context_tokens=512, new_tokens=4, concurrency=64, outcome=OutOfMemory(phase=None, message="killed"))
        profile = make_profile()
        document = make_curve(profile=msgspec.structs.replace(profile, cells=(*profile.cells, out)))
        text = "\n".join(drawn(document, 118, 22))
        assert RAN in text
        assert FULL in text
        assert "✗ out of memory" in plain(legend(document, None), 200)

    def test_other_ceilings_are_named_at_the_right_where_there_is_room(self) -> None:
        assert not any(line.rstrip().endswith("gb") for line in drawn(make_curve(), 78, 22))
        assert any(re.search(r"├\S+gb", line) for line in drawn(make_curve(), 118, 22))

    def test_no_card_in_the_list_leaves_the_lines(self) -> None:
        found = picture(make_curve(), (), None, 78, 14)
        assert {one.marker for one in found.strokes} == {"braille", "┊", "▁", RAN}

    def test_a_round_size_has_no_decimals(self) -> None:
        assert [size_tick(size) for size in (2**34, 3 * 2**29, 2**29)] == ["16 GiB", "1.5 GiB", "512 MiB"]

    @pytest.mark.parametrize(("width", "height"), [(78, 13), (118, 22)])
    @pytest.mark.parametrize("axis", list(Axis))
    def test_no_name_covers_a_crossing_or_another_name(self, axis: Axis, width: int, height: int) -> None:
        document = make_curve(axis)
        line = max(document.lines, key=lambda one: one.points[-1].allocated_bytes)
        for point in line.points:
            # A card whose ceiling the highest line reaches at this very place.
            figures = {"surely_up_to": point.at, "estimate_up_to": point.at, "possibly_up_to": point.at}
            changed = {"ceiling_bytes": point.allocated_bytes, **figures}
            card = msgspec.structs.replace(document.cards[SELECTED], **changed)
            changed_document = msgspec.structs.replace(document, cards=(card,), cells=(), limit=2**40)
            found = picture(changed_document, (card,), card.card, width, height)
            text = "\n".join(painted(found, width, height))
            assert ESTIMATE in text, f"{text}\n{point}"
            assert all(label.text.strip() in text for label in found.labels), text

    def test_cells_are_where_the_library_draws(self) -> None:
        labels = tuple(Label(x, y, "@", "white", "left") for x, y in ((0.0, 30.0), (5.0, 35.0), (10.0, 40.0)))
        ticks = ((30.0, "1 GiB"), (40.0, "512 GiB"))
        found = Picture((0.0, 10.0), (30.0, 40.0), ((0.0, "1"), (10.0, "2")), ticks, (), (), labels)
        lines = painted(found, 78, 14)
        cells = PlotCells((0.0, 10.0), (30.0, 40.0), len("512 GiB") + 1, 78 - 2, 14)
        # The bottom row inside the frame has the frame and the ticks below it.
        seen = {(len(lines) - 3 - at, line.index("@")) for at, line in enumerate(lines) if "@" in line}
        assert seen == {(cells.row(one.y), cells.column(one.x)) for one in labels}

    def test_without_an_estimate_there_is_no_crossing_and_no_bracket(self) -> None:
        document = make_curve(profile=make_profile(memory_model=None))
        card = document.cards[SELECTED]
        assert "no crossing is known" in crossing_sentence(document, card)
        found = picture(document, shown_cards(document, LISTED, SELECTED), card.card, 78, 14)
        assert not {SURELY, ESTIMATE, POSSIBLY} & {one.marker for one in found.strokes}


class TestTable:
    @pytest.mark.parametrize("width", [70, 90, 110])
    def test_shows_the_documents_cells_with_the_selected_card_marked(self, width: int) -> None:
        document = make_curve()
        text, window = crossings(document, LISTED, SELECTED, width, 8)
        lines = plain(text, 200).splitlines()
        assert len(window) == 7
        assert SELECTED in window
        for line, place in zip(lines[1:], window, strict=False):
            assert line.startswith("▸") is (place == SELECTED)
            cells = crossing_cells(document, document.cards[place])
            for at in (0, 3, 4, 5, 6):
                assert cells[at] in line
            assert cells[1][0] in line, "the verdict's sign never goes"

    @pytest.mark.parametrize(("axis", "unit"), [(Axis.CONTEXT, "tokens"), (Axis.CONCURRENCY, "sequences")])
    def test_says_what_it_counts_where_there_is_room(self, axis: Axis, unit: str) -> None:
        for width, named in ((110, True), (70, False)):
            heading = plain(crossings(make_curve(axis), LISTED, SELECTED, width, 8)[0], 200).splitlines()[0]
            assert (f"surely to, {unit}" in heading) is named
            assert "surely to" in heading

    def test_starts_and_ends_with_the_list(self) -> None:
        assert crossings(make_curve(), LISTED, 0, 110, 8)[1] == tuple(range(7))
        assert crossings(make_curve(), LISTED, 40, 110, 8)[1] == tuple(range(34, 41))
        assert crossings(make_curve(), LISTED[:2], 1, 110, 8)[1] == (0, 1)


class TestScreen:
    @pytest.mark.parametrize("size", SIZES)
    async def test_shows_plot_sentence_evidence_and_keys(self, size: tuple[int, int]) -> None:
        app = make_app()
        async with app.run_test(size=size) as pilot:
            await pilot.press("3", "x")
            await pilot.pause()
            assert isinstance(app.screen, CurveScreen)
            text = screen_text(app)
            document = make_curve()
            assert app.session.state.selected_card == "t4-16gb"
            assert f"{crossing_sentence(document, document.cards[0])} ↗ scaled" in text
            assert "measured from 1 to 4 (solid), scaled beyond (dotted)" in text
            assert "x axis" in text
            assert {len(line) for line in screen_lines(app)} == {size[0]}
            assert any("┌" in line for line in screen_lines(app))

    async def test_names_only_ceilings_of_cards_that_are_listed(self) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("slash", *"gh200", "enter", "3")
            await pilot.pause()
            named = set(re.findall(r"[a-z0-9-]+-\d+gb", screen_text(app)))
            assert named
            assert all(name.startswith("gh200") for name in named)

    async def test_the_legend_is_whole_on_the_smallest_screen(self) -> None:
        app = make_app()
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("3")
            for _ in range(6):
                assert "o a run's peak" in screen_text(app)
                await pilot.press("down")

    async def test_x_changes_the_axis_and_back(self) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("3")
            assert "against tokens of context" in screen_text(app)
            await pilot.press("x")
            assert "against sequences at once" in screen_text(app)
            await pilot.press("x")
            assert app.session.state.axis is Axis.CONTEXT

    @pytest.mark.parametrize(("keys", "place"), [(["down"], 1), (["j", "j"], 2), (["down", "up"], 0), (["j", "k"], 0)])
    async def test_moves_over_the_cards(self, keys: list[str], place: int) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("3", *keys)
            await pilot.pause()
            assert app.session.state.selected == place
            assert any(line.startswith(f" ▸ {LISTED[place]} ") for line in screen_lines(app))

    async def test_the_question_changes_it(self) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("3", "plus")
            assert app.session.state.shape.concurrency == 8
            assert "the whole curve is scaled: no cell was run along it" in screen_text(app)

    async def test_a_click_selects_a_card(self) -> None:
        app = make_app()
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("3")
            await pilot.pause()
            await pilot.click("#crossings", offset=(5, 4))
            assert app.session.state.selected == 3

    async def test_resizes(self) -> None:
        app = make_app()
        async with app.run_test(size=(200, 60)) as pilot:
            await pilot.press("3")
            for width, height in ((80, 24), (30, 8), (160, 30), (120, 40)):
                await pilot.resize_terminal(width, height)
                await pilot.pause()
                assert {len(line) for line in screen_lines(app)} == {width}

    async def test_without_an_answer_it_says_why(self) -> None:
        app = make_app(make_loaded(make_profile(memory_model=None)))
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("3", "right")
            assert "too few measured cells" in screen_text(app)
            await pilot.press("down", "x", "r")
            assert app.screen.VIEW is View.CURVE
