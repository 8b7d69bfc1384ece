"""A comparison as one page that opens offline: what it comes to, phases, parts and what differs."""

from __future__ import annotations

from gpufit.report.compare_document import CompareDocument
from gpufit.report.compare_table import compare_report
from gpufit.report.tabular_formats.html import render_tables

BINARY = False


def render_compare(document: CompareDocument) -> bytes:
    """Its tables on a page."""
    return render_tables(compare_report(document))
