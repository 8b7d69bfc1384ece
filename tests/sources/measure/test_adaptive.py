"""Few cells first, and more only while those held out are missed."""

from __future__ import annotations

import pytest
from builders import make_cell
from hypothesis import given
from hypothesis import strategies as st

from gpufit.memory.fit import GOOD_ENOUGH, fit_memory_model
from gpufit.memory.terms import Knees
from gpufit.profile.cells import Cell, OutOfMemory
from gpufit.profile.peaks import Phase
from gpufit.profile.workload import Workload
from gpufit.sources.measure.adaptive import MORE_CELLS, first_cells, next_round
from gpufit.sources.measure.protocol import CellKey
from gpufit.sources.measure.sweep import ended, grid


def workload(contexts: tuple[int, ...], concurrencies: tuple[int, ...]) -> Workload:
    return Workload(
        contexts_tokens=contexts,
        concurrencies=concurrencies,
        new_tokens=8,
        seed=0,
        dtype_requested="auto",
        logits_kept="last",
    )


DEFAULT = workload((256, 512, 768, 1024, 1536), (1, 2, 4))
"""The default grid of nine cells."""
WIDE = workload((128, 256, 512, 1024, 2048, 4096), (1, 2, 4, 8))

axes = st.lists(st.integers(1, 10_000), unique=True, min_size=1, max_size=6).map(tuple)
steps = st.lists(st.integers(1, 12_000), max_size=2)


def pairs(cells: tuple[CellKey, ...]) -> list[tuple[int, int]]:
    return [(one.context_tokens, one.concurrency) for one in cells]


def measured(cells: tuple[CellKey, ...]) -> list[Cell]:
    return [make_cell(one.context_tokens, one.concurrency, one.new_tokens) for one in cells]


def held_out(cells: list[Cell]) -> float:
    """The worst held-out error as a campaign reads it from the fit."""
    model = fit_memory_model(cells, "sdpa", Knees())
    assert model is not None
    errors = [one.worst_held_out_growth_error for one in model.phases]
    assert None not in errors
    return max(error for error in errors if error is not None)


def test_the_first_round_of_the_default_grid_pins_three_contexts_and_tests_two_others() -> None:
    pins = {(context, count) for context in (256, 512, 1024) for count in (1, 4)}
    assert set(pairs(first_cells(DEFAULT, ()))) == pins | {(768, 2), (1536, 4)}
    assert next_round(DEFAULT, (), [], None).purpose == "6 cells pin the growth, 2 test it"


@pytest.mark.parametrize(
    ("contexts", "step", "tested"),
    [
        ((256, 512, 768, 1024, 1536, 2048), 1024, {768, 2048}),  # 1024 and 1536 pin what begins at 1024
        ((64, 256, 512, 768, 1024, 1536), 128, {768, 1536}),
        ((256, 512, 768, 1024, 1536, 4096, 6144, 8192), 4096, {1536, 8192}),
    ],
)
def test_what_begins_at_a_step_is_pinned_by_two_contexts_that_reach_it(
    contexts: tuple[int, ...], step: int, tested: set[int]
) -> None:
    cells = pairs(first_cells(workload(contexts, (1, 2, 4)), (step,)))
    assert {context for context in contexts if sum(context == one for one, _ in cells) == 1} == tested


def test_a_grid_of_few_contexts_is_pinned_and_tested_by_its_corners_and_its_middle() -> None:
    corners_and_middle = {(128, 1), (128, 4), (512, 2), (1024, 1), (1024, 2), (1024, 4)}
    # The three others are all as far from these, one doubling; the two smallest of them make eight.
    assert set(pairs(first_cells(workload((128, 512, 1024), (1, 2, 4)), ()))) == corners_and_middle | {
        (128, 2),
        (512, 1),
    }


def test_the_fit_holds_out_the_middle_and_the_largest_of_them() -> None:
    model = fit_memory_model(measured(first_cells(DEFAULT, ())), "sdpa", Knees())
    assert model is not None
    assert {(one.fitted_cells, one.held_out_cells) for one in model.phases} == {(6, 2)}


def test_cells_that_follow_a_straight_line_need_no_second_round() -> None:
    done = measured(first_cells(DEFAULT, ()))
    error = held_out(done)
    assert error <= GOOD_ENOUGH
    after = next_round(DEFAULT, (), done, error)
    assert after.cells == ()
    assert after.purpose.endswith("no need of the grid's other 7 cells")


