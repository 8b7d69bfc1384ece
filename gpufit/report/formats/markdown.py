"""The document as Markdown: headline, cards, assumptions and notes."""

from __future__ import annotations

import re

from tabulate import tabulate

from gpufit.report.cells import printable
from gpufit.report.columns import screen_columns_of
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
    PRICE_HEADERS,
    cost_headers,
    cost_rows,
    offer_row,
    price_lines,
    price_rows,
)
from gpufit.report.start_figures import StartFigures
from gpufit.report.start_text import PART_HEADERS, answer_lines, commands, detailed_rows, part_rows
from gpufit.report.summary import growth_line, headline, peak_line, precision_lines, remark_lines

BINARY = False


def render_fit(document: FitDocument) -> bytes:
    """A pipe table of the cards between headline and remarks."""
    columns = screen_columns_of(document)
    rows = [[cell(column.text(document, row)) for column in columns] for row in document.cards]
    table = _pipe(rows, [column.title for column in columns])
    prices, costs = _escaped(price_rows(document)), _escaped(cost_rows(document))
    money = [*price_lines(document), *([COST_NOTE] if costs else ())]
    found = [*money, *precision_lines(document.precision), growth_line(document), peak_line(document)]
    remarks = [*plan_lines(document), *found, *document.assumptions, *document.notes, *remark_lines(document)]
    blocks = [
        prose(headline(document)),
        *([table] if document.cards else ()),
        *([_pipe(prices, list(PRICE_HEADERS))] if prices else ()),
        *([_pipe(costs, list(cost_headers(document)))] if costs else ()),
        *(_start(document, row, start) for row, start in detailed_rows(document)),
        "\n".join(f"- {prose(line, ' ')}" for line in remarks if line),
    ]
    return printable("\n\n".join(blocks) + "\n").encode()


def render_fits(documents: FitsDocument) -> bytes:
    """A summary of all questions, then each with its own answer under a heading."""
    summary = [
        _bullets(fits_headline(documents)),
        *map(_matrix, matrices(documents)),
        LEGEND,
        *map(_orders, all_in_turn(documents)),
        _bullets(verdict_lines(documents)),
    ]
    sections = [
        f"## {printable(cell(section_title(documents, one)))}\n\n{render_fit(one).decode()}"
        for one in documents.documents
    ]
    return "\n".join([printable("\n\n".join(filter(None, summary)) + "\n"), *sections]).encode()


def _bullets(lines: list[str]) -> str:
    return "\n".join(f"- {prose(line, ' ')}" for line in lines)


def _matrix(matrix: Matrix) -> str:
    title = f"**{cell(matrix.title)}**\n\n" if matrix.title else ""
    return title + _pipe([[cell(text) for text in row] for row in matrix.rows], [*map(cell, matrix.headers)])


def _orders(orders: Orders) -> str:
    """What to order for all scenarios of a profile."""
    rows = [offer_row(line, line.lots) for line in orders.lines if line.priced]
    said = _bullets(list(offer_words(orders.lines)))
    return f"**{cell(orders.title)}**\n\n{_pipe(_escaped(rows), list(PRICE_HEADERS))}\n\n{said}".rstrip()


def _start(document: FitDocument, row: CardRow, start: StartFigures) -> str:
    """One card's parts, what they come to, and the command."""
    parts = _pipe([[cell(text) for text in line] for line in part_rows(start)], list(PART_HEADERS))
    answer = "\n".join(f"- {prose(line)}" for line in answer_lines(document, row, start))
    given = [f"{prose(what)}\n\n```sh\n{command}\n```" for what, command in commands(row, start)]
    return "\n\n".join([f"**{cell(start.holds_for)}**", parts, answer, *given])


def _escaped(rows: list[list[str]]) -> list[list[str]]:
    return [[cell(text) for text in line] for line in rows]


def _pipe(rows: list[list[str]], headers: list[str]) -> str:
    return tabulate(rows, headers=headers, tablefmt="pipe", disable_numparse=True)


def cell(text: str) -> str:
    """Text of a table's cell, every sign shown as it is."""
    return prose(text, " ").replace("|", "\\|")


_SPECIAL = re.compile(r"[\\`*<&\[]")
"""What would begin a tag, an entity, a link, code or emphasis: a name in somebody's file is shown as it is."""


def prose(text: str, line_end: str = "\n") -> str:
    """Text outside a table, every sign shown as it is."""
    return _SPECIAL.sub(r"\\\g<0>", text).replace("\n", line_end)
