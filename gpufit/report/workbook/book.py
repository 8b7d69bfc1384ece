"""A workbook file: sheets one after the other, no time of writing, no text that runs as a formula."""

from __future__ import annotations

import datetime
import io
from typing import Self

import xlsxwriter

from gpufit.report.cells import printable
from gpufit.report.workbook.paper import FORMATS, Paper

_EPOCH = datetime.datetime(2000, 1, 1)

_OPTIONS = {"in_memory": True, "strings_to_formulas": False, "strings_to_urls": False, "nan_inf_to_errors": False}


class Workbook:
    """A workbook that is written in memory; the same sheets always give the same bytes."""

    def __init__(self, title: str) -> None:
        self._buffer = io.BytesIO()
        self.book = xlsxwriter.Workbook(self._buffer, _OPTIONS)
        # A fixed date: the same document gives the same file, whenever it is written.
        self.book.set_properties({"created": _EPOCH, "title": printable(title)[:255]})
        self._formats = {name: self.book.add_format(spec) for name, spec in FORMATS.items()}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.book.close()

    def paper(self, name: str) -> Paper:
        """A new sheet, after those there are."""
        return Paper(self.book.add_worksheet(name), self._formats)

    @property
    def content(self) -> bytes:
        """The file, once it is closed."""
        return self._buffer.getvalue()
