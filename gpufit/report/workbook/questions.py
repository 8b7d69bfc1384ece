"""The sheets of several questions: cards x scenarios to read and print, and every figure of every card."""

from __future__ import annotations

from typing import Any

from gpufit.report.columns import question_columns_of
from gpufit.report.fits_document import FitsDocument
from gpufit.report.fits_text import LEGEND, fits_headline, matrices, verdict_lines
from gpufit.report.rows import rows_of
from gpufit.report.workbook.cards import header_of
from gpufit.report.workbook.paper import Paper
from gpufit.report.workbook.verdicts import colour_verdicts


def write_matrices(paper: Paper, documents: FitsDocument) -> None:
    """What was asked, the matrix of each profile, each cell coloured by its verdict, and what serves all scenarios."""
    for number, line in enumerate(fits_headline(documents)):
        paper.text(number, 0, line, "dim" if number else "bold", measured=False)
    at = len(fits_headline(documents)) + 1
    for matrix in matrices(documents):
        if matrix.title:
            paper.text(at, 0, matrix.title, "bold", measured=False)
            at += 1
        paper.header(at, matrix.headers, range(len(matrix.headers)))
        for number, row in enumerate(matrix.rows, start=at + 1):
            for index, text in enumerate(row):
                answer = matrix.answer(row[0], index)
                paper.text(number, index, text, "words" if answer is None else f"answer {answer}")
        at += len(matrix.rows) + 2
    for number, line in enumerate((LEGEND, *verdict_lines(documents)), start=at):
        paper.text(number, 0, line, "dim", measured=False)
    paper.fit_columns()
    paper.landscape(None)


def write_all_cards(paper: Paper, documents: FitsDocument, book: Any) -> None:
    """Every figure of every card, arrangement and seller at every question, for formulas and filters."""
    columns = question_columns_of(documents)
    keys = [column.key for column in columns]
    rows = [(document, row) for document in documents.documents for row in rows_of(document)]
    words = set()
    for number, (document, row) in enumerate(rows, start=1):
        for index, column in enumerate(columns):
            value = column.value(document, row)
            words |= {index} if isinstance(value, str) else set()
            paper.value(number, index, value, column.key)
    paper.header(0, [header_of(column) for column in columns], words)
    colour_verdicts(paper, book, 1, len(rows), keys.index("verdict"), readable=False)
    paper.sheet.freeze_panes(1, keys.index("card") + 1)
    paper.sheet.autofilter(0, 0, len(rows), len(columns) - 1)
    paper.fit_columns()
    paper.landscape(0, pages=3)
