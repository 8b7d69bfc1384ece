"""The view state: every key, and what no sequence of keys can break."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest
from builders import make_profile
from hypothesis import given
from hypothesis import strategies as st
from tui_builders import GB, make_row, named

from gpufit.advice.limits import CEILING
from gpufit.advice.verdict import Verdict
from gpufit.memory.terms import Shape
from gpufit.tui.listing import Filter, Listing, Sort, first_that_fits, listed_rows
from gpufit.tui.state import (
    Event,
    Start,
    ViewState,
    initial_state,
    press,
    select,
    show,
    start_of,
    with_shape,
)

CARDS = tuple(f"card-{index}" for index in range(41))


def make_state(context: int = 1024, limit: int = 32_765, concurrency: int = 4, profiles: int = 1) -> ViewState:
    start = Start(Shape(context, 4, concurrency), limit)
    return show(initial_state([start] * profiles), CARDS)


def pressed(state: ViewState, *events: Event) -> ViewState:
    for event in events:
        state = press(state, event)
    return state


class TestContext:
    def test_right_doubles_and_left_halves(self) -> None:
        assert pressed(make_state(1024), Event.LONGER).shape == Shape(2048, 4, 4)
        assert pressed(make_state(1024), Event.SHORTER).shape == Shape(512, 4, 4)

    def test_right_beyond_the_limit_sets_the_limit_and_left_comes_back(self) -> None:
        at_limit = pressed(make_state(16_384), Event.LONGER)
        assert at_limit.shape.context_tokens == 32_765
        assert pressed(at_limit, Event.LONGER) == at_limit
        assert pressed(at_limit, Event.SHORTER).shape.context_tokens == 16_384

    def test_a_start_at_the_limit_halves(self) -> None:
        assert pressed(make_state(32_765), Event.SHORTER).shape.context_tokens == 16_382

    def test_a_start_just_below_the_limit_is_one_step_from_it(self) -> None:
        at_limit = pressed(make_state(20_000), Event.LONGER)
        assert at_limit.shape.context_tokens == 32_765
        assert pressed(at_limit, Event.SHORTER).shape.context_tokens == 20_000

    def test_left_stops_at_one(self) -> None:
        assert pressed(make_state(3), Event.SHORTER, Event.SHORTER).shape.context_tokens == 1

    def test_a_limit_of_one_token_holds_both_ways(self) -> None:
        state = make_state(1, limit=1)
        assert pressed(state, Event.LONGER).shape == pressed(state, Event.SHORTER).shape == state.shape

    def test_the_limit_leaves_room_for_the_new_tokens(self) -> None:
        start = start_of(make_profile(), Shape(512, 4, 4))
        assert start.longest_context == 32_768 - 3
        assert replace(start.shape, context_tokens=start.longest_context).cached_tokens == 32_768

    def test_without_a_position_limit_only_the_search_ceiling_ends_it(self) -> None:
        unlimited = named("unlimited", position_limit=None)
        assert start_of(unlimited.profile, unlimited.start).longest_context == CEILING


class TestConcurrency:
    def test_plus_doubles_and_minus_halves_down_to_one(self) -> None:
        assert pressed(make_state(), Event.MORE).shape.concurrency == 8
        assert pressed(make_state(concurrency=3), Event.FEWER, Event.FEWER).shape.concurrency == 1


class TestCards:
    def test_moves_stop_at_both_ends(self) -> None:
        state = make_state()
        assert pressed(state, Event.UP).selected == 0
        assert pressed(state, Event.DOWN, Event.DOWN, Event.UP).selected == 1
        assert pressed(state, Event.LAST).selected == 40
        assert pressed(state, Event.LAST, Event.DOWN).selected == 40
        assert pressed(state, Event.LAST, Event.FIRST).selected == 0

    def test_a_page_is_as_long_as_the_list_on_screen(self) -> None:
        assert press(make_state(), Event.PAGE_DOWN, page=7).selected == 7
        assert press(select(make_state(), 30), Event.PAGE_UP, page=7).selected == 23

    def test_the_selection_stays_on_its_card_in_another_order(self) -> None:
        state = show(select(make_state(), 3), tuple(reversed(CARDS)))
        assert state.selected_card == "card-3"

    def test_a_card_that_is_filtered_out_leaves_the_selection_at_its_place(self) -> None:
        assert show(select(make_state(), 1), ("card-7", "card-8", "card-9")).selected_card == "card-8"
        assert show(select(make_state(), 30), ("card-7", "card-8")).selected_card == "card-8"

    def test_with_no_card_nothing_is_selected(self) -> None:
        assert show(make_state(), ()).selected_card is None
        assert pressed(show(make_state(), ()), Event.DOWN, Event.LAST).selected == 0


class TestChoices:
    def test_sort_and_filter_cycle(self) -> None:
        state = make_state()
        assert pressed(state, Event.SORT).listing.sort is Sort.HEADROOM
        assert pressed(state, Event.SORT, Event.SORT).listing.sort is Sort.CAPACITY
        assert pressed(state, Event.SORT, Event.SORT, Event.SORT).listing == state.listing
        assert pressed(state, Event.FILTER).listing.filter is Filter.FITS
        assert pressed(state, Event.FILTER, Event.FILTER).listing.filter is Filter.SERVES
        assert pressed(state, *[Event.FILTER] * len(Filter)) == state

    def test_a_list_in_another_order_begins_at_its_first_card(self) -> None:
        listed = show(make_state(), ["a", "b", "c"])
        sorted_anew = show(pressed(listed, Event.LAST, Event.SORT), ["c", "a", "b"])
        assert sorted_anew.selected_card == "c"
        assert sorted_anew.selected == 0

    def test_all_cards_come_back_in_the_order_that_was_chosen(self) -> None:
        state = pressed(make_state(), Event.SORT, Event.FILTER)
        narrowed = replace(state, listing=replace(state.listing, vendor="AMD", least_gb=48, search="x"))
        assert pressed(narrowed, Event.ALL_CARDS).listing == Listing(sort=Sort.HEADROOM)

    def test_a_profile_that_takes_less_does_not_change_what_was_asked(self) -> None:
        starts = [Start(Shape(4096, 128, 2), 32_000), Start(Shape(128, 0, 1), 512)]
        asked = with_shape(initial_state(starts), 20_000, 4, 256)
        there = pressed(asked, Event.NEXT_PROFILE)
        assert there.shape == Shape(512, 0, 4)
        assert pressed(there, Event.NEXT_PROFILE).shape == Shape(20_000, 128, 4)
        shorter = pressed(there, Event.SHORTER, Event.NEXT_PROFILE)
        assert shorter.shape.context_tokens == 256

    def test_next_profile_goes_round_and_keeps_the_scenario(self) -> None:
        state = pressed(make_state(profiles=2), Event.LONGER, Event.MORE)
        other = pressed(state, Event.NEXT_PROFILE)
        assert (other.profile, other.shape) == (1, state.shape)
        assert pressed(other, Event.NEXT_PROFILE) == state

    def test_next_profile_takes_its_own_limit_and_new_tokens(self) -> None:
        starts = [Start(Shape(4096, 128, 2), 32_000), Start(Shape(128, 0, 1), 512)]
        assert pressed(initial_state(starts), Event.NEXT_PROFILE).shape == Shape(512, 0, 2)

    def test_next_profile_does_nothing_with_one(self) -> None:
        assert pressed(make_state(), Event.NEXT_PROFILE) == make_state()

    def test_reset_returns_to_the_start(self) -> None:
        assert pressed(make_state(), Event.LONGER, Event.MORE, Event.RESET) == make_state()


class TestListedRows:
    ROWS = (
        make_row(80 * GB, card="fits-80"),
        make_row(40 * GB, card="close-40"),
        make_row(24 * GB, card="small-24"),
        make_row(None, card="unknown"),
        make_row(180 * GB, card="fits-180"),
    )

    def ids(self, sort: Sort = Sort.CATALOG, which: Filter = Filter.ALL) -> list[str]:
        return [row.card for row in listed_rows(self.ROWS, Listing(sort, which), {})]

    def test_catalog_order_is_kept(self) -> None:
        assert self.ids() == ["fits-80", "close-40", "small-24", "unknown", "fits-180"]

    @pytest.mark.parametrize("sort", [Sort.HEADROOM, Sort.CAPACITY])
    def test_largest_first_and_unknown_last(self, sort: Sort) -> None:
        assert self.ids(sort) == ["fits-180", "fits-80", "close-40", "small-24", "unknown"]

    def test_filters(self) -> None:
        assert self.ids(which=Filter.FITS) == ["fits-80", "fits-180"]
        assert self.ids(which=Filter.POSSIBLE) == ["fits-80", "close-40", "unknown", "fits-180"]

    def test_the_first_that_fits(self) -> None:
        assert first_that_fits(self.ROWS[1:]) == 3
        assert first_that_fits([row for row in self.ROWS if row.verdict is not Verdict.FITS]) == 0


STARTS = st.builds(
    lambda context, new, concurrency, limit: Start(Shape(min(context, limit), new, concurrency), limit),
    st.integers(1, 200_000),
    st.integers(0, 256),
    st.integers(1, 512),
    st.integers(1, 200_000),
)
ANSWERS = st.lists(st.sampled_from(CARDS), unique=True).map(tuple)


@given(
    st.lists(STARTS, min_size=1, max_size=3),
    st.lists(st.tuples(st.sampled_from(Event), st.integers(1, 50), st.none() | ANSWERS), max_size=60),
)
def test_no_sequence_of_keys_leaves_the_range(
    starts: list[Start], keys: list[tuple[Event, int, tuple[str, ...] | None]]
) -> None:
    state = show(initial_state(starts), CARDS)
    for event, page, answer in keys:
        state = press(state, event, page)
        state = state if answer is None else show(state, answer)
        assert 1 <= state.shape.context_tokens <= state.start.longest_context
        assert 1 <= state.shape.concurrency <= CEILING
        assert 0 <= state.selected < max(len(state.cards), 1)
        assert 0 <= state.profile < len(starts)
        assert state.shape.new_tokens == state.start.shape.new_tokens


@given(STARTS, st.integers(1, 12))
def test_left_undoes_right(start: Start, steps: int) -> None:
    state = initial_state([start])
    went = pressed(state, *[Event.LONGER] * steps)
    moved = 0
    while pressed(state, *[Event.LONGER] * moved) != went:
        moved += 1
    assert pressed(went, *[Event.SHORTER] * moved).shape.context_tokens <= start.shape.context_tokens


def test_the_state_knows_nothing_of_textual() -> None:
    code = "import sys, gpufit.tui.state; sys.exit('textual' in sys.modules or 'rich' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
