"""The order as one page that opens offline: what is ordered first, then how the job on it is run, confirmed, closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpufit.report.markup import Markup, element, joined
from gpufit.report.order_document import OrderDocument, Readiness
from gpufit.report.order_text import (
    ENVIRONMENT_HEADERS,
    WORKER_HEADERS,
    Line,
    environment_cells,
    evidence_words,
    margin_lines,
    ordered_lines,
    purpose_lines,
    shares_words,
    status,
    term_cells,
    term_headers,
    title,
    worker_cells,
)
from gpufit.report.page_parts import bullets, column_heads, page, section, table
from gpufit.units import counted

BINARY = False

_COLOURS = {
    Readiness.READY: "fits",
    Readiness.READY_UNPROVEN: "too_close",
    Readiness.NOT_READY: "does_not_fit",
}
"""The class of each status: those of verdicts."""

_FEW_WORKERS = 16
"""Of more, the list is folded up."""


def render_order(document: OrderDocument) -> bytes:
    """The sections of the Markdown, in their order."""
    return page(f"gpufit: {title(document)}", [element("article", *_sections(document), id="order")]).encode()


def _sections(document: OrderDocument) -> Iterator[Markup]:
    yield element(
        "header",
        element("h1", title(document)),
        element("ul", element("li", status(document), class_=_COLOURS[document.readiness]), class_="tally"),
        bullets(document.blockers) if document.blockers else None,
        element("p", document.spread) if document.spread else None,
        element("p", evidence_words(document), class_="dim"),
    )
    yield section("What is ordered", _facts(ordered_lines(document)))
    yield section("What it is for", _facts(purpose_lines(document)))
    yield section("Room on a device", _facts(margin_lines(document)))
    if document.card.lots is not None:
        yield from _plan(document)
    environment = [environment_cells(one) for one in document.environment]
    yield section(
        "Environment",
        _table("What the figures were made with, and what has to be on the card.", ENVIRONMENT_HEADERS, environment),
    )
    if document.checks:
        yield section("Checks on arrival", element("ol", *_checks(document)))
    if document.save:
        yield section("What to save at the end", _facts([(one.what, one.how) for one in document.save]))
    yield section("Assumed", bullets(document.assumptions))
    if document.notes:
        yield section("Notes", bullets(document.notes))
    made = f"gpufit {document.gpufit_version}, order schema {document.schema_version}."
    yield element("footer", made, class_="dim")


def _plan(document: OrderDocument) -> Iterator[Markup]:
    terms = _table("What each term would take.", term_headers(document), _terms(document))
    yield section("Terms", terms)
    workers = _table(
        "A worker is one whole copy of the model. Devices are counted from 0 over all cards, inputs from 1.",
        WORKER_HEADERS,
        [worker_cells(one) for one in document.workers],
    )
    count = len(document.workers)
    if count > _FEW_WORKERS:
        workers = element("details", element("summary", counted(count, "worker")), workers)
    shares = shares_words(document)
    yield section("Workers", workers, *([element("p", shares)] if shares else ()))
    if document.pieces is not None:
        pieces = document.pieces
        known = "" if pieces.pieces is None else f" ({counted(pieces.pieces, 'piece')} in all)"
        steps = element("ol", *(element("li", step) for step in pieces.steps))
        marker = element("p", "The marker of ", element("code", pieces.example_piece), ":")
        yield section(f"A finished piece{known}", steps, marker, _code(pieces.example_marker))
    if document.completion is not None:
        conditions = bullets(document.completion.conditions)
        run = element("p", "Run in the folder of the outputs (Python):")
        yield section("The whole job is complete if", conditions, run, _code(document.completion.script.rstrip()))


def _terms(document: OrderDocument) -> Iterator[list[str]]:
    for term in document.terms:
        first, *rest = term_cells(document, term)
        yield [f"{first} (ordered)" if term.days == document.term_days else first, *rest]


def _checks(document: OrderDocument) -> Iterator[Markup]:
    for one in document.checks:
        decides = " (decides)" if one.decides else ""
        said = joined([element("strong", one.title), f"{decides}. What has to come out: {one.expect}"])
        yield element("li", said, _code(one.command))


def _facts(pairs: Iterable[Line]) -> Markup:
    return element(
        "dl", *(one for name, words in pairs for one in (element("dt", name), element("dd", words))), class_="facts"
    )


def _table(caption: str, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    lines = [
        element("tr", element("th", first, scope="row"), *(element("td", cell, class_="left wraps") for cell in rest))
        for first, *rest in rows
    ]
    return table(caption, column_heads((header, True) for header in headers), lines)


def _code(text: str) -> Markup:
    return element("pre", element("code", text))
