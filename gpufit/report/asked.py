"""What a document with tables answers, as a table of one row: the first columns of its CSV, the facts of its page."""

from __future__ import annotations

from typing import Any, Protocol

from gpufit.memory.held import AS_PROFILED
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.evidence import Evidence
from gpufit.report.document import Scenario
from gpufit.report.tabular import Column, Table, count_text, table_of, tokens_text
from gpufit.units import counted


class Answer(Protocol):
    """What every document that answers for a scenario says of it."""

    @property
    def profile(self) -> str:
        """The file."""
        ...

    @property
    def model(self) -> ModelInfo:
        """Which model."""
        ...

    @property
    def engine(self) -> Engine:
        """What ran it."""
        ...

    @property
    def evidence(self) -> Evidence:
        """The weakest of its figures."""
        ...

    @property
    def measured_on(self) -> str:
        """The device."""
        ...

    @property
    def scenario(self) -> Scenario:
        """The question."""
        ...

    @property
    def holds_for(self) -> str:
        """Model, engine, precision and cards, in words."""
        ...


def asked_of(document: Answer) -> Table:
    """The question of a document."""
    one = document
    return asked(one.profile, one.model, one.engine, one.evidence, one.measured_on, one.scenario, one.holds_for)


def asked(
    profile: str,
    model: ModelInfo,
    engine: Engine,
    evidence: Evidence,
    measured_on: str,
    scenario: Scenario | None = None,
    holds_for: str | None = None,
) -> Table:
    """Profile, model and engine, then the scenario; without one the columns of a scenario are left out."""
    columns: list[Column[None]] = [
        _words("profile", "profile", profile),
        _words("model", "model", model.name),
        _words("engine", "engine", engine.name),
        _words("engine_version", "version", engine.version),
        _words("attention", "attention", engine.attention),
        _words("measured_on", "measured on", measured_on),
    ]
    if holds_for is not None:
        columns.append(_words("holds_for", "holds for", holds_for))
    if scenario is not None:
        columns += _scenario(scenario)
    columns.append(_words("weakest_evidence", "weakest evidence", str(evidence)))
    return table_of("question", "The run" if scenario is None else "The question", columns, [None])


def _scenario(scenario: Scenario) -> list[Column[None]]:
    return [
        Column("context_tokens", "context", lambda _: scenario.context_tokens, _context),
        Column("new_tokens", "new tokens", lambda _: scenario.new_tokens, count_text),
        Column("concurrency", "sequences at once", lambda _: scenario.concurrency, count_text),
        _words("weights", "weights held", scenario.weights or AS_PROFILED),
        _words("compute", "computed", scenario.compute or AS_PROFILED),
        _words("kv_cache", "KV cache held", scenario.kv_cache or AS_PROFILED),
    ]


def _context(tokens: Any) -> str:
    short = tokens_text(tokens)
    return counted(tokens, "token") if short == str(tokens) else f"{short} ({tokens:,} tokens)"


def _words(key: str, title: str, text: str) -> Column[None]:
    return Column(key, title, lambda _: text, words=True)


def nothing_asked() -> Table:
    """Of a document that answers no question: one row without columns."""
    columns: list[Column[None]] = []
    return table_of("question", "The question", columns, [None])
