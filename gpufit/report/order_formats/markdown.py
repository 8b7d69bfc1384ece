"""The order as Markdown: what is ordered first, then how the job on it is run, confirmed and closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tabulate import tabulate

from gpufit.report.cells import printable
from gpufit.report.order_document import OrderDocument
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
from gpufit.units import counted

BINARY = False

MOST_WORKERS = 64
"""Workers that are listed one by one; of more, the first and the last few (all are in JSON and workbook)."""
_ENDS = (8, 2)


def render_order(document: OrderDocument) -> bytes:
    """Headings, tables and lists; a command line is a block of its own."""
    return printable("\n\n".join(_blocks(document)) + "\n").encode()


def _blocks(document: OrderDocument) -> Iterator[str]:
    yield f"# {_escaped(title(document))}"
    yield f"**{status(document)}**"
    if document.blockers:
        yield _list(document.blockers)
    if document.spread:
        yield _escaped(document.spread)
    yield _escaped(evidence_words(document))
    yield "## What is ordered"
    yield _pairs(ordered_lines(document))
    yield "## What it is for"
    yield _pairs(purpose_lines(document))
    yield "## Room on a device"
    yield _pairs(margin_lines(document))
    if document.card.lots is not None:
        yield from _plan(document)
    yield "## Environment"
    yield _environment(document)
    yield from _checks(document)
    if document.save:
        yield "## What to save at the end"
        yield _pairs([(one.what, one.how) for one in document.save])
    yield "## Assumed"
    yield _list(document.assumptions)
    if document.notes:
        yield "## Notes"
        yield _list(document.notes)


def _plan(document: OrderDocument) -> Iterator[str]:
    yield "## Terms"
    yield _terms(document)
    yield "## Workers"
    yield "A worker is one whole copy of the model. Devices are counted from 0 over all cards, inputs from 1."
    yield from _workers(document)
    if document.pieces is not None:
        known = "" if document.pieces.pieces is None else f" ({counted(document.pieces.pieces, 'piece')} in all)"
        yield f"## A finished piece{known}"
        yield _numbered(document.pieces.steps)
        yield f"The marker of `{_code(document.pieces.example_piece)}`:"
        yield f"```json\n{document.pieces.example_marker}\n```"
    if document.completion is not None:
        yield "## The whole job is complete if"
        yield _list(document.completion.conditions)
        yield "Run in the folder of the outputs:"
        yield f"```python\n{document.completion.script.rstrip()}\n```"


def _terms(document: OrderDocument) -> str:
    rows = [term_cells(document, term) for term in document.terms]
    for term, row in zip(document.terms, rows, strict=True):
        row[0] = f"**{row[0]}**" if term.days == document.term_days else row[0]
    return _table(term_headers(document), rows)


def _workers(document: OrderDocument) -> Iterator[str]:
    every = document.workers
    first, last = (len(every), 0) if len(every) <= MOST_WORKERS else _ENDS
    rows = [worker_cells(one) for one in (*every[:first], *every[len(every) - last :])]
    if last:
        rows.insert(first, ["…", "", "", f"{len(every) - first - last:,} more, all in JSON and workbook", ""])
    yield _table(WORKER_HEADERS, rows)
    if shares := shares_words(document):
        yield shares


def _environment(document: OrderDocument) -> str:
    return _table(ENVIRONMENT_HEADERS, [environment_cells(one) for one in document.environment])


def _checks(document: OrderDocument) -> Iterator[str]:
    if not document.checks:
        return
    yield "## Checks on arrival"
    for number, one in enumerate(document.checks, start=1):
        decides = " (decides)" if one.decides else ""
        yield f"{number}. **{_escaped(one.title)}**{decides}. What has to come out: {_escaped(one.expect)}"
        yield f"```sh\n{one.command}\n```"


def _pairs(lines: Iterable[Line]) -> str:
    return _table(["", ""], [list(line) for line in lines])


def _table(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = [[_escaped(cell) for cell in row] for row in rows]
    return tabulate(cells, headers=headers, tablefmt="pipe", disable_numparse=True)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_escaped(line)}" for line in lines)


def _numbered(lines: Iterable[str]) -> str:
    return "\n".join(f"{number}. {_escaped(line)}" for number, line in enumerate(lines, start=1))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "\\<").replace("\n", " ")


def _code(text: str) -> str:
    return text.replace("`", "'")
