"""The document as a workbook: cards, parts by phase, evidence. Numbers are numbers, in the units of their headers."""

from __future__ import annotations

import datetime
import io
from collections.abc import Sequence
from typing import Any

import xlsxwriter

from gpufit.advice.verdict import Verdict
from gpufit.profile.record import Parts
from gpufit.report.cells import PART_TITLES, Column, Value
from gpufit.report.columns import columns_of, question_columns_of, screen_columns_of
from gpufit.report.document import FitDocument
from gpufit.report.fits_document import FitsDocument
from gpufit.report.fits_text import LEGEND, fits_headline, matrices, verdict_lines
from gpufit.report.start_text import start_lines
from gpufit.report.summary import growth_line, headline, peak_line, precision_lines, remark_lines
from gpufit.units import GIB

BINARY = True

_COLOURS = {
    Verdict.FITS: "#C6EFCE",
    Verdict.TOO_CLOSE: "#FFEB9C",
    Verdict.DOES_NOT_FIT: "#FFC7CE",
    Verdict.UNKNOWN: "#E7E6E6",
}


def render_fit(document: FitDocument) -> bytes:
    """Four sheets: `summary` (to read and print), `cards` (every figure, one row a card, sizes in GiB), `parts`
    (bytes by phase), `evidence` (in words)."""
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, _OPTIONS) as book:
        # A fixed date: the same document gives the same file, whenever it is written.
        book.set_properties({"created": _EPOCH, "title": f"gpufit: {document.model.name}"})
        formats = {name: book.add_format(spec) for name, spec in _FORMATS.items()}
        _summary(book.add_worksheet("summary"), document, book, formats)
        _cards(book.add_worksheet("cards"), document, book, formats)
        _parts(book.add_worksheet("parts"), document, formats)
        _evidence(book.add_worksheet("evidence"), document, formats)
    return buffer.getvalue()


def render_fits(documents: FitsDocument) -> bytes:
    """Two sheets for several questions: `summary` (cards x scenarios) and `cards` (every figure, one row a card of each
    question, sizes in GiB)."""
    buffer = io.BytesIO()
    with xlsxwriter.Workbook(buffer, _OPTIONS) as book:
        book.set_properties({"created": _EPOCH, "title": f"gpufit: {len(documents.documents)} questions"})
        formats = {name: book.add_format(spec) for name, spec in _FORMATS.items()}
        _questions(book.add_worksheet("summary"), documents, formats)
        _all_cards(book.add_worksheet("cards"), documents, formats)
    return buffer.getvalue()


_EPOCH = datetime.datetime(2000, 1, 1)

_OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": False}

_FORMATS: dict[str, dict[str, Any]] = {
    "head": {"bold": True, "bottom": 1, "text_wrap": True, "valign": "top"},
    "bold": {"bold": True},
    "gib": {"num_format": "#,##0.00"},
    "count": {"num_format": "#,##0"},
    "money": {"num_format": "#,##0.00"},
    "wrap": {"text_wrap": True, "valign": "top"},
}


def _header(column: Column) -> str:
    if column.key.endswith("_bytes"):
        return f"{column.title} (GiB)"
    if column.key.endswith("_tokens") and not column.title.endswith("tokens"):
        return f"{column.title} (tokens)"
    return column.title


def _write(sheet: Any, row: int, index: int, column: Column, value: Value, formats: dict[str, Any]) -> None:
    if value is None:
        sheet.write_blank(row, index, None)
    elif isinstance(value, str):
        sheet.write_string(row, index, value)
    elif column.key.endswith("_bytes"):
        sheet.write_number(row, index, value / GIB, formats["gib"])
    else:
        sheet.write_number(row, index, value, formats["money" if isinstance(value, float) else "count"])


def _summary(sheet: Any, document: FitDocument, book: Any, formats: dict[str, Any]) -> None:
    """What a person reads and prints: the headline, the columns of the terminal's table, and the remarks."""
    prices = (column for column in columns_of(document) if column.key.startswith("total_price"))
    columns = [*screen_columns_of(document), *prices]
    first = 3
    _table(sheet, first, columns, document, book, formats)
    sheet.autofit()
    for number, line in enumerate(headline(document).splitlines()):
        sheet.write_string(number, 0, line, formats["bold"])
    for number, line in enumerate(remark_lines(document), start=first + len(document.cards) + 2):
        sheet.write_string(number, 0, line)
    sheet.freeze_panes(first + 1, 1)
    sheet.set_landscape()
    sheet.set_paper(9)  # A4
    sheet.fit_to_pages(1, 0)


