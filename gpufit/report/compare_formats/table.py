"""A comparison as text for a terminal: what it comes to, what differs, then part by part."""

from __future__ import annotations

import textwrap
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

BINARY = False

WIDTH = 110
WORDS_WIDTH = 56
"""Of what accounts for a part, so that the table stays within WIDTH."""
VALUE_WIDTH = 36
"""Of what either of the two records."""


def render_compare(document: CompareDocument) -> bytes:
    """Both sides, the conclusion, what differs, and the parts of every phase."""
    blocks = ["\n".join(map(_wrapped, side_lines(document))), "\n".join(map(_wrapped, document.conclusion))]
    if document.differences:
        rows = [[about, what, *(textwrap.fill(value, VALUE_WIDTH) for value in values)]
                for about, what, *values in difference_rows(document)]  # fmt: skip
        blocks.append(f"what differs, in the order to look\n\n{_tabulated(rows, DIFFERENCE_HEADERS, ())}")
    if not document.same:
        blocks += map(_phase, document.phases)
    return printable("\n\n".join(blocks) + "\n").encode()


def _phase(phase: PhaseDifference) -> str:
    lines = "\n".join(_wrapped(line) for line in (phase_title(phase), peak_line(phase)) if line)
    rows = [[*figures, textwrap.fill(words, WORDS_WIDTH)] for *figures, words in part_rows(phase)]
    return f"{lines}\n\n{_tabulated(rows, PART_HEADERS, (1, 2, 3))}" if rows else lines


def _tabulated(rows: Sequence[Sequence[str]], headers: Sequence[str], right: Sequence[int]) -> str:
    align = ["right" if index in right else "left" for index in range(len(headers))]
    return tabulate(rows, headers=headers, colalign=align, disable_numparse=True)


def _wrapped(line: str) -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent="    ", break_on_hyphens=False)
