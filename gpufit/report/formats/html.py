"""The document as one page that opens offline: style and drawings are inside it, and nothing is loaded or run."""

from __future__ import annotations

from collections.abc import Iterable

from gpufit.advice.verdict import Verdict
from gpufit.profile.peaks import Parts, Phase
from gpufit.report.bars import card_bar, card_title, draw, legend, patterns, phase_bar
from gpufit.report.basis import phase_evidence_text
from gpufit.report.cells import PART_TITLES, SYMBOLS, Column
from gpufit.report.columns import reads_left, screen_columns_of
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.evidence import MEANINGS, used_evidence
from gpufit.report.fits_document import FitsDocument
from gpufit.report.fits_text import section_title
from gpufit.report.markup import Markup, element, joined
from gpufit.report.page_parts import bullets, column_heads, exactly, page, section, table
from gpufit.report.page_prices import prices_of_page
from gpufit.report.page_summary import SUMMARY_ID, report_id, summary_of
from gpufit.report.plan_rows import PLAN_COLUMNS, changed, planned
from gpufit.report.plan_text import MOST_CARDS
from gpufit.report.question import question_of
from gpufit.report.start_figures import StartFigures
from gpufit.report.start_text import MOST_DETAILED, PART_HEADERS, answer_lines, commands, part_rows
from gpufit.report.summary import growth_line, headline, peak_line, precision_lines, remark_lines
from gpufit.units import format_size

BINARY = False


def render_fit(document: FitDocument) -> bytes:
    """Verdicts, prices, bars against ceilings, phases, then what was asked, precision, assumptions and notes."""
    title = document.model.name
    return page(f"gpufit: {title}", [patterns(), _report(document, "fit", element("h1", title))]).encode()


def render_fits(documents: FitsDocument) -> bytes:
    """The matrix of all questions, which leads to each question's own report below it."""
    reports = [
        _report(document, report_id(number), _title_of_one(documents, document))
        for number, document in enumerate(documents.documents)
    ]
    title = f"gpufit: {len(documents.documents)} questions"
    return page(title, [patterns(), summary_of(documents), *reports]).encode()


def _title_of_one(documents: FitsDocument, document: FitDocument) -> Markup:
    """A report's heading among others, and the way back to the summary."""
    back = element("p", element("a", "↑ all questions", href=f"#{SUMMARY_ID}"), class_="back")
    return joined([back, element("h1", section_title(documents, document))])


def _report(document: FitDocument, prefix: str, title: Markup) -> Markup:
    """One document; `prefix` begins every id, so that several can stand on one page."""
    judged = bool(document.cards)
    sections = [
        _header(document, title),
        *([section("Verdicts", _verdicts(document))] if judged else ()),
        *_plans(document),
        *([section("Prices", prices_of_page(document))] if judged else ()),
        *([section("Parts against each card's ceiling", _bars(document, prefix))] if judged else ()),
        *_starts(document),
        section("Parts at the peak of each phase", _phases(document, prefix)),
        section("The question", _question(document)),
        section("Precision", bullets(_found(document))),
        *([section("Assumed on the way", bullets(document.assumptions))] if document.assumptions else ()),
        *_notes(document),
        section("Evidence", _evidence(document)),
        _footer(document),
    ]
    return element("article", *sections, id=prefix)


def _header(document: FitDocument, title: Markup) -> Markup:
    counts = {verdict: sum(row.verdict is verdict for row in document.cards) for verdict in Verdict}
    tally = [
        element("li", f"{SYMBOLS[verdict]}: {count}", class_=str(verdict)) for verdict, count in counts.items() if count
    ]
    several = _several(document)
    said = [element("p", line, class_="dim") for line in headline(document).split("\n")]
    return element(
        "header",
        title,
        *said,
        element("ul", *tally, class_="tally", aria_label="cards by verdict") if tally else None,
        element("p", several) if several else None,
    )


def _several(document: FitDocument) -> str | None:
    """Which cards serve as several of one; only how many where there are too many to name."""
    rows = [row for row in document.cards if row.verdict is not Verdict.FITS and row.cards_needed is not None]
    if len(rows) > MOST_CARDS:
        return f"Several of one together serve, too, for {len(rows)} other cards."
    named = ", ".join(f"{row.cards_needed:,} x {row.card}" for row in rows)
    return f"Several together serve, too: {named}." if rows else None


