"""The document behind the tables as JSON: whole bytes, null for what is not known, no NaN."""

from __future__ import annotations

import msgspec

from gpufit.report.tabular import TabularReport

BINARY = False


def render_tables(report: TabularReport) -> bytes:
    """Indented JSON with a final newline; non-ASCII text stays readable."""
    return msgspec.json.format(msgspec.json.encode(report.document), indent=1) + b"\n"
