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


def largest_with_room(room: Callable[[int], int], ceiling: int = CEILING) -> int:
    """The largest n in 1..ceiling for which `room(n)` is not negative, 0 when not even 1 has room.

    `room` must not grow with n. Doubling brackets the answer, by the same steps for whoever asks; between them room
    falls nearly in a line, so what is asked first is where the line through both ends meets zero. Where that twice
    does not halve what is left, the next step does, so that a kink cannot make the search long.
    """
    if ceiling < 1:
        return 0
    low, low_room = 1, room(1)
    if low_room < 0:
        return 0
    high, high_room = 2, -1
    while high <= ceiling:
        high_room = room(high)
        if high_room < 0:
            break
        low, low_room, high = high, high_room, high * 2
    if high > ceiling:
        high, high_room = ceiling + 1, -1
    slow = 0
    while high - low > 1:
        before = high - low
        middle = low + (before // 2 if slow == 2 else low_room * before // (low_room - high_room))
        middle = min(max(middle, low + 1), high - 1)
        found = room(middle)
        if found >= 0:
            low, low_room = middle, found
        else:
            high, high_room = middle, found
        slow = slow + 1 if slow < 2 and (high - low) * 2 > before else 0
    return low