def test_both_sides_of_a_step_are_among_the_first_cells() -> None:
    first = first_cells(WIDE, (512,))
    assert {(256, 1), (256, 8), (512, 1), (512, 8)} <= set(pairs(first))


@given(axes, axes, steps)
def test_the_first_round_lies_in_the_grid_and_is_large_enough_for_a_fit_to_hold_out(
    contexts: tuple[int, ...], concurrencies: tuple[int, ...], step: list[int]
) -> None:
    asked = workload(contexts, concurrencies)
    first = first_cells(asked, step)
    assert set(first) <= set(grid(asked))
    assert first == tuple(one for one in grid(asked) if one in set(first))
    assert len(first) >= min(6, len(grid(asked)))
    assert max(grid(asked), key=lambda one: (one.context_tokens, one.concurrency)) in first
    assert {min(contexts), max(contexts)} <= {one.context_tokens for one in first}
    assert {min(concurrencies), max(concurrencies)} <= {one.concurrency for one in first}


@given(axes, axes, steps, st.lists(st.one_of(st.none(), st.floats(0, 1)), min_size=40, max_size=40))
def test_whatever_the_errors_the_rounds_end_and_repeat_no_cell(
    contexts: tuple[int, ...], concurrencies: tuple[int, ...], step: list[int], errors: list[float | None]
) -> None:
    asked = workload(contexts, concurrencies)
    done: list[Cell] = []
    for error in errors:
        now = next_round(asked, step, done, error)
        if not now.cells:
            break
        assert not {one.key for one in done} & {(key.context_tokens, 8, key.concurrency) for key in now.cells}
        done += measured(now.cells)
    else:
        pytest.fail("more rounds than cells")
    if not all(error is not None and error <= GOOD_ENOUGH for error in errors):
        return
    assert len(done) == len(first_cells(asked, step))


@given(axes, axes, steps)
def test_errors_that_never_shrink_lead_to_the_whole_grid(
    contexts: tuple[int, ...], concurrencies: tuple[int, ...], step: list[int]
) -> None:
    asked = workload(contexts, concurrencies)
    done: list[Cell] = []
    while now := next_round(asked, step, done, 1.0).cells:
        assert not done or len(now) <= MORE_CELLS
        done += measured(now)
    assert sorted(cell.key for cell in done) == sorted((one.context_tokens, 8, one.concurrency) for one in grid(asked))


def test_the_cells_added_are_those_farthest_from_all_that_were_run() -> None:
    # Run are 128, 256, 512 and 2048 at 1 and 8, and 1024 x 4 and 4096 x 8 for the test. By logarithms to base 2 cell
    # (12, 1) is sqrt(2) from (11, 0), every other cell 1 from one that was run; of those the smallest follow.
    done = measured(first_cells(WIDE, ()))
    pins = {(context, count) for context in (128, 256, 512, 2048) for count in (1, 8)}
    assert {(cell.context_tokens, cell.concurrency) for cell in done} == pins | {(1024, 4), (4096, 8)}
    now = next_round(WIDE, (), done, 0.008)
    assert set(pairs(now.cells)) == {(4096, 2), (128, 2), (128, 4)}
    assert now.purpose == "held out 0.80% of what grows, more than 0.50%: 3 more cells"


def test_a_round_that_was_interrupted_goes_on_with_what_is_left_of_it() -> None:
    first = first_cells(DEFAULT, ())
    now = next_round(DEFAULT, (), measured(first[:4]), 0.9)
    assert now.cells == first[4:]
    assert now.purpose == "6 cells pin the growth, 2 test it"


def test_where_nothing_could_be_held_out_the_rest_of_the_grid_follows() -> None:
    first = first_cells(DEFAULT, ())
    done = [*measured(first[:-1]), ended(first[-1], OutOfMemory(phase=Phase.PREFILL, message="no"))]
    now = next_round(DEFAULT, (), done, None)
    assert pairs(now.cells) == [(256, 2), (768, 1), (512, 2), (1536, 1), (1024, 2), (768, 4), (1536, 2)]
    assert now.purpose == "no cell could be held out: 7 more cells, the rest of the grid"


def test_a_small_grid_is_run_whole_at_once() -> None:
    small = workload((128, 512), (1, 2))
    now = next_round(small, (), [], None)
    assert now.cells == grid(small)
    assert now.purpose == "4 cells in the grid: none to spare for a test"
    assert next_round(small, (), measured(now.cells), None).cells == ()
