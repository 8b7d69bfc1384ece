"""What was asked, of which model, in which engine: the facts that stand above every answer."""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.report.basis import evidence_text
from gpufit.report.cells import Value
from gpufit.report.document import FitDocument
from gpufit.units import format_tokens


@dataclass(frozen=True)
class Fact:
    """One line of the question."""

    title: str
    value: Value
    text: str
    """The value as people read it."""


def question_of(document: FitDocument) -> tuple[Fact, ...]:
    """Scenario, model, engine, profile and offers; what a document does not have is left out."""
    scenario, model, engine = document.scenario, document.model, document.engine
    context = f"{format_tokens(scenario.context_tokens)} ({scenario.context_tokens:,} tokens a sequence)"
    cached = scenario.cached_tokens if model.generates else None
    found = (
        Fact("context (tokens)", scenario.context_tokens, context),
        _count("new tokens", scenario.new_tokens or None),
        _count("sequences at once", scenario.concurrency),
        _count("cached tokens of a sequence, at the end", cached),
        _words("model", model.name),
        _words("class", model.architecture),
        _count("parameters", model.parameters),
        _words("read from", model.source),
        _words("revision", model.revision),
        _words("fingerprint", model.fingerprint),
        _words("engine", f"{engine.name} {engine.version}, {engine.attention} attention"),
        _words("profile", document.profile),
        _words("measured on", document.measured_on),
        _words("holds for", document.holds_for),
        _words("evidence", f"{evidence_text(document.evidence, document.scenario_ran)}; the weakest of all figures"),
        _words("offers", document.offers),
    )
    return tuple(one for one in found if one.value not in (None, ""))


def _count(title: str, value: int | None) -> Fact:
    return Fact(title, value, "" if value is None else f"{value:,}")


def _words(title: str, text: str | None) -> Fact:
    return Fact(title, text, text or "")
