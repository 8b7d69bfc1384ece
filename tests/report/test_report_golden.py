"""One document with every hard value, in every format, byte for byte.

`UPDATE_GOLDEN=1 pytest tests/report` writes the files anew; read the difference before it is kept.
"""

from __future__ import annotations

import datetime
import io
import os
import zipfile
from pathlib import Path

import openpyxl
import pytest
from report_builders import hard_document

from gpufit.report.registry import EXTENSIONS, FORMATS, load_format

GOLDEN = Path(__file__).parent / "golden"


def cells_of(workbook: bytes) -> bytes:
    """A workbook as text, a cell a line: sheet, cell, kind, value, number format."""
    book = openpyxl.load_workbook(io.BytesIO(workbook))
    lines = [
        f"{sheet.title}!{cell.coordinate}\t{cell.data_type}\t{cell.value!r}\t{cell.number_format}"
        for sheet in book
        for row in sheet.iter_rows()
        for cell in row
        if cell.value is not None
    ]
    return ("\n".join(lines) + "\n").encode()


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_hard_document_renders_as_the_golden_file_says(name: str) -> None:
    extension = next(one for one, format_name in EXTENSIONS.items() if format_name == name)
    rendered = load_format(name).render_fit(hard_document())
    found = cells_of(rendered) if name == "xlsx" else rendered
    path = GOLDEN / f"hard{extension}{'.cells' if name == 'xlsx' else ''}"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_bytes(found)
    assert found.decode() == path.read_bytes().decode()


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_the_same_document_gives_the_same_bytes(name: str) -> None:
    render = load_format(name).render_fit
    assert render(hard_document()) == render(hard_document())


def test_a_workbook_carries_no_time_of_writing() -> None:
    workbook = load_format("xlsx").render_fit(hard_document())
    properties = openpyxl.load_workbook(io.BytesIO(workbook)).properties
    assert properties.created == properties.modified == datetime.datetime(2000, 1, 1)
    with zipfile.ZipFile(io.BytesIO(workbook)) as members:
        assert {member.date_time for member in members.infolist()} == {(1980, 1, 1, 0, 0, 0)}
