"""The document as a terminal table, with what stands behind it below."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from tabulate import tabulate

from gpufit.profile.peaks import Parts, Phase
from gpufit.report.basis import phase_evidence_text
from gpufit.report.cells import PART_TITLES, printable
from gpufit.report.columns import reads_left, screen_columns_of
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.fits_document import FitsDocument
from gpufit.report.fits_text import (
    LEGEND,
    Matrix,
    Orders,
    all_in_turn,
    fits_headline,
    matrices,
    section_title,
    verdict_lines,
)
from gpufit.report.offer_lines import offer_words
from gpufit.report.plan_text import plan_lines
from gpufit.report.price_text import (
    COST_NOTE,
    LEFT_HEADERS,
    PRICE_HEADERS,
    cost_headers,
    cost_rows,
    offer_row,
    price_lines,
    price_rows,
)
from gpufit.report.start_figures import StartFigures
from gpufit.report.start_text import PART_HEADERS, answer_lines, commands, detail_hint, detailed_rows, part_rows
from gpufit.report.summary import growth_line, headline, peak_line, precision_lines, remark_lines
from gpufit.units import format_size

BINARY = False

WIDTH = 110
WORDS_WIDTH = 52
"""Of the last column of a start's parts, so that the table stays within WIDTH."""


def render_fit(document: FitDocument) -> bytes:
    """Headline, cards, parts by phase, precision, assumptions and notes."""
    found = [*precision_lines(document.precision), growth_line(document), peak_line(document), detail_hint(document)]
    blocks = [headline(document), *([_cards(document)] if document.cards else ()), *_prices(document)]
    blocks += [_start(document, row, start) for row, start in detailed_rows(document)]
    blocks += [] if document.serves else [_phases(document)]
    blocks += ["\n".join(line for line in found if line)]
    blocks += [_list(title, lines) for title, lines in _remarks(document) if lines]
    return printable("\n\n".join(blocks) + "\n").encode()


def render_fits(documents: FitsDocument) -> bytes:
    """A summary of all questions, then each with its own answer under a heading."""
    summary = [
        "\n".join(_wrapped(line, "", "  ") for line in fits_headline(documents)),
        *map(_matrix, matrices(documents)),
        _wrapped(LEGEND, "", "  "),
        *map(_orders, all_in_turn(documents)),
        "\n".join(_wrapped(line, "", "  ") for line in verdict_lines(documents)),
    ]
    sections = [
        f"{_heading(section_title(documents, one))}\n\n{render_fit(one).decode()}" for one in documents.documents
    ]
    return (printable("\n\n".join(filter(None, summary)) + "\n\n\n") + "\n\n".join(sections)).encode()


def _matrix(matrix: Matrix) -> str:
    title = f"{matrix.title}\n\n" if matrix.title else ""
    return title + tabulate(matrix.rows, headers=matrix.headers, disable_numparse=True)


def _orders(orders: Orders) -> str:
    """What to order for all scenarios of a profile."""
    table = _price_table([offer_row(line, line.lots) for line in orders.lines if line.priced], PRICE_HEADERS)
    said = "\n".join(_wrapped(line, "", "  ") for line in offer_words(orders.lines))
    return f"{orders.title}:\n\n{table}\n\n{said}".rstrip()


def _heading(title: str) -> str:
    text = printable(title)
    return f"{text}\n{'=' * max(len(text), WIDTH)}"


def _cards(document: FitDocument) -> str:
    columns = screen_columns_of(document)
    rows = [[column.text(document, row) for column in columns] for row in document.cards]
    return tabulate(
        rows,
        headers=[column.title for column in columns],
        colalign=["left" if reads_left(column) else "right" for column in columns],
        disable_numparse=True,
    )


def _prices(document: FitDocument) -> Iterator[str]:
    """What the lots cost, and what follows from it; nothing where no book has a price and no speed was measured."""
    rows = price_rows(document)
    if rows:
        yield _price_table(rows, PRICE_HEADERS)
    lines = [_wrapped(line, "", "  ") for line in price_lines(document)]
    if lines:
        yield "\n".join(lines)
    costs = cost_rows(document)
    if costs:
        yield f"{_price_table(costs, cost_headers(document))}\n\n{COST_NOTE}"


def _price_table(rows: Sequence[Sequence[str]], headers: Sequence[str]) -> str:
    align = ["left" if header in LEFT_HEADERS else "right" for header in headers]
    return tabulate(rows, headers=headers, colalign=align, disable_numparse=True)


def _start(document: FitDocument, row: CardRow, start: StartFigures) -> str:
    """One card's parts with their intervals, what they come to, and the command."""
    rows = [[*figures, textwrap.fill(words, WORDS_WIDTH)] for *figures, words in part_rows(start)]
    parts = tabulate(rows, headers=PART_HEADERS, colalign=("left", "right", "right", "left"), disable_numparse=True)
    answer = "\n".join(_wrapped(line, "", "  ") for line in answer_lines(document, row, start))
    title = f"{start.holds_for}\n\n" if len(document.cards) > 1 else ""
    given = [f"{_wrapped(what, '', '  ')}\n{_command(command)}" for what, command in commands(row, start)]
    return "\n\n".join([f"{title}{parts}", answer, *given])


def _command(line: str) -> str:
    """A command in lines that a shell joins again, broken before its flags."""
    lines = ["  " + (words := line.split(" --"))[0]]
    for flag in words[1:]:
        if len(lines[-1]) + len(flag) + 5 > WIDTH:
            lines[-1] += " \\"
            lines.append("     ")
        lines[-1] += f" --{flag}"
    return "\n".join(lines)


def _wrapped(line: str, first: str, rest: str) -> str:
    return textwrap.fill(line, WIDTH, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)


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
    ran = document.scenario_ran
    rows.append(["evidence", *(phase_evidence_text(name, one.evidence, ran) for name, one in document.phases.items())])
    headers = ["at the peak of", *(str(Phase(name)) for name in document.phases)]
    return tabulate(rows, headers=headers, colalign=["left"] + ["right"] * len(document.phases), disable_numparse=True)


def _remarks(document: FitDocument) -> list[tuple[str, tuple[str, ...]]]:
    notes = (*document.notes, *remark_lines(document))
    title = "assumed on the way to each card" if document.cards and not document.serves else "assumed"
    several = ("several cards, and what would make one do", tuple(plan_lines(document)))
    return [several, (title, document.assumptions), ("notes", notes)]


def _list(title: str, lines: tuple[str, ...]) -> str:
    return "\n".join([f"{title}:", *(_wrapped(line, "  - ", "    ") for line in lines)])
