"""The sheet of several questions to read and print: cards x scenarios, and what to order for all of them."""

from __future__ import annotations

from typing import Any

from gpufit.report.fits_document import FitsDocument
from gpufit.report.fits_text import LEGEND_IN_CARDS, fits_headline, matrices_in_cards, to_order, verdict_lines
from gpufit.report.workbook.orders import CHEAPEST, write_orders
from gpufit.report.workbook.paper import Paper
from gpufit.report.workbook.prices import PriceTable


def write_matrices(paper: Paper, documents: FitsDocument, table: PriceTable, book: Any) -> None:
    """What was asked, the matrix of each profile, each cell coloured by its verdict, and what serves all scenarios: in
    cards, since lots follow the `prices` sheet."""
    for number, line in enumerate(fits_headline(documents)):
        paper.text(number, 0, line, "dim" if number else "bold", measured=False)
    at = len(fits_headline(documents)) + 1
    for matrix in matrices_in_cards(documents):
        if matrix.title:
            paper.text(at, 0, matrix.title, "bold", measured=False)
            at += 1
        paper.header(at, matrix.headers, range(len(matrix.headers)))
        for number, row in enumerate(matrix.rows, start=at + 1):
            for index, text in enumerate(row):
                answer = matrix.answer(row[0], index)
                paper.text(number, index, text, "words" if answer is None else f"answer {answer}")
        at += len(matrix.rows) + 2
    for order in to_order(documents):
        paper.text(at, 0, order.title, "bold", measured=False)
        at = write_orders(paper, at + 1, order.lines, table, book) + 1
    legend = (LEGEND_IN_CARDS, CHEAPEST, *verdict_lines(documents))
    for number, line in enumerate(legend, start=at):
        paper.text(number, 0, line, "dim", measured=False)
    paper.fit_columns()
    paper.landscape(None)
