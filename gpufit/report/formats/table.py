"""The document as a terminal table, with what stands behind it below."""

from __future__ import annotations

import textwrap

from tabulate import tabulate

from gpufit.profile.record import Parts, Phase
from gpufit.report.cells import PART_TITLES, SCREEN_COLUMNS, printable
from gpufit.report.document import FitDocument
from gpufit.report.summary import growth_line, headline, peak_line, precision_lines, remark_lines
from gpufit.units import format_size

BINARY = False

WIDTH = 110


def render_fit(document: FitDocument) -> bytes:
    """Headline, cards, parts by phase, precision, assumptions and notes."""
    found = [*precision_lines(document.precision), growth_line(document), peak_line(document)]
    blocks = [headline(document), *([_cards(document)] if document.cards else ())]
    blocks += [_phases(document), "\n".join(line for line in found if line)]
    blocks += [_list(title, lines) for title, lines in _remarks(document) if lines]
    return printable("\n\n".join(blocks) + "\n").encode()


def _cards(document: FitDocument) -> str:
    rows = [[column.text(document, row) for column in SCREEN_COLUMNS] for row in document.cards]
    left = ("card", "verdict", "binds", "evidence")
    return tabulate(
        rows,
        headers=[column.title for column in SCREEN_COLUMNS],
        colalign=["left" if column.title in left else "right" for column in SCREEN_COLUMNS],
        disable_numparse=True,
    )


def _phases(document: FitDocument) -> str:
    names = [name for name in Parts.NAMES if any(getattr(one.parts, name) for one in document.phases.values())]
    rows = [
        [PART_TITLES[name], *(format_size(getattr(one.parts, name)) for one in document.phases.values())]
        for name in names
    ]
    rows.append(["allocated", *(format_size(one.allocated_bytes) for one in document.phases.values())])
    rows.append(
        [
            "interval",
            *(
                f"{format_size(one.allocated_lower_bytes)} to {format_size(one.allocated_upper_bytes)}"
                for one in document.phases.values()
            ),
        ]
    )
    if not document.cards:
        rows.append(["needed", *(format_size(one.need_bytes) for one in document.phases.values())])
        rows.append(["surely enough", *(format_size(one.need_upper_bytes) for one in document.phases.values())])
    rows.append(["evidence", *(str(one.evidence) for one in document.phases.values())])
    headers = ["at the peak of", *(str(Phase(name)) for name in document.phases)]
    return tabulate(rows, headers=headers, colalign=["left"] + ["right"] * len(document.phases), disable_numparse=True)


def _remarks(document: FitDocument) -> list[tuple[str, tuple[str, ...]]]:
    notes = (*document.notes, *remark_lines(document))
    title = "assumed on the way to each card" if document.cards else "assumed"
    return [(title, document.assumptions), ("notes", notes)]


def _list(title: str, lines: tuple[str, ...]) -> str:
    wrapped = [textwrap.fill(line, WIDTH, initial_indent="  - ", subsequent_indent="    ") for line in lines]
    return "\n".join([f"{title}:", *wrapped])
