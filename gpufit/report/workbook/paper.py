"""Writing into a sheet: numbers as numbers in the units of their headers, text as text, widths that fit."""

from __future__ import annotations

import datetime
import textwrap
import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpufit.report.cells import Value, printable
from gpufit.units import GIB

_HEAD: dict[str, Any] = {"bold": True, "bottom": 1, "text_wrap": True, "valign": "top", "bg_color": "#EEF1F6"}

COLOURS = {
    "fits": "#C6EFCE",
    "too_close": "#FFEB9C",
    "does_not_fit": "#FFC7CE",
    "unknown": "#E7E6E6",
    "several": "#DCE8F8",
}
"""Behind a verdict, and behind what several cards do."""

FORMATS: dict[str, dict[str, Any]] = {
    "head": _HEAD | {"align": "right"},
    "head words": _HEAD | {"align": "left", "indent": 1},
    "bold": {"bold": True},
    "words": {"indent": 1, "align": "left", "valign": "top"},
    "bold words": {"bold": True, "indent": 1},
    "right": {"align": "right"},
    "dim": {"font_color": "#576173"},
    "gib": {"num_format": "#,##0.00", "valign": "top"},
    "count": {"num_format": "#,##0", "valign": "top"},
    "bold count": {"num_format": "#,##0", "bold": True, "top": 1},
    "date": {"num_format": "yyyy-mm-dd", "align": "left", "indent": 1},
    "money": {"num_format": "#,##0.00"},
    "seconds": {"num_format": "#,##0.000", "valign": "top"},
    "rate": {"num_format": "#,##0.0###", "valign": "top"},
    "input money": {"num_format": "#,##0.00", "bg_color": "#FFF6D6", "font_color": "#1F4E9E", "border": 4},
    "input count": {"num_format": "#,##0", "bg_color": "#FFF6D6", "font_color": "#1F4E9E", "border": 4},
    "wrap": {"text_wrap": True, "valign": "top", "align": "left", "indent": 1},
    "top": {"valign": "top", "align": "left", "indent": 1},
    "top gib": {"num_format": "#,##0.00", "valign": "top"},
    **{f"answer {name}": {"indent": 1, "bg_color": colour} for name, colour in COLOURS.items()},
}
"""By name; cells that a buyer changes are shaded."""

LONGEST_TEXT = 32_767
"""Characters that a cell holds at most.
https://support.microsoft.com/en-us/office/excel-specifications-and-limits-1672b34d-7043-467e-8e27-269d656771c3"""

_FIRST_YEAR = 1900
"""The first that a sheet has dates in."""

_LINE = 15
"""Height of a line of 11 points, in points."""

_NARROW, _WIDE = 6, 44
"""Bounds of a column's width, in characters; a longer text is cut on screen, not in the cell."""


