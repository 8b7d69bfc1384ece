"""Where cells stand, as formulas name them; rows and columns are counted from 0."""

from __future__ import annotations


def cell(row: int, column: int, *, fixed: bool = False) -> str:
    """`C5` of row 4, column 2; `$C5` where the column is fixed."""
    return f"{'$' if fixed else ''}{_letters(column)}{row + 1}"


def column_range(sheet: str, column: int, first: int, last: int) -> str:
    """`parts!$C$2:$C$42`: rows of one column, wherever the formula goes."""
    return f"{sheet}!{rows_of(column, first, last)}"


def rows_of(column: int, first: int, last: int) -> str:
    """`$C$2:$C$42`: the same on the sheet of the formula itself."""
    letters = _letters(column)
    return f"${letters}${first + 1}:${letters}${last + 1}"


def _letters(column: int) -> str:
    """A, B, ..., Z, AA, AB, ...; raises ValueError for a column below 0."""
    if column < 0:
        raise ValueError(f"no letters name column {column}")
    before, last = divmod(column, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + last)
