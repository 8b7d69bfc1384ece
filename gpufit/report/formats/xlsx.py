"""The document as a workbook to read, to filter and to re-price. Numbers are numbers, in the units of their headers."""

from __future__ import annotations

from gpufit.report.document import FitDocument
from gpufit.report.fits_document import FitsDocument
from gpufit.report.fits_text import section_title
from gpufit.report.workbook import parts, plans, prices, scenario
from gpufit.report.workbook.book import Workbook
from gpufit.report.workbook.cards import write_all_cards, write_cards, write_summary
from gpufit.report.workbook.evidence import write_evidence
from gpufit.report.workbook.prices import PriceTable
from gpufit.report.workbook.questions import write_matrices

BINARY = True


def render_fit(document: FitDocument) -> bytes:
    """Sheets: `summary` (to read and print), `chart` (parts against ceilings), `cards` (every figure, one row a card,
    sizes in GiB), `prices` (each seller's lots and prices to change, totals by formula), `arrangements` (several of a
    card, and what would make one do), `parts` (what the chart draws), `scenario` (the question, and bytes by phase),
    `evidence` (behind each figure, and in words)."""
    with Workbook(f"gpufit: {document.model.name}") as made:
        table, asked = PriceTable.of(document), [("", document)]
        write_summary(made.paper("summary"), document, table, made.book)
        chart = made.paper("chart") if document.cards else None
        write_cards(made.paper("cards"), document, table, made.book)
        table.write(made.paper(prices.SHEET), made.book)
        if any(row.arrangements or row.changes for row in document.cards):
            plans.write_plans(made.paper(plans.SHEET), document, table)
        headers = parts.write_parts(made.paper(parts.SHEET), asked)
        if chart is not None:
            parts.write_charts(chart, made.book, asked, headers)
        scenario.write_scenario(made.paper(scenario.SHEET), document)
        write_evidence(made.paper("evidence"), document)
    return made.content


def render_fits(documents: FitsDocument) -> bytes:
    """Sheets for several questions: `summary` (cards x scenarios, and what to order for all), `chart` (parts against
    ceilings, a chart a question), `cards` (every figure, a row for each way to take a card and each seller at each
    question, sizes in GiB), `prices` (each seller's lots and prices to change), `parts` (what the charts draw)."""
    with Workbook(f"gpufit: {len(documents.documents)} questions") as made:
        table = PriceTable.of_all(documents)
        asked = [(section_title(documents, one), one) for one in documents.documents if one.cards]
        write_matrices(made.paper("summary"), documents, table, made.book)
        chart = made.paper("chart")
        write_all_cards(made.paper("cards"), documents, table, made.book)
        table.write(made.paper(prices.SHEET), made.book)
        parts.write_charts(chart, made.book, asked, parts.write_parts(made.paper(parts.SHEET), asked))
    return made.content
