"""Tables as one page that opens offline: style and drawing are inside it, and nothing is loaded or run."""

from __future__ import annotations

from collections.abc import Iterator

from gpufit import __version__
from gpufit.report.chart_svg import chart_figure
from gpufit.report.evidence import MEANINGS
from gpufit.report.markup import Markup, element
from gpufit.report.page_parts import bullets, column_heads, exactly, page, section, table
from gpufit.report.tabular import Cell, Heading, Table, TabularReport

BINARY = False


def render_tables(report: TabularReport) -> bytes:
    """What it comes to, the chart, the tables, then the question, notes and what the words for evidence mean."""
    shown = [one.to_read for one in report.tables if one.rows]
    article = element(
        "article",
        element("header", element("h1", report.title), *(element("p", one) for one in report.sentences)),
        section(report.chart.title, chart_figure(report.chart, report.kind)) if report.chart is not None else None,
        *(section(one.title, _content(one)) for one in shown),
        *_question(report.question),
        section("Notes", bullets(report.notes)) if report.notes else None,
        section("Evidence", _evidence(report)) if report.evidence else None,
        element(
            "footer",
            f"gpufit {__version__}. Figures are rounded here; all their digits stand behind them (point at one).",
            class_="dim",
        ),
        id=report.kind,
    )
    return page(f"gpufit: {report.title}", [article]).encode()


def _content(found: Table) -> Markup:
    drawn = _table(found)
    if not found.detail:
        return drawn
    return element("details", element("summary", f"{len(found.rows):,} rows"), drawn)


def _table(found: Table) -> Markup:
    heads = column_heads((heading.title, heading.words or not at) for at, heading in enumerate(found.headings))
    rows = [
        element(
            "tr",
            *(
                _cell(heading, one, first=not at)
                for at, (heading, one) in enumerate(zip(found.headings, row, strict=True))
            ),
        )
        for row in found.rows
    ]
    return table(found.caption or found.title, heads, rows)


def _cell(heading: Heading, one: Cell, first: bool) -> Markup:
    if first:
        return element("th", exactly(one.value, one.text), scope="row")
    if heading.key == "verdict":
        return element("td", one.text, class_=f"verdict {one.value}")
    long = isinstance(one.value, str) and len(one.text) > _LONG
    classes = "words" if long else "left" if heading.words else None
    return element("td", exactly(one.value, one.text), class_=classes)


_LONG = 40
"""Characters from which words are wrapped."""


def _question(question: Table) -> Iterator[Markup]:
    """The facts of the question; nothing where none was asked."""
    (row,) = question.rows
    pairs = [
        (element("dt", heading.title), element("dd", one.text))
        for heading, one in zip(question.headings, row, strict=True)
        if one.text
    ]
    if pairs:
        yield section(question.title, element("dl", *(one for pair in pairs for one in pair), class_="facts"))


def _evidence(report: TabularReport) -> Markup:
    pairs = [(element("dt", str(kind)), element("dd", MEANINGS[kind])) for kind in report.evidence]
    return element("dl", *(one for pair in pairs for one in pair), class_="facts")
