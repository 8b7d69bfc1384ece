"""Tables as Markdown: what was asked, what it comes to, then the tables that people read."""

from __future__ import annotations

from collections.abc import Iterable

from tabulate import tabulate

from gpufit.report.cells import printable
from gpufit.report.formats.markdown import cell, prose
from gpufit.report.tabular import Table, TabularReport

BINARY = False


def render_tables(report: TabularReport) -> bytes:
    """Pipe tables under a heading; those of every single point are named and left out."""
    (question,) = report.question.rows
    facts = [
        f"{heading.title}: {one.text}"
        for heading, one in zip(report.question.headings, question, strict=True)
        if one.text
    ]
    shown = [table.to_read for table in report.tables if table.rows]
    left_out = [
        f"{table.title}: {len(table.rows)} rows, which the CSV, the workbook and the JSON have"
        for table in shown
        if table.detail
    ]
    blocks = [
        f"# {cell(report.title)}",
        _bullets(report.sentences),
        *(_table(table) for table in shown if not table.detail),
        _bullets([*facts, *report.notes, *left_out]),
    ]
    return printable("\n\n".join(filter(None, blocks)) + "\n").encode()


def _table(table: Table) -> str:
    rows = [[cell(one.text) for one in row] for row in table.rows]
    align = ["left" if heading.words else "right" for heading in table.headings]
    headers = [cell(heading.title) for heading in table.headings]
    found = tabulate(rows, headers=headers, tablefmt="pipe", disable_numparse=True, colalign=align)
    return "\n\n".join([f"## {cell(table.title)}", found, *([prose(table.caption)] if table.caption else ())])


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {prose(line, ' ')}" for line in lines)
