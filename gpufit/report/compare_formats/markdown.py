"""A comparison as Markdown: what it comes to, what differs, then part by part."""

from __future__ import annotations

from collections.abc import Sequence

from tabulate import tabulate

from gpufit.advice.comparison import PhaseDifference
from gpufit.report.cells import printable
from gpufit.report.compare_document import CompareDocument
from gpufit.report.compare_text import (
    DIFFERENCE_HEADERS,
    PART_HEADERS,
    difference_rows,
    part_rows,
    peak_line,
    phase_title,
    side_lines,
)
from gpufit.report.formats.markdown import cell, prose

BINARY = False


def render_compare(document: CompareDocument) -> bytes:
    """Both sides, the conclusion, what differs, and the parts of every phase."""
    blocks = [_bullets(side_lines(document)), _bullets(document.conclusion)]
    if document.differences:
        blocks += ["**what differs, in the order to look**", _pipe(difference_rows(document), DIFFERENCE_HEADERS)]
    if not document.same:
        blocks += map(_phase, document.phases)
    return printable("\n\n".join(blocks) + "\n").encode()


def _phase(phase: PhaseDifference) -> str:
    peak = peak_line(phase)
    lines = "  \n".join([f"**{cell(phase_title(phase))}**", *([cell(peak)] if peak else [])])
    rows = part_rows(phase)
    return f"{lines}\n\n{_pipe(rows, PART_HEADERS)}" if rows else lines


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {prose(line, ' ')}" for line in lines)


def _pipe(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> str:
    cells = [[cell(text) for text in row] for row in rows]
    return tabulate(cells, headers=headers, tablefmt="pipe", disable_numparse=True)
