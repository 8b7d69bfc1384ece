"""What the run screen draws, as strings: status, grid, parts, outcomes."""

from __future__ import annotations

import pytest
from builders import make_cell
from run_scripts import FAILED, OUT_OF_MEMORY, REQUEST, SKIPPED, began, ended, measured, started
from tui_builders import plain

from gpufit.profile.cells import Failed
from gpufit.profile.peaks import Parts
from gpufit.report.cells import PART_TITLES
from gpufit.report.run_text import cell_line
from gpufit.sources.measure.events import Interrupted, Now, RoundBegan, RunEvent, RunRequest
from gpufit.sources.measure.protocol import Simulation
from gpufit.sources.measure.request import ProfileRequest
from gpufit.tui import run_state
from gpufit.tui.renderables.form import choice, command_line, field_title
from gpufit.tui.renderables.palette import GROUPS
from gpufit.tui.renderables.run import (
    CELL_WORDS,
    cells_section,
    duration,
    outcome_lines,
    parts_bar,
    parts_section,
    progress,
    status,
)
from gpufit.tui.run_state import CellState, RunState


def after(*events: RunEvent, request: RunRequest = REQUEST) -> RunState:
    state = run_state.begin(request, 0.0)
    for event in events:
        state = run_state.apply(state, event, 0.0)
    return state


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1.0, "0 s"), (59.9, "59 s"), (125, "2 min 05 s"), (3599, "59 min 59 s"), (3600 + 3 * 60, "1 h 03 min")],
)
def test_a_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("done", "total", "bar"),
    [(0, 4, "[--------] 0 of 4 cells"), (1, 4, "[██------] 1 of 4 cells"), (4, 4, "[████████] 4 of 4 cells")],
)
def test_progress_is_a_share_of_the_bar(done: int, total: int, bar: str) -> None:
    assert progress(done, total, len(bar)).plain == bar


def test_more_cells_than_were_wanted_do_not_draw_beyond_the_bar() -> None:
    assert progress(5, 4, 23).plain == "[████████] 5 of 4 cells"


class TestStatus:
    def test_says_the_cell_how_long_it_takes_and_what_the_round_is_for(self) -> None:
        state = after(started(), RoundBegan(purpose="6 cells pin the growth, 2 test it", total=8), began(512, 2))
        assert status(state, 75.0, 40).plain.splitlines()[0] == "running: context 512 x 2  1 min 15 s"
        assert "adaptive: 6 cells pin the growth, 2 test it" in status(state, 75.0, 40).plain

    def test_what_names_its_own_stage_is_said_once(self) -> None:
        state = after(Now(text="loading the model"))
        assert status(state, 9.0, 80).plain.splitlines()[0] == "loading the model  9 s"

    def test_before_the_first_run_it_says_how_to_begin(self) -> None:
        lines = status(RunState(), 0.0, 80).plain.splitlines()
        assert lines[0] == "nothing runs"
        assert "ctrl+s starts" in lines[1]

    def test_a_run_on_fake_tensors_says_that_it_starts_again(self) -> None:
        request = RunRequest(profile=ProfileRequest(model="m", simulation=Simulation()))
        assert "u starts it again from the beginning" in status(after(Interrupted(), request=request), 0.0, 80).plain


class TestGrid:
    STATE = after(
        started(),
        measured(128, 1),
        ended(512, 2, OUT_OF_MEMORY),
        ended(512, 4, SKIPPED),
        ended(128, 4, FAILED),
        began(512, 1),
    )

    def test_a_field_for_every_cell(self) -> None:
        lines = [line.split() for line in plain(cells_section(self.STATE, 30), 30).splitlines()]
        assert ["context", "x", "1", "x", "2", "x", "4"] in lines
        assert ["128", "✓", "·", "!"] in lines
        assert ["512", "▸", "✗mem", "-"] in lines

    def test_sizes_where_there_is_room(self) -> None:
        # Weights, buffers, cache, inputs, logits, activations, temporaries of builders.py in prefill of 128 tokens.
        size = 256_000_000 + 4_000 + 128 * (20_000 + 16 + 3_000 + 2_000) + 100_000 + 1_000_000
        assert f"✓ {size / 2**20:.1f} MiB" in plain(cells_section(self.STATE, 80), 80)

    def test_the_title_speaks_of_peaks_only_where_they_are(self) -> None:
        # Three numbers at once: 9 cells for the contexts and 15 for each of the fields.
        assert "Cells, each with its highest peak" in plain(cells_section(self.STATE, 54), 80)
        narrow = plain(cells_section(self.STATE, 53), 80)
        assert "Cells" in narrow
        assert "peak" not in narrow
        assert "MiB" not in narrow

    def test_the_legend_has_the_signs_that_are_there(self) -> None:
        text = plain(cells_section(self.STATE, 30), 90)
        assert all(f"{sign} {CELL_WORDS[sign]}" in text for sign in CellState)
        assert "out of memory" not in plain(cells_section(after(started(), measured(128, 1)), 30), 90)

    def test_evidence_stands_beside_the_figures(self) -> None:
        assert "● measured" in plain(cells_section(self.STATE, 30))
        assert "● measured" in plain(parts_section(self.STATE))
        assert "● measured" in plain(outcome_lines(self.STATE, 80)).splitlines()[0]


