"""A row a card, arrangement and seller as CSV: UTF-8, units in the header, dot decimals, blank for what is unknown."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from gpufit.report.cells import Value, printable
from gpufit.report.columns import columns_of, question_columns_of
from gpufit.report.document import FitDocument
from gpufit.report.fits_document import FitsDocument
from gpufit.report.rows import rows_of

BINARY = False

FORMULA_STARTS = ("=", "+", "-", "@")
"""A spreadsheet runs a text cell that begins so as a formula; a leading apostrophe stops it.
https://owasp.org/www-community/attacks/CSV_Injection"""


def render_fit(document: FitDocument) -> bytes:
    """The cards table with every column of `report.columns`: a row for each way to take a card, its best first, and
    for each seller who prices it."""
    columns = columns_of(document)
    rows = ([column.value(document, row) for column in columns] for row in rows_of(document))
    return lines([column.key for column in columns], rows)


def render_fits(documents: FitsDocument) -> bytes:
    """The same of several questions, after columns that say which question it is."""
    columns = question_columns_of(documents)
    rows = (
        [column.value(document, row) for column in columns]
        for document in documents.documents
        for row in rows_of(document)
    )
    return lines([column.key for column in columns], rows)


def lines(header: Iterable[str], rows: Iterable[Iterable[Value]]) -> bytes:
    """A table as CSV, every text made harmless."""
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
