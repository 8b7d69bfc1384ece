"""The document as a workbook to read, to filter and to re-price. Numbers are numbers, in the units of their headers."""

from __future__ import annotations

import datetime
import io

import xlsxwriter

from gpufit.report.cells import printable
from gpufit.report.document import FitDocument
from gpufit.report.fits_document import FitsDocument
from gpufit.report.workbook import parts, plans, prices, scenario
from gpufit.report.workbook.cards import write_cards, write_summary
from gpufit.report.workbook.evidence import write_evidence
from gpufit.report.workbook.paper import FORMATS, Paper
from gpufit.report.workbook.questions import write_all_cards, write_matrices

BINARY = True

_EPOCH = datetime.datetime(2000, 1, 1)

_OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": False}


def render_fit(document: FitDocument) -> bytes:
    """Sheets: `summary` (to read and print), `chart` (parts against ceilings), `cards` (every figure, one row a card,
    sizes in GiB), `prices` (the seller's lots and prices to change, totals by formula), `arrangements` (several of a
    card, and what would make one do), `parts` (what the chart draws), `scenario` (the question, and bytes by phase),
    `evidence` (behind each figure, and in words)."""
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, _OPTIONS) as book:
        # A fixed date: the same document gives the same file, whenever it is written.
        book.set_properties({"created": _EPOCH, "title": printable(f"gpufit: {document.model.name}")[:255]})
        formats = {name: book.add_format(spec) for name, spec in FORMATS.items()}

        def paper(name: str) -> Paper:
            return Paper(book.add_worksheet(name), formats)

        write_summary(paper("summary"), document, book)
        if document.cards:
            chart = paper("chart")
            words = {"description": "Stacked columns of each card's parts in GiB, with its capacity as a dash."}
            chart.sheet.insert_chart(0, 0, parts.ceilings_chart(book, document), words)
            chart.landscape(None)
            chart.sheet.hide_gridlines(2)
        write_cards(paper("cards"), document, book)
        prices.write_prices(paper(prices.SHEET), document, book)
        if any(row.arrangements or row.changes for row in document.cards):
            plans.write_plans(paper(plans.SHEET), document)
        parts.write_parts(paper(parts.SHEET), document)
        scenario.write_scenario(paper(scenario.SHEET), document)
        write_evidence(paper("evidence"), document)
    return buffer.getvalue()


def render_fits(documents: FitsDocument) -> bytes:
    """Two sheets for several questions: `summary` (cards x scenarios) and `cards` (every figure, one row a card of each
    question, sizes in GiB)."""
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, _OPTIONS) as book:
        book.set_properties({"created": _EPOCH, "title": f"gpufit: {len(documents.documents)} questions"})
        formats = {name: book.add_format(spec) for name, spec in FORMATS.items()}
        write_matrices(Paper(book.add_worksheet("summary"), formats), documents)
        write_all_cards(Paper(book.add_worksheet("cards"), formats), documents, book)
    return buffer.getvalue()
