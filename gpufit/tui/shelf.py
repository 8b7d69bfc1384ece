"""Which profile the cursor is on and which are marked to be compared. Pure, and knows nothing of Textual."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from gpufit.tui.state import Event, jump

AT_ONCE = 2
"""A comparison is of two."""


@dataclass(frozen=True)
class Shelf:
    """What keys change on the screen of profiles."""

    cursor: int = 0
    """Place in the list."""
    marked: tuple[str, ...] = ()
    """Files of the marked profiles, A before B."""


def move(shelf: Shelf, event: Event, page: int, count: int) -> Shelf:
    """The cursor after a key; beyond either end it stays at that end."""
    return replace(shelf, cursor=jump(event, shelf.cursor, page, count))


def put(shelf: Shelf, place: int, count: int) -> Shelf:
    """The cursor at a place of a list of so many."""
    return replace(shelf, cursor=max(0, min(place, count - 1)))


def mark(shelf: Shelf, where: str) -> Shelf:
    """Mark a profile, or take its mark away; a third mark takes that of the oldest."""
    if where in shelf.marked:
        return replace(shelf, marked=tuple(one for one in shelf.marked if one != where))
    return replace(shelf, marked=(*shelf.marked, where)[-AT_ONCE:])


def pair(shelf: Shelf, listed: Sequence[str], opened: int) -> tuple[int, int] | None:
    """Places of the two to compare: both that are marked; the marked one and the one under the cursor; the open one and
    the one under the cursor. None where these are not two."""
    marked = [listed.index(where) for where in shelf.marked if where in listed]
    places = marked if len(marked) == AT_ONCE else [*(marked or [opened]), shelf.cursor]
    a, b = places
    return None if a == b or max(a, b) >= len(listed) else (a, b)
