"""The sentences that stand above a table and in the TUI's header."""

from __future__ import annotations

from collections.abc import Sequence

from gpufit.advice.verdict import Verdict
from gpufit.memory.growth import CacheGrowth
from gpufit.memory.held import TITLES
from gpufit.profile.precision import DtypeShare, Precision
from gpufit.report.basis import evidence_text
from gpufit.report.cells import scenario_prefix
from gpufit.report.document import FitDocument, Scenario
from gpufit.report.precision_words import compute_words
from gpufit.report.start_text import start_headline, two_lines
from gpufit.units import format_size, format_tokens


def headline(document: FitDocument) -> str:
    """Which model, from which evidence, at which scenario, and how many cards it fits."""
    if document.serves:
        return start_headline(document)
    scenario = document.scenario
    fits = sum(row.verdict is Verdict.FITS for row in document.cards)
    new = f" + {scenario.new_tokens} new" if scenario.new_tokens > 1 else ""
    held = switched_words(document.scenario)
    cards = len(document.cards)
    answer = f": fits {fits} of {cards} card{'s' if cards > 1 else ''}" if cards else ""
    return two_lines(
        f"{document.model.name} · {document.engine.name} {document.engine.version} ({document.engine.attention}) · "
        f"profile of {document.measured_on}",
        f"{scenario_prefix(document)}context {format_tokens(scenario.context_tokens)}{new} x {scenario.concurrency} at "
        f"once{held}{answer} · evidence: {evidence_text(document.evidence, document.scenario_ran)}",
    )


def switched_words(scenario: Scenario) -> str:
    """`, if weights FP8 and KV cache FP8`: what is held otherwise than it was profiled; empty where nothing is."""
    found = {"weights": scenario.weights, "compute": scenario.compute, "kv_cache": scenario.kv_cache}
    words = " and ".join(f"{TITLES[name]} {value}" for name, value in found.items() if value is not None)
    return f", if {words}" if words else ""


def remark_lines(document: FitDocument) -> list[str]:
    """What a buyer should know about single cards: each remark once, after the cards it holds for."""
    cards: dict[str, list[str]] = {}
    for row in document.cards:
        for remark in row.remarks:
            cards.setdefault(remark, []).append(row.card)
    return [f"{', '.join(ids)}: {remark}" for remark, ids in cards.items()]


def growth_line(document: FitDocument) -> str:
    """How the KV cache grows: state, slope and knee, with the evidence; empty where nothing is known of it."""
    growth = document.kv_cache_growth
    return "" if growth is None else f"{growth_sentence(growth)} ({growth.evidence})"


def growth_sentence(growth: CacheGrowth) -> str:
    """`KV cache: 1.20 MiB a sequence + 23,040 B a token`, with what changes at a knee."""
    terms = []
    if growth.state_bytes_per_sequence:
        terms.append(f"{format_size(growth.state_bytes_per_sequence)} a sequence")
    if growth.bytes_per_token:
        terms.append(f"{growth.bytes_per_token:,} B a token")
    if growth.knee_tokens:
        within = f"{growth.bytes_per_token_within_knee:,} B a token up to {growth.knee_tokens:,} tokens"
        terms.append(f"{within} of a sequence")
    still = "" if growth.grows or not terms else ", at any length"
    return f"KV cache: {' + '.join(terms) or 'nothing that grows'}{still}"


def peak_line(document: FitDocument) -> str:
    """Where in the model each phase peaks at the scenario; empty where nobody looked."""
    places = [f"{name} in {one.site}" for name, one in document.phases.items() if one.site]
    return f"peak of {'; of '.join(places)}" if places else ""


def precision_lines(precision: Precision) -> list[str]:
    """The four precision columns, a line each, then the findings."""
    lines = [
        f"stored    {_shares(precision.stored) or 'not known'}",
        f"resident  {_shares(precision.resident)}",
        f"compute   {compute_words(precision) or 'not observed'}",
        f"KV cache  {', '.join(share.dtype for share in precision.kv) or 'none'}",
    ]
    if precision.quantization is not None:
        parameters = "".join(f", {name} {value}" for name, value in precision.quantization.parameters.items())
        lines.append(f"quantised {precision.quantization.method}{parameters}")
    return lines + [f"finding: {finding}" for finding in precision.findings]


def _shares(shares: Sequence[DtypeShare]) -> str:
    return ", ".join(f"{share.dtype} {format_size(share.size_bytes)}" for share in shares)
