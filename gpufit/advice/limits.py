"""The largest concurrency and the longest context that surely fit a card."""

from __future__ import annotations

from collections.abc import Callable

CEILING = 2**24
"""Where the search stops: sixteen million sequences or tokens is more than any card serves."""


def largest_that_fits(fits: Callable[[int], bool], ceiling: int = CEILING) -> int:
    """The largest n in 1..ceiling for which `fits(n)`, 0 when not even 1 does.

    `fits` must not turn true again once it is false (more never needs less), so a bisection finds it.
    """
    if ceiling < 1 or not fits(1):
        return 0
    low, high = 1, 2
    while high <= ceiling and fits(high):
        low, high = high, high * 2
    high = min(high, ceiling + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low
