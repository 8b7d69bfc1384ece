"""Times as a table: a row a cell."""

from __future__ import annotations

from gpufit.report.asked import asked
from gpufit.report.tabular import Column, TabularReport, count_text, table_of, tokens_text
from gpufit.report.times import NEVER_CARRIED, TimeRow, TimesDocument
from gpufit.report.times_text import inputs_rate_text, seconds_text, tokens_rate_text

_COLUMNS: tuple[Column[TimeRow], ...] = (
    Column("context_tokens", "context", lambda one: one.context_tokens, tokens_text),
    Column("new_tokens", "new tokens", lambda one: one.new_tokens, count_text),
    Column("concurrency", "at once", lambda one: one.concurrency, count_text),
    Column("outcome", "outcome", lambda one: one.outcome, words=True),
    Column("time_to_first_token_seconds", "first token", lambda one: one.time_to_first_token_seconds, seconds_text),
    Column("wall_seconds", "whole run", lambda one: one.wall_seconds, seconds_text),
    Column("inputs_completed", "inputs completed", lambda one: one.inputs_completed, count_text),
    Column("inputs_per_second", "inputs/s", lambda one: one.inputs_per_second, inputs_rate_text),
    Column(
        "generated_tokens_per_second",
        "generated tokens/s",
        lambda one: one.generated_tokens_per_second,
        tokens_rate_text,
    ),
    Column("prompt_tokens_per_second", "prompt tokens/s", lambda one: one.prompt_tokens_per_second, tokens_rate_text),
    Column("evidence", "evidence", lambda one: None if one.evidence is None else str(one.evidence), words=True),
)


def times_report(document: TimesDocument) -> TabularReport:
    """What each cell took."""
    caption = (
        "Times of untracked runs: the first token is that of the prefill of all sequences together, the whole run is "
        "prefill and all decode steps. Rates are counts over the time of the whole run."
    )
    return TabularReport(
        kind="times",
        title=f"{document.model.name}: times on {document.device}",
        document=document,
        question=asked(document.profile, document.model, document.engine, document.evidence, document.device),
        sentences=(*([document.why_none] if document.why_none else ()), NEVER_CARRIED),
        tables=(table_of("times", "Times by cell", _COLUMNS, document.rows, caption),),
        notes=document.notes,
    )
