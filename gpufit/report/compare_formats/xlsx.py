"""A comparison as a workbook: `summary`, then a sheet each for phases, parts and what differs; sizes in bytes."""

from __future__ import annotations

from gpufit.report.compare_document import CompareDocument
from gpufit.report.compare_table import compare_report
from gpufit.report.tabular_formats.xlsx import render_tables

BINARY = True


def render_compare(document: CompareDocument) -> bytes:
    """Its tables, a sheet each."""
    return render_tables(compare_report(document))
