from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufit.advice.limits import CEILING, largest_that_fits, largest_with_room


@given(st.integers(0, 300), st.integers(-2, 300))
def test_the_search_finds_what_trying_them_all_finds(last: int, ceiling: int) -> None:
    tried = [n for n in range(1, ceiling + 1) if n <= last]
    assert largest_that_fits(lambda n: n <= last, ceiling) == max(tried, default=0)


@given(st.integers(0, 2 * CEILING))
def test_the_default_ceiling_holds_and_a_search_asks_few_questions(last: int) -> None:
    asked = []

    def fits(n: int) -> bool:
        asked.append(n)
        return n <= last

    assert largest_that_fits(fits) == min(last, CEILING)
    # Doubling up to 2**24 and halving back: 25 + 24 questions at most.
    assert len(asked) <= 49
    assert all(1 <= n <= CEILING for n in asked)


@pytest.mark.parametrize("ceiling", [0, -5])
def test_nothing_fits_under_a_ceiling_below_one_and_nothing_is_asked(ceiling: int) -> None:
    def fits(n: int) -> bool:
        raise AssertionError(n)

    assert largest_that_fits(fits, ceiling) == 0


def counted(room: Callable[[int], int]) -> tuple[Callable[[int], int], list[int]]:
    asked: list[int] = []

    def ask(n: int) -> int:
        asked.append(n)
        return room(n)

    return ask, asked


@given(
    st.lists(st.tuples(st.integers(1, 200), st.integers(0, 10**6)), min_size=1, max_size=6),
    st.integers(0, 10**8),
    st.integers(-2, 1000),
)
def test_a_search_by_what_is_left_finds_what_trying_them_all_finds(
    pieces: list[tuple[int, int]], capacity: int, ceiling: int
) -> None:
    """Each piece is so many steps of so many bytes; the last goes on."""

    def room(n: int) -> int:
        left, at = capacity, 0
        for steps, each in pieces:
            taken = min(n - at, steps)
            left, at = left - taken * each, at + taken
        return left - (n - at) * pieces[-1][1]

    tried = [n for n in range(1, ceiling + 1) if room(n) >= 0]
    assert largest_with_room(room, ceiling) == max(tried, default=0)


@given(st.integers(1, 10**9), st.integers(0, 10**12))
def test_along_a_line_it_asks_few_questions(each: int, capacity: int) -> None:
    ask, asked = counted(lambda n: capacity - each * n)
    assert largest_with_room(ask) == min(capacity // each, CEILING)
    # Doubling up to the first that is too large, where the line meets zero, and one beyond.
    assert len(asked) <= min(capacity // each, CEILING).bit_length() + 3


@given(st.integers(0, 2 * CEILING))
def test_a_cliff_does_not_make_it_long(last: int) -> None:
    ask, asked = counted(lambda n: 10**15 if n <= last else -1)
    assert largest_with_room(ask) == min(last, CEILING)
    # Every third question halves what is left.
    assert len(asked) <= 25 + 3 * 24