def _cards(sheet: Any, document: FitDocument, book: Any, formats: dict[str, Any]) -> None:
    """Every figure of every card, for formulas and filters."""
    columns = columns_of(document)
    _table(sheet, 0, columns, document, book, formats)
    sheet.freeze_panes(1, [column.key for column in columns].index("card") + 1)
    sheet.autofilter(0, 0, len(document.cards), len(columns) - 1)
    sheet.autofit()


def _table(
    sheet: Any, first: int, columns: Sequence[Column], document: FitDocument, book: Any, formats: dict[str, Any]
) -> None:
    """A header in row `first`, then a row a card, the verdicts coloured."""
    for index, column in enumerate(columns):
        sheet.write_string(first, index, _header(column), formats["head"])
    for number, row in enumerate(document.cards, start=first + 1):
        for index, column in enumerate(columns):
            _write(sheet, number, index, column, column.value(document, row), formats)
    at = [column.key for column in columns].index("verdict")
    for verdict, colour in _COLOURS.items():
        rule = {
            "type": "cell",
            "criteria": "==",
            "value": f'"{verdict}"',
            "format": book.add_format({"bg_color": colour}),
        }
        sheet.conditional_format(first + 1, at, first + len(document.cards), at, rule)


def _parts(sheet: Any, document: FitDocument, formats: dict[str, Any]) -> None:
    sheet.write_row(0, 0, ["part (bytes)", *document.phases], formats["head"])
    for number, name in enumerate(Parts.NAMES, start=1):
        sheet.write_string(number, 0, PART_TITLES[name])
        for index, figures in enumerate(document.phases.values(), start=1):
            sheet.write_number(number, index, getattr(figures.parts, name), formats["count"])
    total = len(Parts.NAMES) + 1
    sheet.write_string(total, 0, "allocated (sum of the parts)", formats["bold"])
    for index, figures in enumerate(document.phases.values(), start=1):
        letter = chr(ord("A") + index)
        sheet.write_formula(total, index, f"=SUM({letter}2:{letter}{total})", formats["count"], figures.allocated_bytes)
    rows = (("allocated, lower", "allocated_lower_bytes"), ("allocated, upper", "allocated_upper_bytes"))
    for offset, (title, key) in enumerate(rows, start=1):
        sheet.write_string(total + offset, 0, title)
        for index, figures in enumerate(document.phases.values(), start=1):
            sheet.write_number(total + offset, index, getattr(figures, key), formats["count"])
    sheet.write_string(total + 3, 0, "evidence")
    for index, figures in enumerate(document.phases.values(), start=1):
        sheet.write_string(total + 3, index, str(figures.evidence))
    sheet.autofit()


def _evidence(sheet: Any, document: FitDocument, formats: dict[str, Any]) -> None:
    lines = [
        *headline(document).splitlines(),
        f"profile: {document.profile}",
        f"offers: {document.offers}",
        f"gpufit {document.gpufit_version}, document schema {document.schema_version}",
        *precision_lines(document.precision),
        growth_line(document),
        peak_line(document),
        *start_lines(document),
        *(f"assumed: {line}" for line in document.assumptions),
        *(f"note: {line}" for line in (*document.notes, *remark_lines(document))),
    ]
    sheet.set_column(0, 0, 120)
    for number, line in enumerate(lines):
        sheet.write_string(number, 0, line, formats["wrap"])


def _questions(sheet: Any, documents: FitsDocument, formats: dict[str, Any]) -> None:
    """The matrix of each profile, with what the questions were and what serves all scenarios below."""
    at = 0
    for matrix in matrices(documents):
        if matrix.title:
            sheet.write_string(at, 0, matrix.title, formats["bold"])
            at += 1
        for number, cells in enumerate((matrix.headers, *matrix.rows), start=at):
            for index, text in enumerate(cells):
                sheet.write_string(number, index, text, formats["head"] if number == at else None)
        at += len(matrix.rows) + 2
    sheet.autofit()
    for number, line in enumerate((LEGEND, *verdict_lines(documents), "", *fits_headline(documents)), start=at):
        sheet.write_string(number, 0, line)
    sheet.set_landscape()
    sheet.set_paper(9)  # A4
    sheet.fit_to_pages(1, 0)


def _all_cards(sheet: Any, documents: FitsDocument, formats: dict[str, Any]) -> None:
    """Every figure of every card at every question."""
    columns = question_columns_of(documents)
    for index, column in enumerate(columns):
        sheet.write_string(0, index, _header(column), formats["head"])
    rows = [(document, row) for document in documents.documents for row in document.cards]
    for number, (document, row) in enumerate(rows, start=1):
        for index, column in enumerate(columns):
            _write(sheet, number, index, column, column.value(document, row), formats)
    sheet.freeze_panes(1, [column.key for column in columns].index("card") + 1)
    sheet.autofilter(0, 0, len(rows), len(columns) - 1)
    sheet.autofit()
