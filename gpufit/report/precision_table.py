"""The precision of a model as tables: the dtypes of each column, and what each position of the switches comes to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gpufit.memory.held import TITLES
from gpufit.profile.evidence import Evidence
from gpufit.profile.precision import Precision
from gpufit.report.asked import asked_of
from gpufit.report.precision import PrecisionDocument, SwitchChoice
from gpufit.report.tabular import Column, Table, TabularReport, size_text, table_of


def precision_report(document: PrecisionDocument) -> TabularReport:
    """Stored, resident, computed and cached in which dtype; and what others would come to."""
    return TabularReport(
        kind="precision",
        title=f"{document.model.name}: precision",
        document=document,
        question=asked_of(document),
        sentences=(*(f"finding: {one}" for one in document.as_profiled.findings), *document.rules),
        tables=(_columns(document), _choices(document)),
        notes=document.notes,
    )


class _Share(NamedTuple):
    column: str
    of: str
    dtype: str
    size_bytes: int | None
    held: str
    evidence: Evidence | None


def _columns(document: PrecisionDocument) -> Table:
    columns: tuple[Column[_Share], ...] = (
        Column("column", "column", lambda one: one.column, lambda value: TITLES.get(value, value), words=True),
        Column("operations", "operations", lambda one: one.of or None, words=True),
        Column("dtype", "dtype", lambda one: one.dtype, words=True),
        Column("size_bytes", "size", lambda one: one.size_bytes, size_text, whole=True),
        Column("held", "held", lambda one: one.held, words=True),
        Column("evidence", "evidence", lambda one: None if one.evidence is None else str(one.evidence), words=True),
    )
    rows = [*_shares(document.as_profiled, "as profiled", document.profile_evidence)]
    if document.now != document.as_profiled:
        rows += _shares(document.now, "as switched", Evidence.SCALED)
    caption = (
        "What the files hold, what the weights are in memory, what operations run in and what the KV cache holds, each "
        "by itself; operations and cache have dtypes, no size of their own."
    )
    return table_of("columns", "The four columns", columns, rows, caption)


def _shares(precision: Precision, held: str, evidence: Evidence) -> Iterator[_Share]:
    for column, shares in (("stored", precision.stored), ("resident", precision.resident)):
        for share in shares:
            yield _Share(column, "", share.dtype, share.size_bytes, held, evidence)
    for one in precision.compute:
        for dtype in one.dtypes:
            yield _Share("compute", one.family, dtype, None, held, evidence)
    for share in precision.kv:
        yield _Share("kv_cache", "", share.dtype, None, held, evidence)


def _choices(document: PrecisionDocument) -> Table:
    columns: tuple[Column[SwitchChoice], ...] = (
        Column("switch", "switch", lambda one: one.switch, lambda value: TITLES[value], words=True),
        Column("value", "position", lambda one: one.value, words=True),
        Column("chosen", "chosen", lambda one: "yes" if one.chosen else "no", words=True),
        Column("phase", "phase", lambda one: None if one.phase is None else str(one.phase), words=True),
        Column("allocated_bytes", "allocated", lambda one: one.allocated_bytes, size_text),
        Column("allocated_lower_bytes", "lower", lambda one: one.allocated_lower_bytes, size_text),
        Column("allocated_upper_bytes", "upper", lambda one: one.allocated_upper_bytes, size_text),
        Column("evidence", "evidence", lambda one: None if one.evidence is None else str(one.evidence), words=True),
        Column("why_not", "why it cannot be chosen", lambda one: one.why_not or None, words=True),
    )
    caption = "What is allocated at the highest peak with one switch there and the others as they are set."
    return table_of("switches", "The switches", columns, document.choices, caption)
