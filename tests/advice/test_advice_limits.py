from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufit.advice.limits import CEILING, largest_that_fits


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