def _question(document: FitDocument) -> Markup:
    pairs = [(element("dt", fact.title), element("dd", fact.text)) for fact in question_of(document)]
    return element("dl", *(one for pair in pairs for one in pair), class_="facts")


_WRAPPED = ("binding", "why_not", "lots")
"""Columns whose words go over several lines, so that all columns stay in sight."""


def _verdicts(document: FitDocument) -> Markup:
    columns = screen_columns_of(document)
    heads = column_heads((column.title, reads_left(column)) for column in columns)
    rows = [element("tr", *(_cell(column, document, row) for column in columns)) for row in document.cards]
    rest = "every size is that of one rank" if document.serves else "headroom is capacity less need"
    return table(f"Offers: {document.offers}. Capacity is what torch sees on a card; {rest}.", heads, rows)


def _cell(column: Column, document: FitDocument, row: CardRow) -> Markup:
    text, value = column.text(document, row), column.value(document, row)
    if column.key == "card":
        name = element("small", row.name) if row.name != row.card else None
        return element("th", text, name, scope="row")
    if column.key == "verdict":
        return element("td", text, class_=f"verdict {row.verdict}")
    classes = [*(["left"] if reads_left(column) else ()), *(["wraps"] if column.key in _WRAPPED else ())]
    return element("td", exactly(value, text), class_=" ".join(classes) or None)


def _bars(document: FitDocument, prefix: str) -> Markup:
    bars = [card_bar(row) for row in document.cards]
    lines = [
        element(
            "li",
            element("span", row.card, element("small", SYMBOLS[row.verdict], class_=str(row.verdict)), class_="name"),
            draw(bar, f"{prefix}-card-{number}", card_title(row)),
            _sizes(row.need_bytes, row.need_lower_bytes, row.need_upper_bytes, row.capacity_bytes),
        )
        for number, (row, bar) in enumerate(zip(document.cards, bars, strict=True))
    ]
    caption = element("figcaption", "Each bar has its card's own scale: the line is what the card offers.")
    return element("figure", caption, legend(bars), element("ol", *lines, class_="bars"))


def _sizes(size: int, lower: int, upper: int, capacity: int | None = None) -> Markup:
    """A bar's figures in words: size, share of the capacity, interval."""
    of = "" if capacity is None else f" of {format_size(capacity)}"
    share = "" if not capacity else f" ({size / capacity:.0%})" if 200 * size >= capacity else " (under 1%)"
    between = f"{format_size(lower)} to {format_size(upper)}"
    return element("span", f"{format_size(size)}{of}{share}", element("small", between), class_="size")


def _phases(document: FitDocument, prefix: str) -> Markup:
    phases = document.phases
    full = max((one.allocated_upper_bytes for one in phases.values()), default=0)
    bars = [phase_bar(one, full) for one in phases.values()]
    lines = [
        element(
            "li",
            element("span", str(Phase(name)), class_="name"),
            draw(bar, f"{prefix}-phase-{name}", f"allocated at the peak of {name}"),
            _sizes(one.allocated_bytes, one.allocated_lower_bytes, one.allocated_upper_bytes),
        )
        for (name, one), bar in zip(phases.items(), bars, strict=True)
    ]
    figure = element("figure", legend(bars), element("ol", *lines, class_="bars"))
    return joined([figure, _phase_table(document)])


