"""Lists of one line a row, as text."""

from __future__ import annotations

from typing import NamedTuple

from gpufit.tui.renderables.cards import POINTER
from gpufit.tui.renderables.listed import ListColumn, heading, line, place


class Fruit(NamedTuple):
    name: str
    weight: str
    note: str = ""


ROWS = (Fruit("apple", "150 g"), Fruit("watermelon of the south", "9 kg", "a\x1b[2J b"))
COLUMNS = (
    ListColumn[Fruit](title="name", text=lambda one: one.name, most=10),
    ListColumn[Fruit](title="weight", text=lambda one: one.weight, right=True, importance=1),
    ListColumn[Fruit](title="note", text=lambda one: one.note, importance=2),
)


def test_a_narrow_width_keeps_what_matters_and_cuts_what_is_long() -> None:
    placed = place(COLUMNS, ROWS, 22)  # 2 for the pointer, 10 + 2 for the name, 6 + 2 for the weight
    assert heading(placed).plain == "  name        weight  "
    assert line(placed, ROWS[0], selected=False).plain == "  apple        150 g  "
    assert line(placed, ROWS[1], selected=True).plain == f"{POINTER} watermelo…    9 kg  "


def test_columns_go_one_by_one_and_never_the_first() -> None:
    assert [one.column.title for one in place(COLUMNS, ROWS, 21)] == ["name"]
    assert [one.column.title for one in place(COLUMNS, ROWS, 1)] == ["name"]
    assert [one.column.title for one in place(COLUMNS, ROWS, 60)] == ["name", "weight", "note"]


def test_room_that_is_left_shows_whole_cells() -> None:
    assert "watermelon of the south" in line(place(COLUMNS, ROWS, 60), ROWS[1], selected=False).plain


def test_a_name_cannot_steer_the_terminal() -> None:
    assert "\x1b" not in line(place(COLUMNS, ROWS, 60), ROWS[1], selected=False).plain


def test_no_rows_still_have_a_heading() -> None:
    assert heading(place(COLUMNS, (), 60)).plain.split() == ["name", "weight", "note"]
