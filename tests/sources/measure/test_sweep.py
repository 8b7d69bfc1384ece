from __future__ import annotations

import pytest
from builders import make_cell, make_profile
from hypothesis import given
from hypothesis import strategies as st

from gpufit.profile.cells import Cell, Failed, Outcome, OutOfMemory, Skipped
from gpufit.profile.peaks import Phase
from gpufit.profile.workload import Workload
from gpufit.sources.measure.protocol import CellKey
from gpufit.sources.measure.sweep import (
    MOST_FAILURES,
    ended,
    grid,
    remaining,
    settled,
    skipped_by_failures,
    skipped_by_limit,
    skipped_by_time,
)


def workload(contexts: tuple[int, ...], concurrencies: tuple[int, ...], new_tokens: int = 4) -> Workload:
    return Workload(
        contexts_tokens=contexts,
        concurrencies=concurrencies,
        new_tokens=new_tokens,
        seed=0,
        dtype_requested="auto",
        logits_kept="last",
    )


def key(context: int, concurrency: int, new_tokens: int = 4) -> CellKey:
    return CellKey(context_tokens=context, new_tokens=new_tokens, concurrency=concurrency)


def cell(context: int, concurrency: int, outcome: Outcome, new_tokens: int = 4) -> Cell:
    return Cell(context_tokens=context, new_tokens=new_tokens, concurrency=concurrency, outcome=outcome)


NO_MEMORY = OutOfMemory(phase=Phase.PREFILL, message="no")
counts = st.integers(1, 10_000)


def test_the_grid_goes_from_the_smallest_cell_to_the_largest() -> None:
    cells = grid(workload((1024, 128), (4, 1)))
    assert [(one.context_tokens, one.concurrency) for one in cells] == [(128, 1), (128, 4), (1024, 1), (1024, 4)]
    assert {one.new_tokens for one in cells} == {4}


def test_of_two_cells_with_as_many_tokens_the_shorter_context_comes_first() -> None:
    cells = grid(workload((128, 512), (1, 4)))
    assert [(one.context_tokens, one.concurrency) for one in cells] == [(128, 1), (128, 4), (512, 1), (512, 4)]


@given(st.lists(counts, unique=True, max_size=5), st.lists(counts, unique=True, max_size=5))
def test_the_grid_holds_every_combination_once_and_none_after_one_that_is_larger_both_ways(
    contexts: list[int], concurrencies: list[int]
) -> None:
    cells = [(one.context_tokens, one.concurrency) for one in grid(workload(tuple(contexts), tuple(concurrencies)))]
    assert sorted(cells) == sorted((context, many) for context in contexts for many in concurrencies)
    for position, (context, many) in enumerate(cells):
        assert not any(before[0] >= context and before[1] >= many for before in cells[:position])


@pytest.mark.parametrize("outcome", [NO_MEMORY, Failed(error="no"), Skipped(why="no"), make_cell().outcome])
def test_a_cell_with_any_outcome_is_not_run_again(outcome: Outcome) -> None:
    wanted = grid(workload((128, 512), (1, 2)))
    left = remaining(wanted, [cell(128, 2, outcome)])
    assert [(one.context_tokens, one.concurrency) for one in left] == [(128, 1), (512, 1), (512, 2)]


def test_a_cell_with_other_new_tokens_is_another_cell() -> None:
    assert remaining([key(128, 1)], [make_cell(128, 1, new_tokens=8)]) == (key(128, 1),)


def test_nothing_remains_of_a_complete_profile() -> None:
    profile = make_profile()
    assert remaining(grid(profile.workload), profile.cells) == ()
    assert remaining((), profile.cells) == ()
    assert remaining(grid(profile.workload), ()) == grid(profile.workload)


@given(counts, counts, counts, counts)
def test_only_what_is_at_least_as_large_both_ways_as_an_out_of_memory_is_skipped(
    context: int, many: int, limit_context: int, limit_many: int
) -> None:
    skipped = skipped_by_limit(key(context, many), [cell(limit_context, limit_many, NO_MEMORY)])
    assert (skipped is not None) == (context >= limit_context and many >= limit_many)


@given(counts, counts)
def test_a_limit_answers_only_for_cells_that_generate_no_less(new_tokens: int, limit_new_tokens: int) -> None:
    limit = cell(512, 2, NO_MEMORY, limit_new_tokens)
    assert (skipped_by_limit(key(512, 2, new_tokens), [limit]) is not None) == (new_tokens >= limit_new_tokens)


@given(counts, counts, counts, counts)
def test_only_what_is_at_least_as_large_both_ways_as_a_cell_given_up_is_skipped(
    context: int, many: int, slow_context: int, slow_many: int
) -> None:
    slow = cell(slow_context, slow_many, Failed(error="took longer than 60 s"))
    skipped = skipped_by_time(key(context, many), [slow], 60)
    assert (skipped is not None) == (context >= slow_context and many >= slow_many)
    if skipped is not None:
        why = f"context {slow_context} x {slow_many} already took longer than 60 s"
        assert skipped == cell(context, many, Skipped(why=why))


def test_time_answers_for_no_cell_that_generates_less_than_the_one_given_up() -> None:
    slow = cell(512, 2, Failed(error="took longer"), new_tokens=64)
    assert skipped_by_time(key(512, 2, 8), [slow], 60) is None
    assert skipped_by_time(key(512, 2, 64), [slow], 60) is not None


def test_a_skipped_cell_says_which_limit_answers_it() -> None:
    skipped = skipped_by_limit(key(1024, 4), [make_cell(2048, 8), cell(512, 2, NO_MEMORY)])
    assert skipped == cell(1024, 4, Skipped(why="context 512 x 2 already ran out of memory"))


@pytest.mark.parametrize("outcome", [Failed(error="no"), Skipped(why="no"), make_cell().outcome])
def test_only_an_out_of_memory_is_a_limit(outcome: Outcome) -> None:
    assert skipped_by_limit(key(1024, 4), [cell(1, 1, outcome)]) is None


def test_without_an_outcome_there_is_no_limit() -> None:
    assert skipped_by_limit(key(1024, 4), []) is None


def test_an_ended_cell_keeps_its_key() -> None:
    assert ended(key(128, 2), NO_MEMORY).key == (128, 4, 2)


def test_after_a_row_of_failures_the_rest_is_not_tried() -> None:
    failed = [cell(128, number, Failed(error="no such kernel")) for number in range(1, MOST_FAILURES + 1)]
    skipped = skipped_by_failures(key(512, 1), failed)
    assert skipped is not None
    assert skipped.outcome == Skipped(why="the 3 cells before it failed")
    assert skipped_by_failures(key(512, 1), failed[1:]) is None
    assert skipped_by_failures(key(512, 1), [*failed, make_cell(256, 1)]) is None


def test_a_resumed_run_repeats_what_failed_was_skipped_or_was_killed_and_nothing_else() -> None:
    measured, limit = make_cell(128, 1), cell(512, 4, NO_MEMORY)
    others = [
        cell(128, 2, Failed(error="x")),
        cell(128, 4, Skipped(why="x")),
        cell(512, 1, OutOfMemory(phase=None, message="killed")),
    ]
    assert settled([measured, *others, limit]) == (measured, limit)
