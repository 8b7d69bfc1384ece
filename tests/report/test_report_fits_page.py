"""The page of several questions: the matrix leads to each report, and each report is the one that is given alone."""

from __future__ import annotations

import io
import re

import openpyxl
import pytest
from report_builders import DOES_NOT_FIT, FITS, SCRIPT, TOO_CLOSE, UNKNOWN
from report_readers import Node, Page
from test_fits_document import asked, hard_questions, row

from gpufit.report.fits_document import FitsDocument, build_fits_document
from gpufit.report.page_style import STYLE
from gpufit.report.registry import load_format

THREE = build_fits_document(
    [
        asked("chat", row(FITS, "x"), row(TOO_CLOSE, "y"), row(DOES_NOT_FIT, "z")),
        asked("rag", row(TOO_CLOSE, "x"), row(UNKNOWN, "y"), row(FITS, "z")),
        asked(SCRIPT, row(FITS, "x"), row(FITS, "y"), row(FITS, "z")),
    ]
)


def page_of(documents: FitsDocument) -> Page:
    return Page.read(load_format("html").render_fits(documents).decode())


def articles(page: Page) -> tuple[Node, list[Node]]:
    """The summary and the reports."""
    first, *others = page.root.all("article")
    return first, others


def test_the_summary_comes_first_and_then_a_report_a_question() -> None:
    summary, reports = articles(page_of(THREE))
    assert summary.attributes["id"] == "summary"
    assert [one.all("h1")[0].text for one in reports] == ["chat · a", "rag · a", f"{SCRIPT} · a"]


def test_headings_of_the_matrix_lead_to_the_reports_and_those_lead_back() -> None:
    summary, reports = articles(page_of(THREE))
    table, _ = summary.all("table")
    links = table.all("a")
    assert [link.text for link in links] == ["chat", "rag", SCRIPT]
    assert [link.attributes["href"] for link in links] == [f"#{one.attributes['id']}" for one in reports]
    assert {link.attributes["href"] for one in reports for link in one.all("a")} == {"#summary"}


def test_a_cell_is_coloured_by_one_card_s_verdict_or_by_several_that_serve() -> None:
    table, _ = articles(page_of(THREE))[0].all("table")
    kinds = [[cell.attributes["class"] for cell in line.all("td")[:3]] for line in table.all("tbody")[0].all("tr")]
    # The too close card of the builders is served by three copies; the one that does not fit and the unknown by none.
    fits, several = "verdict fits", "verdict several"
    assert kinds == [
        [fits, several, fits],
        [several, "verdict unknown", fits],
        ["verdict does_not_fit", fits, fits],
    ]


@pytest.mark.parametrize("documents", [THREE, hard_questions()])
def test_a_report_is_the_one_given_alone_but_for_its_heading_and_ids(documents: FitsDocument) -> None:
    _, reports = articles(page_of(documents))
    for one, report in zip(documents.documents, reports, strict=True):
        alone = Page.read(load_format("html").render_fit(one).decode()).root.all("article")[0]
        assert [node.text for node in report.all("section")] == [node.text for node in alone.all("section")]


def test_no_id_is_there_twice_and_every_reference_leads_to_one() -> None:
    nodes = list(page_of(hard_questions()).root.walk())
    ids = [node.attributes["id"] for node in nodes if "id" in node.attributes]
    assert len(set(ids)) == len(ids)
    named = {one for node in nodes for one in node.attributes.get("aria-labelledby", "").split()}
    led = {node.attributes["href"].removeprefix("#") for node in nodes if node.tag == "a"}
    filled = {found for node in nodes for found in re.findall(r"url\(#([^)]+)\)", node.attributes.get("fill", ""))}
    assert named
    assert len(led) == 1 + len(hard_questions().documents)
    assert named | led | filled <= set(ids)


def test_nothing_is_loaded_or_run_and_the_style_is_there_once() -> None:
    page = page_of(hard_questions())
    assert not {node.tag for node in page.root.walk()} & {"script", "img", "iframe", "object", "form", "base"}
    assert all(node.attributes["href"] == "data:," for node in page.root.all("link"))
    assert all(node.attributes["href"].startswith("#") for node in page.root.all("a"))
    assert [style.text for style in page.root.all("style")] == [STYLE]


def test_the_workbook_s_matrix_is_in_cards_and_has_as_many_colours() -> None:
    table, _ = articles(page_of(THREE))[0].all("table")
    lines = [line.all("th") + line.all("td") for line in table.all("tbody")[0].all("tr")]
    book = openpyxl.load_workbook(io.BytesIO(load_format("xlsx").render_fits(THREE)))
    cells = list(book["summary"].iter_rows())
    first = next(number for number, line in enumerate(cells) if line[0].value == "card")
    titles = [one.text for one in table.all("thead")[0].all("th")]
    assert [one.value for one in cells[first]][: len(titles)] == titles
    shown = [[one.value for one in line[:5]] for line in cells[first + 1 : first + 4]]
    # Lots follow the sheet of prices; the cards that serve do not.
    assert shown == [
        ["x", "✓ 1", "≈ 3 (replicas)", "✓ 1", "3"],
        ["y", "≈ 3 (replicas)", "? -", "✓ 1", "-"],
        ["z", "✗ -", "✓ 1", "✓ 1", "-"],
    ]
    colours: dict[str, set[str]] = {}
    for line, row_ in zip(lines, cells[first + 1 :], strict=False):
        for one, cell in zip(line[1:4], row_[1:4], strict=True):
            colours.setdefault(one.attributes["class"], set()).add(cell.fill.fgColor.rgb)
    assert all(len(some) == 1 for some in colours.values())
    assert len({colour for some in colours.values() for colour in some}) == len(colours) == 4


def test_the_summary_says_what_all_scenarios_cost_of_each_seller() -> None:
    """The two cards that serve all three; three of x in lots of two are two lots: 0.02, 4.00 and 6.00."""
    two = build_fits_document(
        [
            asked("chat", row(FITS, "x"), row(DOES_NOT_FIT, "y"), row(FITS, "z")),
            asked("rag", row(TOO_CLOSE, "x"), row(FITS, "y"), row(FITS, "z")),
        ]
    )
    _, table = articles(page_of(two))[0].all("table")
    lines = [[node.text for node in line.all("th") + line.all("td")] for line in table.all("tbody")[0].all("tr")]
    assert [line[:3] for line in lines] == [["x", "3", "2 x 2 (1 idle)"], ["z", "1", "1 x 2 (1 idle)"]]
    assert [line[5].split(" EUR")[0] for line in lines] == ["4.00", "-"]


def test_the_workbook_of_several_questions_has_formulas_and_a_chart_a_question() -> None:
    book = openpyxl.load_workbook(io.BytesIO(load_format("xlsx").render_fits(THREE)))
    assert book.sheetnames == ["summary", "chart", "cards", "prices", "parts"]
    formulas = {sheet.title: sum(one.data_type == "f" for line in sheet.iter_rows() for one in line) for sheet in book}
    # Of x alone all three scenarios are served: lot size, lots, idle cards and three totals. Every row of `cards` has
    # the same and three prices of idle cards: three questions by three cards, and two arrangements more of each card
    # that is too close.
    assert formulas == {"summary": 6, "chart": 0, "cards": 9 * (3 * 3 + 2 * 2), "prices": 0, "parts": 0}
    assert len(book["chart"]._charts) == 3
    inputs = [head.value for head in book["prices"][4]]
    assert inputs.count("lot size (cards)") == 1
    assert book["prices"].max_row == 4 + 3
