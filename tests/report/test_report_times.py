"""What each cell took, by arithmetic over cells of known inputs and seconds."""

from __future__ import annotations

import msgspec
import pytest
from builders import make_cell, make_profile

from gpufit.flows_curve import times
from gpufit.profile.cells import Cell, Failed, OutOfMemory, Skipped
from gpufit.profile.evidence import Evidence


def test_rates_are_counts_over_the_wall_time() -> None:
    """4 inputs of 512 prompt and 4 new tokens in 1.0 s, the first token after 0.5 s."""
    row = times(make_profile(cells=(make_cell(512, 4),)), "p.json").rows[0]
    assert (row.wall_seconds, row.time_to_first_token_seconds, row.inputs_completed) == (1.0, 0.5, 4)
    assert row.inputs_per_second == 4
    assert row.generated_tokens_per_second == 16
    assert row.prompt_tokens_per_second == 2048
    assert row.evidence is Evidence.MEASURED


def test_an_encoder_generates_nothing() -> None:
    cell = msgspec.structs.replace(make_cell(128, 2), new_tokens=0)
    row = times(make_profile(cells=(cell,)), "p.json").rows[0]
    assert row.generated_tokens_per_second is None
    assert row.prompt_tokens_per_second == 256


@pytest.mark.parametrize(
    ("outcome", "word"),
    [
        (OutOfMemory(phase=None, message="killed"), "out of memory"),
        (Failed(error="x"), "failed"),
        (Skipped(why="not needed"), "skipped"),
    ],
)
def test_a_cell_that_did_not_end_keeps_its_line_without_times(outcome: Skipped, word: str) -> None:
    cell = Cell(context_tokens=64, new_tokens=4, concurrency=1, outcome=outcome)
    document = times(make_profile(cells=(make_cell(512, 4), cell)), "p.json")
    first = document.rows[0]
    assert (first.context_tokens, first.outcome) == (64, word)
    assert {first.wall_seconds, first.inputs_per_second, first.inputs_completed, first.evidence} == {None}
    assert document.timed
    assert document.why_none == ""


def test_where_nothing_ran_it_says_so() -> None:
    document = times(make_profile(evidence=Evidence.COMPUTED, cells=()), "p.json")
    assert document.rows == ()
    assert document.why_none.startswith("nothing ran: the profile is computed, and only a run on a device takes time")
    untimed = make_cell(512, 4)
    untimed = msgspec.structs.replace(untimed, outcome=msgspec.structs.replace(untimed.outcome, wall_seconds=None))
    assert times(make_profile(cells=(untimed,)), "p.json").why_none == "no cell of this run was timed"
    simulated = times(make_profile(evidence=Evidence.SIMULATED, cells=(untimed,)), "p.json")
    assert simulated.why_none.startswith("nothing ran: the profile is simulated")
