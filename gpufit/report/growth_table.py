"""The growth of a cache as tables: its figures, what more costs, and one sequence at every length that is drawn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from gpufit.profile.evidence import Evidence
from gpufit.report.asked import asked_of
from gpufit.report.growth import GrowthDocument, GrowthPoint, GrowthStep
from gpufit.report.growth_chart import growth_chart
from gpufit.report.summary import growth_sentence
from gpufit.report.tabular import Column, Table, TabularReport, count_text, size_text, table_of


def growth_report(document: GrowthDocument) -> TabularReport:
    """How memory grows with use."""
    growth = document.growth
    return TabularReport(
        kind="growth",
        title=f"{document.model.name}: how memory grows with use",
        document=document,
        question=asked_of(document),
        sentences=(document.why_none if growth is None else f"{growth_sentence(growth)} ({growth.evidence})",),
        tables=(_figures(document), _steps(document), _points(document)),
        notes=document.notes,
        chart=growth_chart(document),
    )


class _Figure(NamedTuple):
    what: str
    size_bytes: int
    tokens: int | None
    """Up to which it holds, or that it is of."""
    evidence: Evidence | None


def _figures(document: GrowthDocument) -> Table:
    columns: tuple[Column[_Figure], ...] = (
        Column("what", "what", lambda one: one.what, words=True),
        Column("size_bytes", "size", lambda one: one.size_bytes, size_text, whole=True),
        Column("tokens", "tokens", lambda one: one.tokens, count_text),
        Column("evidence", "evidence", lambda one: None if one.evidence is None else str(one.evidence), words=True),
    )
    after = "" if document.growth is None else f", as seen after {document.growth.phase}"
    return table_of("growth", "The cache", columns, _held(document), f"What the KV cache holds{after}.")


def _held(document: GrowthDocument) -> Iterator[_Figure]:
    growth, scenario = document.growth, document.scenario
    if growth is None:
        return
    evidence, at_the_end = growth.evidence, document.sequence_evidence
    yield _Figure("state of a sequence", growth.state_bytes_per_sequence, None, evidence)
    yield _Figure("a token", growth.bytes_per_token, 1, evidence)
    if growth.knee_tokens is not None:
        within = growth.bytes_per_token_within_knee
        yield _Figure("more for each token up to the knee", within, growth.knee_tokens, evidence)
    yield _Figure("held once, for all sequences", growth.shared_bytes, None, evidence)
    if document.sequence_bytes is not None and document.all_sequences_bytes is not None:
        cached = scenario.cached_tokens
        yield _Figure("one sequence at the end of the scenario", document.sequence_bytes, cached, at_the_end)
        every = cached * scenario.concurrency
        yield _Figure("all sequences of the scenario", document.all_sequences_bytes, every, at_the_end)


def _steps(document: GrowthDocument) -> Table:
    columns: tuple[Column[GrowthStep], ...] = (
        Column("what", "what", lambda one: one.what, words=True),
        Column("allocated_bytes", "allocated", lambda one: one.allocated_bytes, size_text, whole=True),
        Column("kv_cache_bytes", "of it KV cache", lambda one: one.kv_cache_bytes, size_text, whole=True),
        Column("evidence", "evidence", lambda one: str(one.evidence), words=True),
    )
    caption = "More allocated at the highest peak, all phases considered."
    return table_of("steps", "What more costs", columns, document.steps, caption)


def _points(document: GrowthDocument) -> Table:
    columns: tuple[Column[GrowthPoint], ...] = (
        Column("tokens", "tokens", lambda one: one.tokens, count_text),
        Column("cache_bytes", "KV cache", lambda one: one.cache_bytes, size_text, whole=True),
        Column("evidence", "evidence", lambda one: str(one.evidence), words=True),
    )
    return table_of("points", "One sequence", columns, document.points, "What it holds at each length.", detail=True)