class TestParts:
    def test_the_parts_are_those_of_the_cell_and_add_up(self) -> None:
        state = after(started(), measured(128, 1))
        text = plain(parts_section(state), 60)
        assert "Parts at the peak: context 128 x 1" in text
        # Prefill of 128 tokens: the cache takes 20,000 B a token, what is kept of activations 3,000.
        assert f"{20_000 * 128 / 2**20:.1f} MiB" in text
        assert f"{3_000 * 128 / 2**20:.1f} MiB" in text
        for name in ("weights_bytes", "kv_cache_bytes", "activations_bytes", "temporaries_bytes"):
            assert PART_TITLES[name] in text
        assert "driver context" not in text

    def test_before_the_first_cell_they_are_those_of_loading(self) -> None:
        assert "Parts at the peak: loading" in plain(parts_section(after(started())), 60)

    @pytest.mark.parametrize("width", [8, 32])
    def test_a_bar_is_as_long_as_its_share_and_in_the_order_of_the_groups(self, width: int) -> None:
        fills = [group.fill for group in GROUPS]
        full = Parts(weights_bytes=400, kv_cache_bytes=300, temporaries_bytes=300)
        bar = parts_bar(full, 1000, width).plain
        assert len(bar) == width
        assert [fills.index(sign) for sign in bar] == sorted(fills.index(sign) for sign in bar)
        assert set(bar) == {fills[0], fills[1], fills[3]}
        assert len(parts_bar(full, 2000, width).plain) == width // 2
        assert parts_bar(Parts(), 0, width).plain == ""

    def test_every_part_inside_the_allocator_is_drawn(self) -> None:
        for name in Parts.NAMES:
            assert parts_bar(Parts(**{name: 100}), 100, 10).plain.strip(), name


class TestOutcomes:
    def test_the_last_one_first_in_the_commands_own_words(self) -> None:
        state = after(started(), measured(128, 1), ended(512, 2, OUT_OF_MEMORY))
        lines = [line.rstrip() for line in plain(outcome_lines(state, 150), 150).splitlines()]
        assert lines[1].split(maxsplit=1) == ["✗mem", cell_line(ended(512, 2, OUT_OF_MEMORY).cell)]
        assert lines[2].split(maxsplit=1) == ["✓", cell_line(make_cell(128, 1))]

    @pytest.mark.parametrize("width", range(40, 80))
    def test_no_figure_loses_its_unit(self, width: int) -> None:
        text = plain(outcome_lines(after(started(), measured(128, 1)), width), width)
        lines = [line.split() for line in text.splitlines()]
        assert not any(line and line[0] in ("s", "MiB") for line in lines), text

    def test_past_a_few_it_says_how_many_more(self) -> None:
        state = after(started(), *(measured(100 + number, 1) for number in range(15)))
        assert "and 3 before" in plain(outcome_lines(state, 150, 12), 150)

    def test_words_in_brackets_are_not_markup(self) -> None:
        failed = Failed(error="RuntimeError: [bold]x[/] and more")
        assert "[bold]x[/]" in plain(outcome_lines(after(started(), ended(128, 1, failed)), 150), 150)


def test_a_form_reads_without_colour() -> None:
    assert choice("auto", False).plain == "< auto >"
    assert field_title("context", True).plain == "! context"
    assert command_line("gpufit profile m", "").plain == "$ gpufit profile m"
    assert command_line("gpufit profile m", "no").plain == "! no\n$ gpufit profile m"
