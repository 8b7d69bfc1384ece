"""One row a card and seller as CSV: UTF-8, units in the header, dot decimals, blank for what is not known."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

from gpufit.report.cells import Value, by_seller, printable
from gpufit.report.columns import columns_of, question_columns_of
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.fits_document import FitsDocument

BINARY = False

FORMULA_STARTS = ("=", "+", "-", "@")
"""A spreadsheet runs a text cell that begins so as a formula; a leading apostrophe stops it.
https://owasp.org/www-community/attacks/CSV_Injection"""


def render_fit(document: FitDocument) -> bytes:
    """The cards table with every column of `report.columns`; a card that several sellers price has a row for each."""
    columns = columns_of(document)
    rows = ([column.value(document, row) for column in columns] for row in _rows(document))
    return _lines([column.key for column in columns], rows)


def render_fits(documents: FitsDocument) -> bytes:
    """The same of several questions, after columns that say which question it is."""
    columns = question_columns_of(documents)
    rows = (
        [column.value(document, row) for column in columns]
        for document in documents.documents
        for row in _rows(document)
    )
    return _lines([column.key for column in columns], rows)


def _rows(document: FitDocument) -> Iterator[CardRow]:
    for card in document.cards:
        yield from by_seller(card)


def _lines(header: Iterable[str], rows: Iterable[Iterable[Value]]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(map(guard, row) for row in rows)
    return text.getvalue().encode()


def guard(value: Value) -> Value:
    """Text that a spreadsheet would take for a formula, or a reader for the end of a row, made harmless."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
