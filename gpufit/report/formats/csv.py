"""One row a card and seller as CSV: UTF-8, units in the header, dot decimals, blank for what is not known."""

from __future__ import annotations

import csv
import io

from gpufit.report.cells import Value, by_seller, printable
from gpufit.report.columns import columns_of
from gpufit.report.document import FitDocument

BINARY = False

FORMULA_STARTS = ("=", "+", "-", "@")
"""A spreadsheet runs a text cell that begins so as a formula; a leading apostrophe stops it.
https://owasp.org/www-community/attacks/CSV_Injection"""


def render_fit(document: FitDocument) -> bytes:
    """The cards table with every column of `report.columns`; a card that several sellers price has a row for each."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    columns = columns_of(document)
    writer.writerow(column.key for column in columns)
    for row in (sold for card in document.cards for sold in by_seller(card)):
        writer.writerow(guard(column.value(document, row)) for column in columns)
    return text.getvalue().encode()


def guard(value: Value) -> Value:
    """Text that a spreadsheet would take for a formula, or a reader for the end of a row, made harmless."""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(FORMULA_STARTS) else text
