"""How a run's events change what is known of it, without Textual and without a process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

import msgspec
import pytest
from builders import make_cell, make_profile
from run_scripts import (
    FAILED,
    LOADING,
    OUT_OF_MEMORY,
    REQUEST,
    SKIPPED,
    began,
    ended,
    measured,
    started,
)

from gpufit.sources.estimate.request import EstimateRequest
from gpufit.sources.measure.events import (
    Crashed,
    Finished,
    Interrupted,
    Now,
    Refused,
    RoundBegan,
    RunEvent,
    RunRequest,
)
from gpufit.sources.measure.protocol import Simulation
from gpufit.sources.measure.request import ProfileRequest
from gpufit.tui import run_state
from gpufit.tui.run_state import CellState, RunState, Stage

FINISHED = Finished(output="profiles/tiny-llama.json")


def after(*events: RunEvent, request: RunRequest = REQUEST) -> RunState:
    """The state after these events, one a second from the tenth on."""
    state = run_state.begin(request, 10.0)
    for at, event in enumerate(events, 11):
        state = run_state.apply(state, event, float(at))
    return state


@pytest.mark.parametrize(
    ("events", "stage"),
    [
        ([], Stage.STARTING),
        ([LOADING], Stage.LOADING),
        ([LOADING, started()], Stage.RUNNING),
        ([LOADING, started(), began(128, 1)], Stage.RUNNING),
        ([LOADING, started(), began(128, 1), measured(128, 1)], Stage.RUNNING),
        ([LOADING, started(), FINISHED], Stage.FINISHED),
        ([Refused(reason="no", exit_code=2)], Stage.REFUSED),
        ([LOADING, Interrupted()], Stage.STOPPED),
        ([LOADING, started(), Crashed(reason="gone")], Stage.CRASHED),
    ],
)
def test_the_stage_follows_the_events(events: Sequence[RunEvent], stage: Stage) -> None:
    state = after(*events)
    assert state.stage is stage
    assert state.alive is (stage in run_state.ALIVE)


def test_before_the_first_run_nothing_is_alive_and_nothing_can_be_taken_up() -> None:
    state = RunState()
    assert not state.alive
    assert not state.may_stop
    assert run_state.again(state) is None
    assert state.peaks == ()
    assert run_state.grid_axes(state) == ((), ())


def test_every_event_is_known() -> None:
    assert set(get_args(RunEvent)) == set(run_state._CHANGES)


def test_cells_are_counted_as_they_end_and_timed_from_where_they_begin() -> None:
    state = after(LOADING, started(), began(128, 1))
    assert (state.done, state.total, state.since) == (0, 6, 13.0)
    assert state.current == began(128, 1).key
    state = after(LOADING, started(), began(128, 1), measured(128, 1), began(512, 1))
    assert (state.done, state.total, state.since) == (1, 6, 15.0)
    assert [cell.key for cell in state.cells] == [(128, 4, 1)]


def test_a_round_adds_to_what_is_wanted() -> None:
    state = after(started(total=4), RoundBegan(purpose="3 more cells", total=7))
    assert (state.purpose, state.total) == ("3 more cells", 7)


def test_a_cells_own_words_do_not_hide_the_cell() -> None:
    state = after(started(), began(128, 1), Now(text="context 128 x 1"))
    assert (state.now, state.since) == ("", 12.0)
    assert after(started(), began(128, 1), measured(128, 1), Now(text="fitting")).now == "fitting"


def test_the_parts_are_those_of_loading_and_then_of_the_cell_measured_last() -> None:
    assert after(started()).peaks == (make_profile().load,)
    state = after(started(), measured(128, 1), measured(512, 2), ended(512, 4, OUT_OF_MEMORY))
    assert state.peaks == make_cell(512, 2).outcome.phases  # type: ignore[union-attr]


def test_an_out_of_memory_is_a_cell_and_the_run_goes_on() -> None:
    state = after(started(), began(512, 2), ended(512, 2, OUT_OF_MEMORY), ended(512, 4, SKIPPED), ended(128, 4, FAILED))
    assert state.stage is Stage.RUNNING
    assert state.done == 3
    signs = {
        (context, count): run_state.cell_state(state, context, count)[0]
        for context in (128, 512)
        for count in (1, 2, 4)
    }
    assert signs == {
        (128, 1): CellState.WAITING,
        (128, 2): CellState.WAITING,
        (128, 4): CellState.FAILED,
        (512, 1): CellState.WAITING,
        (512, 2): CellState.OUT_OF_MEMORY,
        (512, 4): CellState.SKIPPED,
    }


def test_nothing_waits_any_longer_once_the_run_is_through() -> None:
    """An adaptive sweep leaves out the cells that it learns nothing from."""
    state = after(started(), measured(128, 1), FINISHED)
    assert run_state.cell_state(state, 512, 2) == (CellState.SKIPPED, None)
    assert run_state.cell_state(after(started(), Interrupted()), 512, 2) == (CellState.WAITING, None)


def test_signs_differ_without_colour() -> None:
    assert len({str(sign) for sign in CellState}) == len(CellState)


def test_the_cell_being_run_is_marked_until_the_run_has_ended() -> None:
    running = after(started(), began(128, 2))
    assert run_state.cell_state(running, 128, 2)[0] is CellState.RUNNING
    gone = run_state.apply(running, Crashed(reason="gone"), 20.0)
    assert run_state.cell_state(gone, 128, 2)[0] is CellState.WAITING


def test_the_grid_has_the_workloads_fields_and_those_of_other_cells() -> None:
    assert run_state.grid_axes(after(started())) == ((128, 512), (1, 2, 4))
    assert run_state.grid_axes(after(started(), measured(64, 8))) == ((64, 128, 512), (1, 2, 4, 8))


def test_a_resumed_run_shows_the_earlier_cells_and_a_failed_one_is_replaced() -> None:
    earlier = (make_cell(128, 1), ended(512, 1, FAILED).cell)
    state = after(started(cells=earlier, done=1))
    assert (state.done, state.cells) == (1, earlier)
    state = after(started(cells=earlier, done=1), measured(512, 1))
    assert [cell.key for cell in state.cells] == [(128, 4, 1), (512, 4, 1)]
    assert run_state.cell_state(state, 512, 1)[0] is CellState.MEASURED


class TestStop:
    @pytest.mark.parametrize("events", [[], [LOADING], [LOADING, started(), began(128, 1)]])
    def test_asked_to_end_it_stays_so_until_it_has(self, events: list[RunEvent]) -> None:
        state = run_state.stop_asked(after(*events))
        assert (state.stage, state.alive, state.may_stop) == (Stage.STOPPING, True, False)
        for event in (LOADING, started(), began(128, 2), measured(128, 2)):
            state = run_state.apply(state, event, 20.0)
            assert state.stage is Stage.STOPPING
        assert (128, 4, 2) in {cell.key for cell in state.cells}, "a cell that still ended is kept"
        assert run_state.apply(state, Interrupted(), 21.0).stage is Stage.STOPPED
        assert run_state.apply(state, FINISHED, 21.0).stage is Stage.FINISHED

    def test_what_has_ended_is_not_stopped_and_hears_nothing_more(self) -> None:
        state = after(started(), FINISHED)
        assert run_state.stop_asked(state) is state
        assert run_state.apply(state, measured(128, 1), 20.0) is state


class TestAgain:
    @pytest.mark.parametrize("last", [Interrupted(), Crashed(reason="gone"), Refused(reason="no cell", exit_code=4)])
    def test_a_run_on_a_device_goes_on(self, last: RunEvent) -> None:
        request = RunRequest(profile=ProfileRequest(model="m", contexts=(128,), force=True))
        found = run_state.again(after(started(), last, request=request))
        assert found == RunRequest(profile=ProfileRequest(model="m", contexts=(128,), resume=True))

    @pytest.mark.parametrize(("events", "force"), [([], False), ([started()], True)])
    def test_one_on_fake_tensors_starts_again_over_what_it_wrote_itself(
        self, events: list[RunEvent], force: bool
    ) -> None:
        asked = ProfileRequest(model="m", simulation=Simulation())
        found = run_state.again(after(*events, Interrupted(), request=RunRequest(profile=asked)))
        assert found == RunRequest(profile=replace(asked, force=force))

    def test_an_estimate_is_asked_for_once_more(self) -> None:
        request = RunRequest(estimate=EstimateRequest(model="m"))
        assert run_state.again(after(LOADING, Interrupted(), request=request)) == request

    @pytest.mark.parametrize(
        "events", [[], [LOADING], [started(), FINISHED], [Refused(reason="no such model", exit_code=3)]]
    )
    def test_nothing_else_is_taken_up(self, events: list[RunEvent]) -> None:
        assert run_state.again(after(*events)) is None

    def test_the_request_itself_is_not_changed(self) -> None:
        state = after(started(), Interrupted())
        before = msgspec.structs.replace(REQUEST)
        run_state.again(state)
        assert state.request == before
