"""The page: nothing is loaded or run, every name is text, and what it shows is what the document holds."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_builders import FITS, GIB, LONG_NAME, SCRIPT, TOO_CLOSE, hard_document
from report_readers import (
    BOOK,
    Node,
    Page,
    as_page,
    divided_document,
    document_without_cards,
    real_document,
    served_document,
)

from gpufit.advice.verdict import Verdict
from gpufit.report.bars import CEILING_AT, card_bar, draw
from gpufit.report.cells import SYMBOLS
from gpufit.report.columns import screen_columns_of
from gpufit.report.document import FitDocument
from gpufit.report.markup import Markup, element, joined
from gpufit.report.page_style import STYLE
from gpufit.report.part_groups import PART_GROUPS
from gpufit.report.registry import load_format


@pytest.fixture(
    params=["hard", "real", "priced", "divided", "served", "served one", "without cards"],
)
def document(request: pytest.FixtureRequest, tmp_path: Path) -> FitDocument:
    if request.param.startswith("served"):
        cards = ("h100-sxm",) if request.param == "served one" else ("h100-sxm", "b200", "l40s", "l4")
        return served_document(tmp_path, *cards)
    if request.param == "divided":
        return divided_document(tmp_path, "l40s", "h200-sxm", "b200", "t4")
    if request.param == "without cards":
        return document_without_cards()
    return hard_document() if request.param == "hard" else real_document(BOOK if request.param == "priced" else None)


def test_nothing_on_the_page_is_loaded_from_elsewhere_or_run(document: FitDocument) -> None:
    page = as_page(document)
    assert page.doctypes == ["DOCTYPE html"]
    tags = {node.tag for node in page.root.walk()}
    assert not tags & {"script", "img", "iframe", "object", "embed", "form", "base", "a", "use", "image"}
    for node in page.root.walk():
        for name, value in node.attributes.items():
            assert not name.startswith("on"), (node.tag, name)
            assert name not in ("style", "srcset", "action"), (node.tag, name)
            if name in ("href", "src", "xlink:href"):
                assert value == "data:,"
            if name in ("fill", "stroke"):
                assert re.fullmatch(r"url\(#stroke-\d\)", value)
    assert [style.text for style in page.root.all("style")] == [STYLE]
    assert not re.search(r"url\(|@import|https?:", STYLE)


def test_a_browser_is_told_to_load_nothing_either() -> None:
    (policy,) = (
        node.attributes["content"]
        for node in as_page(hard_document()).root.all("meta")
        if node.attributes.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy.split("; ") == ["default-src 'none'", "style-src 'unsafe-inline'", "img-src data:"]


def test_every_id_is_there_once_and_every_reference_leads_to_one(document: FitDocument) -> None:
    nodes = list(as_page(document).root.walk())
    ids = [node.attributes["id"] for node in nodes if "id" in node.attributes]
    assert len(set(ids)) == len(ids)
    named = [one for node in nodes for one in node.attributes.get("aria-labelledby", "").split()]
    filled = [found for node in nodes for found in re.findall(r"url\(#([^)]+)\)", node.attributes.get("fill", ""))]
    assert named
    assert filled
    assert set(named) | set(filled) <= set(ids)


def test_tables_have_captions_and_headers_of_rows_and_columns(document: FitDocument) -> None:
    tables = as_page(document).root.all("table")
    assert tables
    for table in tables:
        assert table.all("caption")[0].text
        (head,) = table.all("thead")
        assert {node.attributes["scope"] for node in head.all("th")} == {"col"}
        for row in table.all("tbody")[0].all("tr"):
            assert [node.attributes["scope"] for node in row.all("th")] == ["row"]
            assert len(row.all("th")) + len(row.all("td")) == len(head.all("th"))


def test_every_drawing_has_a_title_and_a_description_or_is_hidden(document: FitDocument) -> None:
    for drawing in as_page(document).root.all("svg"):
        if drawing.attributes.get("aria-hidden") != "true":
            assert drawing.attributes["role"] == "img"
            assert [node.tag for node in drawing.children[:2] if not isinstance(node, str)] == ["title", "desc"]
            assert all(node.text for node in drawing.children[:2] if not isinstance(node, str))


def test_the_page_follows_the_reader_s_setting_the_screen_and_paper() -> None:
    for rule in (
        "@media (prefers-color-scheme: dark)",
        "@media (max-width:",
        "@media print",
        "color-scheme: light dark",
    ):
        assert rule in STYLE
    (head,) = as_page(hard_document()).root.all("head")
    assert any(node.attributes.get("content") == "width=device-width, initial-scale=1" for node in head.all("meta"))
    # What one theme names the other names too: no colour is left over from the other.
    names = [set(re.findall(r"(--[a-z-]+):", block)) for block in re.findall(r":root \{([^}]*)\}", STYLE)]
    assert len(names) == 3
    assert names[0] == names[1] == names[2]


def test_names_are_text_whatever_they_hold() -> None:
    page = as_page(hard_document())
    text = page.root.text
    assert SCRIPT in text
    assert text.count("x1-80gb: " + SCRIPT) == 1
    assert '=HYPERLINK("http://x","größer|模型")' in page.root.all("h1")[0].text
    assert "@SUM(A1)<script>" in text
    assert 'models/=x<i>&amp;"' in text
    assert LONG_NAME in text
    assert "\x1b" not in text
    assert "�[31mred" in text
    assert "first line\nsecond | line" in text


def verdict_rows(document: FitDocument) -> list[Node]:
    return as_page(document).section("Verdicts").all("tbody")[0].all("tr")


def test_the_verdicts_are_the_cells_of_the_terminal_s_table(document: FitDocument) -> None:
    if not document.cards:
        assert "Verdicts" not in as_page(document).root.text
        return
    section = as_page(document).section("Verdicts")
    columns = screen_columns_of(document)
    assert [node.text for node in section.all("thead")[0].all("th")] == [column.title for column in columns]
    for line, row in zip(verdict_rows(document), document.cards, strict=True):
        (card,) = line.all("th")
        assert card.text == row.card + (row.name if row.name != row.card else "")
        shown = [node.text for node in line.all("td")]
        assert shown == [column.text(document, row) for column in columns if column.key != "card"]
        assert line.all("td", str(row.verdict))[0].text == SYMBOLS[row.verdict]


def test_rounded_numbers_have_all_their_digits_behind_them(document: FitDocument) -> None:
    if not document.cards:
        return
    columns = [column for column in screen_columns_of(document) if column.key != "card"]
    for line, row in zip(verdict_rows(document), document.cards, strict=True):
        for cell, column in zip(line.all("td"), columns, strict=True):
            value = column.value(document, row)
            if isinstance(value, int) and cell.text not in ("", str(value)):
                assert [node.attributes["value"] for node in cell.all("data")] == [str(value)]
                assert cell.all("data")[0].attributes["title"].replace(",", "") == str(value)
            else:
                assert not cell.all("data")


def test_the_tally_counts_every_card_once() -> None:
    (tally,) = as_page(hard_document()).root.all("ul", "tally")
    assert [node.text for node in tally.all("li")] == [f"{SYMBOLS[verdict]}: 1" for verdict in Verdict]


def test_every_part_of_a_phase_stands_in_its_table_and_adds_up(document: FitDocument) -> None:
    table = as_page(document).section("Parts at the peak of each phase").all("table")[0]
    rows = {line.all("th")[0].text: line.all("td") for line in table.all("tbody")[0].all("tr")}
    model = {
        name: "" if name == "load" or document.scenario_ran is not False else ", by a model" for name in document.phases
    }
    said = [f"{one.evidence}{model[name]}" for name, one in document.phases.items()]
    assert [node.text for node in rows["evidence"]] == said
    parts = list(rows)[: list(rows).index("allocated")]
    for index, one in enumerate(document.phases.values()):
        assert size_in(rows["allocated"][index]) == one.allocated_bytes
        assert sum(size_in(rows[name][index]) for name in parts) == one.allocated_bytes


def size_in(cell: Node) -> int:
    """The exact size of a cell: behind it where it is rounded, else what it shows."""
    exact = [node.attributes["value"] for node in cell.all("data")]
    return int(exact[0] if exact else cell.text.removesuffix(" B"))


def test_prices_stand_beside_their_currency_and_a_missing_one_is_a_dash() -> None:
    section = as_page(real_document(BOOK)).section("Prices")
    rows = {
        line.all("th")[0].text: [node.text for node in line.all("td")] for line in section.all("tbody")[0].all("tr")
    }
    assert set(rows) == {"h100-sxm-80gb", "b200-sxm-180gb"}
    # One lot each: a lot's price is the total.
    assert rows["h100-sxm-80gb"][-3:] == ["180.50 EUR", "400.00 EUR", "-"]
    assert rows["b200-sxm-180gb"][-3:] == ["-", "1,500.25 EUR", "5,600.00 EUR"]


def test_a_book_without_prices_is_said_and_no_zero_shown() -> None:
    text = as_page(real_document()).section("Prices").text
    assert "the offer book blank has no price for these cards" in text


def test_evidence_words_are_those_that_the_document_uses() -> None:
    words = [node.text for node in as_page(hard_document()).section("Evidence").all("dt")]
    assert words == ["measured", "scaled", "assumed"]


def test_a_server_s_parts_are_open_for_few_cards_and_folded_for_many(tmp_path: Path) -> None:
    few = as_page(served_document(tmp_path, "h100-sxm"))
    many = as_page(served_document(tmp_path, "h100-sxm", "b200", "l40s", "l4"))
    assert ["open" in node.attributes for node in few.root.all("details")] == [True]
    assert ["open" in node.attributes for node in many.root.all("details")] == [False] * 4
    assert few.root.all("pre")[0].text.startswith("vllm serve ")


def percent(text: str) -> float:
    return float(text.removesuffix("%"))


def test_a_bar_s_parts_end_to_end_reach_as_far_as_the_need_does() -> None:
    # 21 GiB against a capacity of 20 at 78% of the width: 21 / 20 x 78 = 81.9%, less what the parts leave unsaid.
    bar = card_bar(TOO_CLOSE)
    drawn = as_svg(draw(bar, "x", "x"))
    parts = [node for node in drawn.all("rect") if "part" in node.attributes.get("class", "")]
    at = 0.0
    for node in parts:
        assert percent(node.attributes["x"]) == pytest.approx(at, abs=0.002)
        at += percent(node.attributes["width"])
    shown = sum(size for _, size in bar.segments)
    assert at == pytest.approx(shown / (20 * GIB) * CEILING_AT, abs=0.005)
    (ceiling,) = drawn.all("line", "ceiling")
    assert percent(ceiling.attributes["x1"]) == CEILING_AT
    whole = drawn.all("line", "interval")[0].attributes
    assert percent(whole["x1"]) == pytest.approx(19 / 20 * CEILING_AT, abs=0.001)
    assert percent(whole["x2"]) == pytest.approx(23 / 20 * CEILING_AT, abs=0.001)


def as_svg(drawing: Markup) -> Node:
    return Page.read(drawing).root


def test_a_bar_that_goes_on_is_cut_with_a_mark_and_one_that_ends_is_not() -> None:
    beyond = msgspec.structs.replace(FITS, need_upper_bytes=103 * GIB)
    # The width ends at 100 / 78 of the capacity: 80 / 0.78 = 102.56 GiB.
    assert "»" in draw(card_bar(beyond), "x", "x")
    assert "»" not in draw(card_bar(msgspec.structs.replace(FITS, need_upper_bytes=102 * GIB)), "x", "x")


def test_a_legend_names_what_its_bars_have_and_no_more() -> None:
    page = as_page(hard_document())
    cards, phases = (
        [node.text.strip() for node in page.section(title).all("ul", "legend")[0].all("li")]
        for title in ("Parts against each card's ceiling", "Parts at the peak of each phase")
    )
    lines = ["lower to upper bound", "the card's capacity"]
    assert cards == [*(group.title for group in PART_GROUPS), *lines]
    # A phase is what the allocator handed out: the driver's context is no part of it, and it has no ceiling.
    assert phases == [*(group.title for group in PART_GROUPS[:-1]), lines[0]]


def test_groups_differ_in_more_than_colour() -> None:
    page = as_page(hard_document())
    drawn = {node.attributes["id"]: node.all("path")[0].attributes["d"] for node in page.root.all("pattern")}
    assert len(set(drawn.values())) == len(PART_GROUPS) - 1  # nothing is drawn over the first


def test_what_is_not_markup_is_escaped_by_construction() -> None:
    made = element("p", '<b>&"', element("b", "x"), None, class_="a", data_x='"><i>', title=None)
    assert made == '<p class="a" data-x="&quot;&gt;&lt;i&gt;">&lt;b&gt;&amp;&quot;<b>x</b></p>'
    assert joined(["<", Markup("<br>"), None]) == "&lt;<br>"
    assert element("meta", charset="utf-8") == '<meta charset="utf-8">'


@settings(max_examples=30)
@given(text=st.text(max_size=60))
def test_no_text_changes_the_structure_of_the_page(text: str) -> None:
    base = hard_document()
    row = msgspec.structs.replace(FITS, card=text, name=text, remarks=(text,))
    document = msgspec.structs.replace(
        base,
        model=msgspec.structs.replace(base.model, name=text, source=text),
        offers=text,
        assumptions=(text,),
        notes=(text,),
        cards=(row,),
    )
    plain = msgspec.structs.replace(
        document,
        model=msgspec.structs.replace(base.model, name="a", source="b"),
        offers="c",
        assumptions=("d",),
        notes=("e",),
        cards=(msgspec.structs.replace(row, card="f", name="f", remarks=("g",)),),
    )
    skip = ("li", "dt", "dd")  # empty lines are left out
    found, expected = (
        [node.tag for node in as_page(one).root.walk() if node.tag not in skip] for one in (document, plain)
    )
    assert found == expected


def test_the_page_is_utf_8_and_ends_in_a_newline() -> None:
    page = load_format("html").render_fit(hard_document())
    assert page.startswith(b"<!DOCTYPE html>\n<html lang=")
    assert page.endswith(b"</html>\n")
    assert "größer|模型".encode() in page
