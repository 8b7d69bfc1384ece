"""A comparison as CSV, one row a part of a phase, `allocated_bytes` last: UTF-8, blank for what is not known."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from gpufit.advice.comparison import PhaseDifference
from gpufit.report.cells import Value
from gpufit.report.compare_document import CompareDocument
from gpufit.report.compare_text import accounts_words
from gpufit.report.formats.csv import guard

BINARY = False

HEADER = (
    "a", "b", "context_tokens", "new_tokens", "concurrency", "phase", "part", "a_bytes", "b_bytes", "difference_bytes",
    "beyond_intervals", "accounts", "a_evidence", "b_evidence",
)  # fmt: skip


def render_compare(document: CompareDocument) -> bytes:
    """Every part of every phase, and the sum of each."""
    scenario = document.scenario
    question = (
        document.a.profile, document.b.profile, scenario.context_tokens, scenario.new_tokens, scenario.concurrency
    )  # fmt: skip
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for phase in document.phases:
        writer.writerows([guard(value) for value in (*question, *row)] for row in _rows(phase))
    return text.getvalue().encode()


def _rows(phase: PhaseDifference) -> Iterator[tuple[Value, ...]]:
    evidence = tuple(None if side is None else str(side.evidence) for side in (phase.a, phase.b))
    for part in phase.parts:
        accounts = "; ".join(accounts_words(part))
        sizes = (part.a_bytes, part.b_bytes, part.difference_bytes)
        yield (str(phase.phase), part.part, *sizes, _said(part.beyond_intervals), accounts, *evidence)
    totals = tuple(None if side is None else side.allocated_bytes for side in (phase.a, phase.b))
    beyond = _said(phase.beyond_intervals)
    yield (str(phase.phase), "allocated_bytes", *totals, phase.difference_bytes, beyond, "", *evidence)


def _said(beyond: bool | None) -> str | None:
    return None if beyond is None else str(beyond).lower()
