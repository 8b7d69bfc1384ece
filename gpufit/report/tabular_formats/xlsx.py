"""Tables as a workbook to read, to filter and to draw from. Numbers are numbers, in the units of their headers."""

from __future__ import annotations

from typing import Any

from gpufit.report.evidence import MEANINGS
from gpufit.report.tabular import Cell, Heading, Table, TabularReport
from gpufit.report.workbook.book import Workbook
from gpufit.report.workbook.lines import SHEET, write_drawn, write_lines
from gpufit.report.workbook.paper import Paper, titled
from gpufit.report.workbook.verdicts import colour_verdicts

BINARY = True

_WORDS_WIDTH = 110
_LONG = 60
"""Characters of a line of the summary and of a cell; longer words are wrapped."""


def render_tables(report: TabularReport) -> bytes:
    """Sheets: `summary` (what it comes to, the question, notes), `chart`, a sheet a table with sizes in GiB,
    `drawn` (what the chart draws)."""
    with Workbook(f"gpufit: {report.title}") as made:
        _summary(made.paper("summary"), report)
        chart = made.paper("chart") if report.chart is not None else None
        for table in report.tables:
            if table.rows:
                _table(made.paper(table.name), table, made.book)
        if chart is not None and report.chart is not None:
            write_drawn(made.paper(SHEET), report.chart)
            write_lines(chart, made.book, report.chart)
    return made.content


def _summary(paper: Paper, report: TabularReport) -> None:
    paper.text(0, 0, report.title, "bold", measured=False)
    lines: list[tuple[str, str]] = [("in short", line) for line in report.sentences]
    (question,) = report.question.rows
    lines += [(one.title, cell.text) for one, cell in zip(report.question.headings, question, strict=True) if cell.text]
    lines += [(table.title, table.caption) for table in report.tables if table.rows and table.caption]
    lines += [("note", note) for note in report.notes]
    lines += [("evidence", f"{kind}: {MEANINGS[kind]}") for kind in report.evidence]
    for at, (title, words) in enumerate(lines, start=2):
        paper.text(at, 0, title, "top")
        paper.wrapped(at, 1, words, _WORDS_WIDTH)
    paper.fit_columns()
    paper.sheet.set_column(1, 1, _WORDS_WIDTH)
    paper.landscape(None)


def _table(paper: Paper, table: Table, book: Any) -> None:
    for at, row in enumerate(table.rows, start=1):
        cells = enumerate(zip(table.headings, row, strict=True))
        # The longest comes last: it says how high the row is.
        for index, (heading, cell) in sorted(cells, key=lambda one: len(one[1][1].text)):
            _value(paper, at, index, heading, cell)
    words = [index for index, heading in enumerate(table.headings) if heading.words]
    paper.header(0, [_title(heading) for heading in table.headings], words)
    keys = [heading.key for heading in table.headings]
    if "verdict" in keys:
        colour_verdicts(paper, book, 1, len(table.rows), keys.index("verdict"), readable=True)
    paper.sheet.freeze_panes(1, 1)
    paper.sheet.autofilter(0, 0, len(table.rows), len(keys) - 1)
    paper.fit_columns()
    for index in words:
        if any(len(row[index].text) > _LONG for row in table.rows):
            paper.sheet.set_column(index, index, _LONG)
    paper.landscape(0)


def _value(paper: Paper, at: int, index: int, heading: Heading, cell: Cell) -> None:
    """Numbers in their units; words as people read them, in several lines where they are long."""
    if not isinstance(cell.value, str):
        paper.value(at, index, cell.value, "" if heading.whole else heading.key)
    elif len(cell.text) > _LONG:
        paper.wrapped(at, index, cell.text, _LONG)
    else:
        paper.value(at, index, cell.text)


def _title(heading: Heading) -> str:
    """The title with its unit."""
    if heading.whole:
        return f"{heading.title} (bytes)"
    if heading.key.endswith("_seconds"):
        return f"{heading.title} (s)"
    if heading.key.endswith("_concurrency") and heading.title != "at once":
        return f"{heading.title} (at once)"
    return titled(heading.title, heading.key)
