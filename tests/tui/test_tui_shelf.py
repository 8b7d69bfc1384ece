"""The cursor among the profiles, and which two are compared."""

from __future__ import annotations

import pytest

from gpufit.tui.shelf import Shelf, mark, move, pair, put
from gpufit.tui.state import Event

FILES = ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("event", "at", "expected"),
    [
        (Event.UP, 0, 0),
        (Event.UP, 3, 2),
        (Event.DOWN, 3, 3),
        (Event.DOWN, 0, 1),
        (Event.PAGE_DOWN, 0, 2),
        (Event.PAGE_UP, 3, 1),
        (Event.FIRST, 2, 0),
        (Event.LAST, 1, 3),
    ],
)
def test_keys_move_the_cursor_within_the_list(event: Event, at: int, expected: int) -> None:
    assert move(Shelf(cursor=at), event, page=2, count=len(FILES)).cursor == expected


def test_the_cursor_stays_in_a_list_that_got_shorter() -> None:
    assert put(Shelf(cursor=3), 3, 2).cursor == 1
    assert put(Shelf(cursor=3), 3, 0).cursor == 0


def test_a_second_mark_makes_two_a_third_takes_the_oldest_and_a_mark_can_be_taken_away() -> None:
    two = mark(mark(Shelf(), "a"), "c")
    assert two.marked == ("a", "c")
    assert mark(two, "d").marked == ("c", "d")
    assert mark(two, "a").marked == ("c",)


@pytest.mark.parametrize(
    ("marked", "cursor", "expected"),
    [
        (("c", "a"), 1, (2, 0)),  # both marked ones, in the order of their marks, wherever the cursor is
        (("c",), 0, (2, 0)),  # the marked one is A
        (("c",), 2, None),  # with itself
        ((), 2, (1, 2)),  # the open one is A
        ((), 1, None),
        (("gone",), 0, (1, 0)),  # a mark whose file is no longer listed
    ],
)
def test_which_two_are_compared(marked: tuple[str, ...], cursor: int, expected: tuple[int, int] | None) -> None:
    assert pair(Shelf(cursor, marked), FILES, opened=1) == expected


def test_nothing_is_compared_with_nothing() -> None:
    assert pair(Shelf(), (), opened=0) is None
    assert pair(Shelf(), ("a",), opened=0) is None
