"""An order as CSV, a row a term: UTF-8, units in the header, dot decimals, blank for what is not known."""

from __future__ import annotations

from gpufit.memory.held import AS_PROFILED
from gpufit.report.cells import Value
from gpufit.report.formats.csv import lines
from gpufit.report.order_document import OrderDocument, TermFigures

BINARY = False


def render_order(document: OrderDocument) -> bytes:
    """What is ordered in front of every term; `chosen` says which term the order is for."""
    asked = _asked(document)
    rows = [{**asked, **_term(document, term)} for term in document.terms]
    header = [*asked, *(_term(document, document.terms[0]) if document.terms else ())]
    return lines(header, (row.values() for row in rows))


def _asked(document: OrderDocument) -> dict[str, Value]:
    scenario, card, margin, work, cost = (
        document.scenario, document.card, document.margin, document.work, document.cost
    )  # fmt: skip
    return {
        "profile": document.profile,
        "model": document.model.name,
        "engine": document.engine.name,
        "engine_version": document.engine.version,
        "holds_for": document.holds_for,
        "context_tokens": scenario.context_tokens,
        "new_tokens": scenario.new_tokens,
        "concurrency": scenario.concurrency,
        "weights": scenario.weights or AS_PROFILED,
        "compute": scenario.compute or AS_PROFILED,
        "kv_cache": scenario.kv_cache or AS_PROFILED,
        "readiness": str(document.readiness),
        "blockers": "; ".join(document.blockers) or None,
        "card": card.card,
        "name": card.name,
        "arrangement": card.arrangement,
        "cards_needed": card.cards_needed,
        "lot_size_cards": card.lot_size,
        "verdict": str(margin.verdict),
        "need_bytes": margin.need_bytes,
        "need_lower_bytes": margin.need_lower_bytes,
        "need_upper_bytes": margin.need_upper_bytes,
        "capacity_bytes": margin.capacity_bytes,
        "headroom_bytes": margin.headroom_bytes,
        "headroom_lower_bytes": margin.headroom_lower_bytes,
        "headroom_upper_bytes": margin.headroom_upper_bytes,
        "evidence": str(document.evidence),
        "inputs": work.inputs,
        "inputs_per_second": work.inputs_per_second,
        "throughput_evidence": None if work.throughput_evidence is None else str(work.throughput_evidence),
        "total_hours": work.total_hours,
        "hours_evidence": None if work.hours_evidence is None else str(work.hours_evidence),
        "offer_book": cost.book,
        "seller": cost.seller,
        "currency": cost.currency,
        "offered_on": None if cost.date is None else cost.date.isoformat(),
    }


def _term(document: OrderDocument, term: TermFigures) -> dict[str, Value]:
    planned = len(document.workers) if document.work.total_hours is None else term.workers
    return {
        "term_days": term.days,
        "term_hours": term.hours,
        "chosen": _said(term.days == document.term_days),
        "term_for": term.purpose,
        "holds_the_work": _said(term.holds),
        "workers": planned,
        "lots": term.lots,
        "cards": term.cards,
        "price_per_lot": term.price_per_lot,
        "total_price": term.total_price,
    }


def _said(value: bool | None) -> str | None:
    return None if value is None else str(value).lower()
