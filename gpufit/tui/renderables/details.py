"""Everything about one card: what is needed, what binds, what would still fit, and where the figures come from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from gpufit.advice.verdict import Verdict
from gpufit.profile.peaks import Parts
from gpufit.report.cells import COLUMNS, PART_TITLES, SYMBOLS, binding_text, lots_text, max_context_text
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.part_groups import part_bytes
from gpufit.report.plan_text import change_label
from gpufit.report.plans import arrangement_words
from gpufit.report.price_text import money, rates_text
from gpufit.report.summary import precision_lines
from gpufit.tui.renderables.cards import interval_text, need_interval_text
from gpufit.tui.renderables.evidence import SIGNS, STYLES, evidence_text
from gpufit.tui.renderables.palette import DIM, PLAIN, STRONG, TITLE, VERDICT_STYLES, WAIT
from gpufit.tui.renderables.words import VERDICT_WORDS
from gpufit.units import format_size

_TEXT = {column.key: column.text for column in COLUMNS}
_LABEL_WIDTH = 17
_PART_WIDTH = 14
_SIZE_WIDTH = 11
_BYTES_WIDTH = 16
"""`999,999,999,999` and a blank: a table that keeps its width needs no new layout from one scenario to the next."""


def facts(document: FitDocument, row: CardRow, settled: bool = True) -> Group:
    """The answer for one card: verdict with its meaning, then a line a figure. Until it is settled, what is still being
    worked out says so."""
    verdict = Text.assemble(
        (SYMBOLS[row.verdict], VERDICT_STYLES[row.verdict]), (f": {VERDICT_WORDS[row.verdict]}", PLAIN)
    )
    grid = Table.grid(Column(width=_LABEL_WIDTH, style=DIM), Column(ratio=1, style=PLAIN), expand=True)
    for label, value in _fact_lines(document, row, settled):
        grid.add_row(Text(label), value if isinstance(value, Text) else Text(value))
    return Group(verdict, grid)


def _with_evidence(row: CardRow, figure: str) -> Text:
    """A figure with the sign of its evidence, whose word stands below."""
    return Text.assemble((figure, PLAIN), " ", (SIGNS[row.evidence], STYLES[row.evidence]))


def _fact_lines(document: FitDocument, row: CardRow, settled: bool) -> Iterable[tuple[str, str | Text]]:
    known = settled or row.cards_needed is not None
    yield "cards", _cards(document, row) if known else WAIT
    yield "lots", lots_text(row) if known else WAIT
    stale = {book.name for book in document.offer_books if book.stale}
    for price in row.prices:
        if price.total_price is not None:
            old = ["stale"] if price.book in stale else []
            whose = ", ".join([*([price.seller] if price.seller else []), *old])
            amount = f"{money(price.total_price)} {price.currency or ''}".rstrip()
            yield f"{price.term_days} days", f"{amount} ({whose})" if whose else amount
    yield "capacity", _TEXT["capacity_bytes"](document, row) or "not known"
    yield "need", _with_evidence(row, _TEXT["need_bytes"](document, row))
    yield "  lower .. upper", need_interval_text(document, row)
    if row.headroom_bytes is not None:
        yield "headroom", _with_evidence(row, _TEXT["headroom_bytes"](document, row))
        yield "  lower .. upper", interval_text(document, row)
    yield "binds", binding_text(row)
    most, longest = _TEXT["max_concurrency"](document, row), max_context_text(row)
    yield "max concurrency", _largest(most, row.max_concurrency, "sequence") if settled else WAIT
    yield "max context", _largest(longest, row.max_context_tokens, "token") if settled else WAIT
    if row.throughput is not None:
        yield "throughput", f"{rates_text(row.throughput)} ({row.throughput.evidence})"
    yield "evidence", evidence_text(row.evidence)
    for plan in row.arrangements[1:]:
        yield "or", f"{plan.cards_needed} cards: {arrangement_words(plan)}"
    for change in row.changes:
        yield change_label(row, change), change.words
    for remark in row.remarks:
        yield "remark", remark


def _largest(text: str, value: int | None, unit: str) -> str:
    """`118 sequences`, `8185 tokens (limit)`."""
    if not value:
        return "not known" if value is None else "none fits"
    number, blank, mark = text.partition(" ")
    return f"{number} {unit}{'' if value == 1 else 's'}{blank}{mark}"


def _cards(document: FitDocument, row: CardRow) -> str:
    if row.cards_needed is None:
        # Which plans those were is among the remarks.
        return "none of the plans tried serves it" if row.verdict is not Verdict.UNKNOWN else "not known"
    return f"{_TEXT['cards_needed'](document, row)} ({row.arrangement})"


def parts_table(document: FitDocument, row: CardRow) -> Text:
    """The parts of every phase, and of the binding one on this card, which adds what belongs to the card.

    The phases' own columns are the same for all cards; only the last two have the card's workspace and context.
    """
    phases = list(document.phases.values())
    nothing = [None] * len(phases)
    outside = ("context_bytes", "other_bytes")
    lines = [
        *(_sizes(name, row, [getattr(one.parts, name) for one in phases]) for name in Parts.NAMES),
        _line("allocated", [one.allocated_bytes for one in phases], row.parts.total_bytes, STRONG),
        *(_sizes(name, row, nothing) for name in outside),
        _line("need", nothing, row.need_bytes, STRONG),
    ]
    heading = _Line("at the peak of", (*document.phases, f"{row.binding.phase}*", "in bytes*"), DIM)
    evidence = _Line(
        "evidence", (*(evidence_text(one.evidence) for one in phases), evidence_text(row.evidence), ""), DIM
    )
    text = _aligned([heading, *lines, evidence])
    return text.append(f"* on {row.card}, with its own library workspace and driver context", DIM)


@dataclass(frozen=True)
class _Line:
    """One line of the parts table."""

    title: str
    cells: tuple[str, ...]
    style: str


def _sizes(name: str, row: CardRow, of_phases: Sequence[int | None]) -> _Line:
    """The line of a part: in every phase, and on this card; the part that binds stands out."""
    return _line(PART_TITLES[name], of_phases, part_bytes(row, name), STRONG if name == row.binding.part else PLAIN)


def _line(title: str, of_phases: Sequence[int | None], here: int, style: str) -> _Line:
    sizes = ("" if size is None else format_size(size) for size in of_phases)
    return _Line(title, (*sizes, format_size(here), f"{here:,}"), style)


def _aligned(lines: Sequence[_Line]) -> Text:
    """Titles to the left, figures to the right, each column as wide as its longest cell."""
    last = len(lines[0].cells) - 1
    longest = [max(len(line.cells[at]) for line in lines) + 1 for at in range(last + 1)]
    widths = [max(width, _BYTES_WIDTH if at == last else _SIZE_WIDTH) for at, width in enumerate(longest)]
    text = Text(no_wrap=True)
    for line in lines:
        text.append(line.title.ljust(_PART_WIDTH), DIM)
        for cell, width in zip(line.cells, widths, strict=True):
            text.append(cell.rjust(width), line.style)
        text.append("\n")
    return text


def notes(document: FitDocument) -> Group:
    """Where the figures come from: notes, assumptions, precision and files, a paragraph each."""
    return Group(
        *_section("notes", document.notes or ("none",)),
        *_section("assumptions", document.assumptions),
        *_section("precision", precision_lines(document.precision)),
        *_section("sources", (f"profile {document.profile}", f"lots and prices: offer book {document.offers}")),
    )


def _section(title: str, lines: Sequence[str]) -> tuple[Text, Table]:
    grid = Table.grid(Column(width=2, style=DIM), Column(ratio=1, style=PLAIN), expand=True)
    for line in lines:
        grid.add_row(Text("·"), Text(line))
    return Text(title, TITLE), grid