@dataclass
class Paper:
    """One sheet, with what its columns have to hold."""

    sheet: Any
    formats: dict[str, Any]
    _widths: dict[int, int] = field(default_factory=dict)

    def text(self, row: int, column: int, text: str, kind: str = "words", *, measured: bool = True) -> None:
        """Text, never a formula or a link, whatever it begins with."""
        shown = printable(text)
        if len(shown) > LONGEST_TEXT:
            shown = shown[: LONGEST_TEXT - 1] + "…"
        self.sheet.write_string(row, column, shown, self.formats[kind])
        if measured:
            self._measure(column, shown)

    def header(self, row: int, titles: Sequence[str], words: Collection[int] = (0,), first: int = 0) -> None:
        """A row of headers from column `first` on, two lines high: left over columns of `words`, else right, as numbers
        stand."""
        self.sheet.set_row(row, 2 * _LINE + 2)
        for column, title in enumerate(titles, start=first):
            self.sheet.write_string(row, column, title, self.formats["head words" if column in words else "head"])
            width = max(max(map(len, title.split()), default=0), len(title) // 2) + 1
            self._widths[column] = max(self._widths.get(column, 0), width)

    def wrapped(self, row: int, column: int, text: str, width: int) -> None:
        """Text in as many lines as a column of `width` characters needs, the row as high as they are."""
        lines = sum(max(len(textwrap.wrap(line, width)), 1) for line in printable(text).split("\n"))
        self.sheet.set_row(row, _LINE * lines)
        self.text(row, column, text, "wrap", measured=False)

    def value(self, row: int, column: int, value: Value, key: str = "") -> None:
        """A value as the key of its column says: bytes in GiB, a count, money; None leaves the cell blank."""
        if value is None:
            return
        if isinstance(value, str):
            self.text(row, column, value)
        elif key.endswith("_bytes"):
            self.gib(row, column, int(value))
        else:
            self._number(row, column, value, _kind(key, value))

    def date(self, row: int, column: int, day: datetime.date | None) -> None:
        """A day, as one to sort and to reckon with; None leaves the cell blank."""
        if day is None:
            return
        if day.year < _FIRST_YEAR:
            self.text(row, column, day.isoformat())
        else:
            self.sheet.write_datetime(row, column, day, self.formats["date"])
            self._measure(column, day.isoformat())

    def gib(self, row: int, column: int, size_bytes: int | None, kind: str = "gib") -> None:
        """A size, in GiB; None leaves the cell blank."""
        if size_bytes is not None:
            self._number(row, column, size_bytes / GIB, kind)

    def count(self, row: int, column: int, count: int, kind: str = "count") -> None:
        """A whole number."""
        self._number(row, column, count, kind)

    def input(self, row: int, column: int, value: float | int | None, kind: str) -> None:
        """A cell that is the reader's to change, blank while nothing is known."""
        if value is None:
            self.sheet.write_blank(row, column, None, self.formats[kind])
        else:
            self._number(row, column, value, kind)

    def formula(self, row: int, column: int, formula: str, kind: str, value: float | int | None) -> None:
        """A formula beside its value as computed here, for readers that compute nothing; None is a blank."""
        self.sheet.write_formula(row, column, formula, self.formats[kind], "" if value is None else value)
        self._measure(column, "" if value is None else f"{value:,.2f}")

    def fit_columns(self) -> None:
        """Give each column the width of what it holds, within bounds."""
        for column, width in self._widths.items():
            self.sheet.set_column(column, column, min(max(width + 2, _NARROW), _WIDE))

    def landscape(self, header_row: int | None, pages: int = 1) -> None:
        """Print on A4, all columns on so many pages' width, the headers on every page."""
        self.sheet.set_landscape()
        self.sheet.set_paper(9)
        self.sheet.fit_to_pages(pages, 0)
        if header_row is not None:
            self.sheet.repeat_rows(header_row)

    def _number(self, row: int, column: int, value: float | int, kind: str) -> None:
        self.sheet.write_number(row, column, value, self.formats[kind])
        self._measure(column, f"{value:,}" if isinstance(value, int) else f"{value:,.2f}")

    def _measure(self, column: int, text: str) -> None:
        longest = max((_width(line) for line in text.split("\n")), default=0)
        self._widths[column] = max(self._widths.get(column, 0), longest)


def titled(title: str, key: str) -> str:
    """A column's title with the unit that its values have in a sheet."""
    if key.endswith("_bytes"):
        return f"{title} (GiB)"
    if key.endswith("_tokens") and not title.endswith("tokens"):
        return f"{title} (tokens)"
    return title


def _kind(key: str, value: float | int) -> str:
    """The format of a number: rates of slow models are far below one."""
    if key.endswith("_per_second"):
        return "rate"
    if key.endswith("_seconds"):
        return "seconds"
    return "money" if isinstance(value, float) else "count"


def _width(text: str) -> int:
    """Columns of a terminal or sheet that a text takes: signs of East Asian scripts are two wide."""
    return sum(2 if unicodedata.east_asian_width(sign) in "WF" else 1 for sign in text)
