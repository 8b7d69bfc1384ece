"""A document laid out as tables: what its workbook, page, Markdown and CSV are written from, each by one writer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import msgspec

from gpufit.profile.evidence import Evidence
from gpufit.report.cells import Value
from gpufit.report.chart import Chart
from gpufit.units import format_size, format_tokens

Row = TypeVar("Row")

_EVIDENCE = ("evidence", "a_evidence", "b_evidence", "weakest_evidence")
"""Keys of the columns that say what a figure rests on."""


@dataclass(frozen=True)
class Heading:
    """What stands over a column."""

    key: str
    """In CSV, unit included."""
    title: str
    """As people read it."""
    words: bool = False
    """Whether the column reads left, as words do."""
    detail: bool = False
    """Whether it is for programs rather than to be read: pages and Markdown leave it out."""
    whole: bool = False
    """Whether its sizes are whole bytes in a workbook, too: some would vanish in GiB."""


@dataclass(frozen=True)
class Cell:
    """One value, and how people read it; None is a blank in CSV and in a workbook."""

    value: Value
    text: str


@dataclass(frozen=True)
class Table:
    """One table."""

    name: str
    """Of its sheet, and what the CSV calls its rows."""
    title: str
    caption: str
    """What a reader must know of its figures."""
    headings: tuple[Heading, ...]
    rows: tuple[tuple[Cell, ...], ...]
    detail: bool = False
    """Whether its rows are for programs rather than to be read: a page folds them up, Markdown leaves them out."""

    @property
    def to_read(self) -> Table:
        """The table without the columns that are for programs, or that have nothing in them."""
        kept = [
            at
            for at, heading in enumerate(self.headings)
            if not heading.detail and any(row[at].value is not None for row in self.rows)
        ]
        return replace(
            self,
            headings=tuple(self.headings[at] for at in kept),
            rows=tuple(tuple(row[at] for at in kept) for row in self.rows),
        )

    @property
    def by_key(self) -> Iterator[dict[str, Cell]]:
        """Each row by the keys of its columns."""
        keys = [heading.key for heading in self.headings]
        return (dict(zip(keys, row, strict=True)) for row in self.rows)


@dataclass(frozen=True)
class TabularReport:
    """A document with its tables; every figure of a table stands in the document, too."""

    kind: str
    """What it is: `curve`, `growth`, ..."""
    title: str
    document: msgspec.Struct
    """What is written as JSON."""
    question: Table
    """One row: what was asked, of which model, in which engine."""
    sentences: tuple[str, ...]
    """What it comes to, in words."""
    tables: tuple[Table, ...]
    """Those to be read first come first; one without rows is left out where people read."""
    notes: tuple[str, ...]
    chart: Chart | None = None

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The kinds that its figures have, strongest first."""
        named = [table.by_key for table in (self.question, *self.tables)]
        found = {row[key].value for rows in named for row in rows for key in _EVIDENCE if key in row}
        return tuple(kind for kind in sorted(Evidence, key=lambda one: one.weakness) if kind in found)


def _plain(value: Any) -> str:
    return str(value)


def _nothing(row: object) -> str:
    return ""


def size_text(value: Any) -> str:
    """A size."""
    return format_size(value)


def count_text(value: Any) -> str:
    """A whole number."""
    return f"{value:,}"


def tokens_text(value: Any) -> str:
    """A length."""
    return format_tokens(value)


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column of a table: where its values come from, and how they read."""

    key: str
    title: str
    value: Callable[[Row], Value]
    text: Callable[[Any], str] = _plain
    """Of a value that is known."""
    words: bool = False
    detail: bool = False
    whole: bool = False
    missing: Callable[[Row], str] = _nothing
    """What people read where there is no value."""

    def cell(self, row: Row) -> Cell:
        """The column's cell in a row."""
        value = self.value(row)
        return Cell(value, self.missing(row) if value is None else self.text(value))


def table_of(
    name: str, title: str, columns: Iterable[Column[Row]], rows: Iterable[Row], caption: str = "", detail: bool = False
) -> Table:
    """The table of these rows."""
    columns = tuple(columns)
    return Table(
        name=name,
        title=title,
        caption=caption,
        headings=tuple(Heading(one.key, one.title, one.words, one.detail, one.whole) for one in columns),
        rows=tuple(tuple(one.cell(row) for one in columns) for row in rows),
        detail=detail,
    )