def _phase_table(document: FitDocument) -> Markup:
    phases = document.phases
    names = [name for name in Parts.NAMES if any(getattr(one.parts, name) for one in phases.values())]
    rows = [_size_row(PART_TITLES[name], [getattr(one.parts, name) for one in phases.values()]) for name in names]
    rows.append(_size_row("allocated", [one.allocated_bytes for one in phases.values()], "total"))
    rows.append(_size_row("lower bound", [one.allocated_lower_bytes for one in phases.values()]))
    rows.append(_size_row("upper bound", [one.allocated_upper_bytes for one in phases.values()]))
    if not document.cards:  # else each card has its own, in the verdicts
        rows.append(_size_row("needed", [one.need_bytes for one in phases.values()]))
        rows.append(_size_row("surely enough", [one.need_upper_bytes for one in phases.values()]))
    ran = document.scenario_ran
    evidence = [element("td", phase_evidence_text(name, one.evidence, ran)) for name, one in phases.items()]
    rows.append(element("tr", element("th", "evidence", scope="row"), *evidence))
    heads = column_heads([("at the peak of", True), *((name, False) for name in phases)])
    return table("The parts of a phase add up to what it allocates, to the byte.", heads, rows)


def _size_row(title: str, sizes: Iterable[int], kind: str | None = None) -> Markup:
    cells = [element("td", exactly(size, format_size(size))) for size in sizes]
    return element("tr", element("th", title, scope="row"), *cells, class_=kind)


def _plans(document: FitDocument) -> list[Markup]:
    """Several of a card, and what would make one do; nothing where one of each does."""
    told = ("arrangement", "copies", "idle_hosts", "serve_command")  # in the words, with prices and starts
    columns = [one for one in PLAN_COLUMNS if one.key not in told]
    rows = [
        element(
            "tr",
            *(
                element("th", one.text(row, plan), scope="row")
                if one.key == "card"
                else element(
                    "td",
                    exactly(one.value(row, plan), one.text(row, plan)),
                    class_="left wraps" if one.words else None,
                )
                for one in columns
            ),
        )
        for row, plan in planned(document)
    ]
    changes: dict[str, list[str]] = {}
    for row, words in changed(document):
        changes.setdefault(row.card, []).append(words)
    content = []
    if rows:
        heads = column_heads((one.title, one.words) for one in columns)
        content.append(table("Sizes are those of the fullest card of each arrangement.", heads, rows))
    if changes:
        content.append(element("p", "What would make a single card do, or fewer cards:"))
        content.append(bullets(f"{card}: {'; '.join(words)}" for card, words in changes.items()))
    return [section("Several cards", *content)] if content else []


def _starts(document: FitDocument) -> list[Markup]:
    """Of a server, each card's parts of a rank, the pool that they leave and the command."""
    found = [(row, row.start) for row in document.cards if row.start is not None]
    open_ = "" if len(found) <= MOST_DETAILED else None
    details = [
        element("details", element("summary", card_title(row)), *_start(document, row, start), open=open_)
        for row, start in found
    ]
    return [section("A start on each card", *details)] if details else []


def _start(document: FitDocument, row: CardRow, start: StartFigures) -> list[Markup]:
    rows = [
        element("tr", element("th", name, scope="row"), *(element("td", one) for one in figures), _words(words))
        for name, *figures, words in part_rows(start)
    ]
    heads = column_heads((title, title in (PART_HEADERS[0], PART_HEADERS[-1])) for title in PART_HEADERS)
    found = [table(start.holds_for, heads, rows), bullets(answer_lines(document, row, start))]
    for what, command in commands(row, start):
        found += [element("p", what), element("pre", element("code", command))]
    return found


def _words(text: str) -> Markup:
    return element("td", text, class_="words")


def _found(document: FitDocument) -> list[str]:
    return [*precision_lines(document.precision), growth_line(document), peak_line(document)]


def _notes(document: FitDocument) -> list[Markup]:
    notes = [*document.notes, *remark_lines(document)]
    return [section("Notes", bullets(notes))] if notes else []


def _evidence(document: FitDocument) -> Markup:
    pairs = [(element("dt", str(kind)), element("dd", MEANINGS[kind])) for kind in used_evidence(document)]
    words = element("p", "Strongest first; a total has the weakest evidence of its parts.", class_="dim")
    return joined([words, element("dl", *(one for pair in pairs for one in pair), class_="facts")])


def _footer(document: FitDocument) -> Markup:
    digits = "Sizes and prices are rounded here; all their digits stand behind them (point at one)."
    made = f"gpufit {document.gpufit_version}, document schema {document.schema_version}."
    return element("footer", f"{made} {digits}", class_="dim")
