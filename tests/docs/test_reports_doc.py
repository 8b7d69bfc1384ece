"""docs/reports.md names every format, ending and sheet, and no other."""

from __future__ import annotations

import re

from model_files import REPOSITORY
from report.report_builders import hard_document
from report.report_readers import as_workbook

from gpufit.report.registry import EXTENSIONS

PAGE = (REPOSITORY / "docs" / "reports.md").read_text(encoding="utf-8")


def test_every_format_stands_there_with_its_ending() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `(\.\w+)` \|", PAGE, re.MULTILINE)
    assert {ending: name for name, ending in rows} == EXTENSIONS


def test_every_sheet_of_the_workbook_stands_there_in_its_order() -> None:
    section = PAGE.split("## The workbook")[1].split("## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == as_workbook(hard_document()).sheetnames
