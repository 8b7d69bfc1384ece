"""Growth, Precision and Time: what they draw at three widths, their keys, and the command line's own words."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from builders import make_layout, make_memory_model, make_profile
from model_files import REPOSITORY
from textual.containers import VerticalScroll
from textual_plotext import Plot
from tui_builders import make_app, make_loaded, plain, screen_lines, screen_text

from gpufit.cli.main import main
from gpufit.flows_curve import growth, precision, times
from gpufit.memory.held import Cache, Held, Weights
from gpufit.profile.evidence import Evidence
from gpufit.report.growth import GrowthDocument
from gpufit.report.summary import growth_sentence, precision_lines
from gpufit.report.times import NEVER_CARRIED
from gpufit.tui.loaded import LoadedProfile, read_profiles
from gpufit.tui.renderables.curve import paint
from gpufit.tui.renderables.growth import growth_picture
from gpufit.tui.renderables.precision import switches
from gpufit.tui.renderables.times import HEADERS, times_head, times_table
from gpufit.tui.screens.page import PageScreen
from gpufit.tui.state import View

SIZES = [(80, 24), (120, 40), (200, 60)]
FACTS = REPOSITORY / "tests" / "facts" / "profiles"


def real(name: str) -> LoadedProfile:
    """A recorded run."""
    (found,), _, problems = read_profiles([FACTS / name])
    assert problems == []
    return found


SMOLLM2, GEMMA3 = "SmolLM2-135M-Instruct.Q4_1.json", "architectures/gemma3.json"


def growth_of(loaded: LoadedProfile) -> GrowthDocument:
    app = make_app(loaded)
    assert app.session.document is not None
    return growth(loaded.profile, app.session.document)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("key", ["4", "5", "6"])
@pytest.mark.parametrize("name", [SMOLLM2, GEMMA3])
async def test_each_page_fills_the_screen_and_no_more(name: str, key: str, size: tuple[int, int]) -> None:
    app = make_app(real(name))
    async with app.run_test(size=size) as pilot:
        await pilot.press(key)
        await pilot.pause()
        assert isinstance(app.screen, PageScreen)
        lines = screen_lines(app)
        assert {len(line) for line in lines} == {size[0]}
        assert "measured" in screen_text(app)
        assert "…" not in "".join(lines[6:-1]), "nothing is cut"


class TestKeys:
    async def test_scroll(self) -> None:
        app = make_app(real(GEMMA3))
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("4")
            await pilot.pause()
            page = app.screen.query_one("#page", VerticalScroll)
            for keys, at in ((["down", "j"], 2), (["up"], 1), (["k"], 0), (["pagedown"], page.size.height)):
                await pilot.press(*keys)
                await pilot.pause()
                assert page.scroll_offset.y == min(at, page.max_scroll_y)
            await pilot.press("end")
            assert page.scroll_offset.y == page.max_scroll_y > 2
            await pilot.press("pageup", "home")
            assert page.scroll_offset.y == 0

    @pytest.mark.parametrize("key", ["4", "5", "6"])
    async def test_the_question_and_the_switches_change_it(self, key: str) -> None:
        app = make_app(make_loaded(make_profile(layout=make_layout())))
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press(key, "right", "w", "v")
            assert app.session.state.shape.context_tokens == 1024
            assert app.session.state.held == Held(weights=Weights.FP8, kv_cache=Cache.FP8)
            assert "if weights FP8 and KV cache FP8" in screen_text(app)

    async def test_a_click_on_a_position_switches(self) -> None:
        app = make_app(make_loaded(make_profile(layout=make_layout())))
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("5")
            await pilot.pause()
            await pilot.click("#switches", offset=(5, 4))
            assert app.session.state.held == Held(weights=Weights.FP8)
            await pilot.click("#switches", offset=(5, 3))  # 16-bit does not apply
            assert app.session.state.held == Held(weights=Weights.FP8)
            await pilot.click("#switches", offset=(5, 2))
            assert app.session.state.held.as_profiled


class TestGrowth:
    async def test_says_what_the_command_line_says(self, capsys: pytest.CaptureFixture[str]) -> None:
        main(["fit", str(FACTS / GEMMA3), "--card", "t4"])
        printed = " ".join(capsys.readouterr().out.split())
        app = make_app(real(GEMMA3))
        async with app.run_test(size=(100, 40)) as pilot:
            await pilot.press("4")
            await pilot.pause()
            document = app.session.document
            assert document is not None
            assert document.kv_cache_growth is not None
            sentence = growth_sentence(document.kv_cache_growth)
            assert sentence in printed
            assert f"{sentence} ● measured" in screen_text(app)
            assert "384 tokens: the window that sliding layers see" in screen_text(app)

    @pytest.mark.parametrize(("width", "height"), [(76, 16), (56, 24), (96, 24)])
    def test_the_knee_stands_where_the_slope_changes(self, width: int, height: int) -> None:
        found = growth_picture(growth_of(real(GEMMA3)), width, height)
        assert found is not None
        knee = next(one for one in found.strokes if one.marker == "◆")
        line = next(one for one in found.strokes if one.marker == "braille")
        at = line.xs.index(384)
        before = (line.ys[at] - line.ys[at - 1]) / (line.xs[at] - line.xs[at - 1])
        after = (line.ys[at + 1] - line.ys[at]) / (line.xs[at + 1] - line.xs[at])
        # 1,280 B a token more up to the knee, on 256 B at any length
        assert (before, after, knee.xs, knee.ys) == (1_536, 256, (384,), (line.ys[at],))
        plot = Plot()
        plot.plotsize(width, height)
        plot._set_size(width, height)  # as the widget does: `plotsize` stops at the terminal of whoever runs the tests
        paint(plot, found)
        lines = re.sub(r"\x1b\[[0-9;]*m", "", plot.build()).rstrip("\n").split("\n")
        assert (len(lines), max(map(len, lines))) == (height, width)
        assert "◆" in "".join(lines)
        assert "knee" in "".join(lines)

    async def test_without_a_cache_there_is_no_plot(self) -> None:
        app = make_app(real("all-MiniLM-L6-v2.json"))
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("4")
            await pilot.pause()
            text = screen_text(app)
            assert "all-MiniLM-L6-v2 keeps no cache" in text
            assert "1 more sequence" in text
            assert "┌" not in text


class TestTimesHead:
    def test_names_no_device_where_nothing_ran(self) -> None:
        found = times(make_profile(evidence=Evidence.COMPUTED, cells=()), "p.json")
        assert times_head(found).plain.startswith("no times\n")
        assert "nothing ran: the profile is computed" in times_head(found).plain


class TestPrecision:
    @pytest.mark.parametrize("width", [75, 64, 120])
    def test_each_line_of_a_switch_is_no_wider_than_asked(self, width: int) -> None:
        loaded = make_loaded(make_profile(layout=make_layout()))
        app = make_app(loaded)
        assert app.session.document is not None
        text, rows = switches(precision(loaded.profile, app.session.document), width)
        lines = text.plain.split("\n")
        assert len(lines) == len(rows)
        assert max(map(len, lines)) <= width
        assert lines[2].startswith("[x] as profiled ")
        assert lines[3].startswith(" -  16-bit      no weight is held in float32")
        assert lines[4].startswith("[ ] FP8 ")
        assert "↗ scaled" in lines[4]
        assert rows[4] == Held(weights=Weights.FP8)
        assert rows[3] is None

    @pytest.mark.parametrize(
        ("width", "titles"),
        [(40, "allocated evidence"), (64, "allocated evidence lower .. upper"),
         (75, "allocated evidence lower .. upper peak in")],
    )  # fmt: skip
    def test_a_title_stands_above_each_column_that_there_is_room_for(self, width: int, titles: str) -> None:
        loaded = make_loaded(make_profile(layout=make_layout()))
        document = make_app(loaded).session.document
        assert document is not None
        heading, _, line, *_ = switches(precision(loaded.profile, document), width)[0].plain.split("\n")
        assert " ".join(heading.split()) == titles
        assert heading.index("evidence") + 2 == line.index("measured")
        for title, cell in ((" .. ", " .. "), ("peak in", "prefill")):
            assert title not in heading or heading.index(title) == line.index(cell)

    async def test_shows_the_columns_as_found_and_as_switched(self, tmp_path: Path) -> None:
        loaded = make_loaded(make_profile(layout=make_layout()))
        app = make_app(loaded)
        async with app.run_test(size=(200, 60)) as pilot:
            await pilot.press("5")
            await pilot.pause()
            for line in precision_lines(loaded.profile.precision):
                assert " ".join(line.removeprefix("finding: ").split()) in screen_text(app)
            assert "as switched" not in screen_text(app)
            await pilot.press("w")
            await pilot.pause()
            text = screen_text(app)
            assert "as switched: worked out, never measured" in text
            assert "float8_e4m3fn 95.4 MiB, float16 53.4 MiB" in text  # 100,025,000 and 56,000,000 B
            assert "linear layers and experts at 8.002 bits" in text
            assert "compute 16-bit: it computed in float16 already" in text


class TestTime:
    async def test_shows_every_cell_and_that_speed_stays_here(self) -> None:
        loaded = real(SMOLLM2)
        app = make_app(loaded)
        async with app.run_test(size=(120, 40)) as pilot:
            await pilot.press("6")
            await pilot.pause()
            text = screen_text(app)
            assert NEVER_CARRIED in text
            assert "times on AMD EPYC" in text
            assert "256 8 1 0.123 s 0.293 s 3.409" in text
            assert text.count("● measured") == 1 + len(loaded.profile.measured_cells)
            assert any("▸" in line and "1536" in line for line in screen_lines(app)), (
                "the scenario's own cell is marked"
            )

    @pytest.mark.parametrize(("width", "columns"), [(75, 6), (115, 8), (195, 8)])
    def test_a_narrow_table_leaves_out_the_last_columns(self, width: int, columns: int) -> None:
        document = times(real(SMOLLM2).profile, "p.json")
        text = times_table(document, (256, 8, 1), width)
        heading = text.plain.split("\n")[0]
        assert all((header in heading) is (place < columns) for place, header in enumerate(HEADERS))
        assert max(map(len, plain(text, 300).rstrip().splitlines())) <= width

    async def test_where_nothing_ran_it_says_so(self) -> None:
        computed = make_profile(
            evidence=Evidence.COMPUTED, cells=(), memory_model=make_memory_model(untested=True), complete=True
        )
        load = msgspec.structs.replace(computed.load, evidence=Evidence.COMPUTED)
        app = make_app(make_loaded(msgspec.structs.replace(computed, load=load)))
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.press("6")
            await pilot.pause()
            assert "nothing ran: the profile is computed" in screen_text(app)
            assert app.screen.VIEW is View.TIME
