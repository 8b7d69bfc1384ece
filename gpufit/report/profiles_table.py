"""The profiles there are as a table: a row a profile."""

from __future__ import annotations

from gpufit.report.asked import nothing_asked
from gpufit.report.cells import Value
from gpufit.report.precision_words import compute_words, dtypes_of
from gpufit.report.profiles import ProfileRow, ProfilesDocument
from gpufit.report.profiles_text import cell_words, minute_text
from gpufit.report.tabular import Column, TabularReport, count_text, size_text, table_of, tokens_text
from gpufit.units import format_tokens


def starts_at(row: ProfileRow) -> str | None:
    """The scenario as the command line takes it, `8kx16+256`; None where there is none."""
    if row.starts_at is None:
        return None
    new = f"+{row.starts_at.new_tokens}" if row.starts_at.new_tokens else ""
    return f"{format_tokens(row.starts_at.context_tokens)}x{row.starts_at.concurrency}{new}"


def _starts(row: ProfileRow, key: str) -> Value:
    value: Value = None if row.starts_at is None else getattr(row.starts_at, key)
    return value


_COLUMNS: tuple[Column[ProfileRow], ...] = (
    Column("model", "model", lambda one: one.model.name, words=True),
    Column("evidence", "evidence", lambda one: str(one.evidence), words=True),
    Column("device", "device", lambda one: one.device, words=True),
    Column("device_total_bytes", "memory of the device", lambda one: one.device_total_bytes, size_text, detail=True),
    Column("created_at", "made (UTC)", lambda one: one.created_at, lambda value: minute_text(str(value)), words=True),
    Column("complete", "complete", lambda one: "yes" if one.complete else "no", words=True, detail=True),
    Column("cells", "cells", cell_words, words=True),
    Column("cells_completed", "cells that ran", lambda one: one.cells_completed, count_text, detail=True),
    Column("cells_out_of_memory", "out of memory", lambda one: one.cells_out_of_memory, count_text, detail=True),
    Column("cells_failed", "failed", lambda one: one.cells_failed, count_text, detail=True),
    Column("cells_skipped", "skipped", lambda one: one.cells_skipped, count_text, detail=True),
    Column("engine", "engine", lambda one: one.engine.name, words=True),
    Column("engine_version", "version", lambda one: one.engine.version, words=True),
    Column("attention", "attention", lambda one: one.engine.attention, words=True, detail=True),
    Column("architecture", "class", lambda one: one.model.architecture, words=True, detail=True),
    Column("parameters", "parameters", lambda one: one.model.parameters, count_text, detail=True),
    Column("position_limit_tokens", "positions", lambda one: one.model.position_limit, tokens_text, detail=True),
    Column("stored_dtype", "stored", lambda one: dtypes_of(one.precision.stored), words=True, detail=True),
    Column("resident_dtype", "resident", lambda one: dtypes_of(one.precision.resident), words=True),
    Column("compute_dtype", "compute", lambda one: compute_words(one.precision), words=True, detail=True),
    Column("kv_dtype", "KV dtype", lambda one: dtypes_of(one.precision.kv), words=True, detail=True),
    Column("starts_at", "starts at", starts_at, words=True),
    Column("context_tokens", "context", lambda one: _starts(one, "context_tokens"), tokens_text, detail=True),
    Column("new_tokens", "new tokens", lambda one: _starts(one, "new_tokens"), count_text, detail=True),
    Column("concurrency", "at once", lambda one: _starts(one, "concurrency"), count_text, detail=True),
    Column("profile", "file", lambda one: one.profile, words=True),
    Column("why_not", "why it cannot answer", lambda one: one.why_not or None, words=True),
    Column("model_source", "read from", lambda one: one.model.source, words=True, detail=True),
    Column("notes", "notes", lambda one: "; ".join(one.notes) or None, words=True),
)


def profiles_report(document: ProfilesDocument) -> TabularReport:
    """Every profile with its evidence, device and date."""
    count = len(document.profiles)
    caption = (
        "Cells that ran were measured or simulated, as the evidence says; a profile without cells answers by rules."
    )
    return TabularReport(
        kind="profiles",
        title="1 profile" if count == 1 else f"{count} profiles",
        document=document,
        question=nothing_asked(),
        sentences=(),
        tables=(table_of("profiles", "Profiles", _COLUMNS, document.profiles, caption),),
        notes=(),
    )
