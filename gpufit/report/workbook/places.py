"""Where cells stand, as formulas name them; rows and columns are counted from 0."""

from __future__ import annotations


def cell(row: int, column: int) -> str:
    """`C5` of row 4, column 2; as far as column Z."""
    return f"{_letter(column)}{row + 1}"


def column_range(sheet: str, column: int, first: int, last: int) -> str:
    """`parts!$C$2:$C$42`: rows of one column, wherever the formula goes."""
    letter = _letter(column)
    return f"{sheet}!${letter}${first + 1}:${letter}${last + 1}"


def _letter(column: int) -> str:
    if not 0 <= column < 26:
        raise ValueError(f"no single letter names column {column}")
    return chr(ord("A") + column)
