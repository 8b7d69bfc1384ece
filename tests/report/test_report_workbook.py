"""The workbook's sheets: inputs, formulas with their values, the chart, evidence in words."""

from __future__ import annotations

import io
import re
import zipfile
from pathlib import Path

import pytest
from openpyxl.utils import get_column_letter
from report_builders import GIB, HUGE, LONG_NAME, PREFILL_BYTES, SCRIPT, hard_document
from report_readers import BOOK, as_json, as_workbook, document_without_cards, real_document, served_document

from gpufit.profile.peaks import Parts
from gpufit.report.cells import SYMBOLS
from gpufit.report.part_groups import PART_GROUPS
from gpufit.report.registry import load_format
from gpufit.report.workbook.paper import LONGEST_TEXT, Paper
from gpufit.report.workbook.places import cell, column_range

SHEETS = ["summary", "chart", "cards", "prices", "arrangements", "parts", "scenario", "evidence"]


def rows_of(sheet: object, first: int) -> list[dict[str, object]]:
    """The table whose header stands in a row, by the words of its header."""
    heads, *rows = list(sheet.iter_rows(min_row=first, values_only=True))  # type: ignore[attr-defined]
    return [dict(zip(heads, row, strict=True)) for row in rows]


def test_the_sheets_are_there_and_headers_stay_in_sight() -> None:
    book = as_workbook(hard_document())
    assert book.sheetnames == SHEETS
    frozen = {sheet.title: sheet.freeze_panes for sheet in book if sheet.title != "chart"}
    assert frozen == {
        "summary": "B5", "cards": "G2", "prices": "B5", "arrangements": "B2", "parts": "B2", "scenario": "B2",
        "evidence": "A2",
    }  # fmt: skip


def test_without_cards_there_is_nothing_to_draw_and_nothing_fails() -> None:
    assert as_workbook(document_without_cards()).sheetnames == [
        name for name in SHEETS if name not in ("chart", "arrangements")
    ]


def test_a_price_is_an_input_and_its_total_a_formula_with_its_value() -> None:
    document = hard_document()
    formulas, values = (rows_of(as_workbook(document, values)["prices"], 4) for values in (False, True))
    for line, formula, value in zip(as_json(document)["cards"], formulas, values, strict=True):
        assert value["card"] == line["card"]
        assert value["cards needed"] == line["cards_needed"]
        assert formula["lot size (cards)"] == line["lot_size"]
        assert (value["lots"], value["idle cards"]) == (line["lots"], line["idle_cards"])
        assert str(formula["lots"]).startswith("=IF(")
        for price in line["prices"]:
            asked, total = f"price of a lot, {price['term_days']} days", f"total, {price['term_days']} days"
            assert formula[asked] == price["price_per_lot"]
            assert value[total] == price["total_price"]
            assert str(formula[total]).startswith("=IF(OR(")


def test_input_cells_are_shaded_and_take_only_what_can_be_a_price() -> None:
    sheet = as_workbook(hard_document())["prices"]
    shaded = {place.coordinate for row in sheet["A5:S8"] for place in row if place.fill.fgColor.rgb == "FFFFF6D6"}
    assert shaded == {f"{column}{row}" for column in "DMOQ" for row in range(5, 9)}
    guards = {str(one.sqref): (one.type, one.operator, one.formula1) for one in sheet.data_validations.dataValidation}
    assert guards == {
        "D5:D8": ("whole", "greaterThanOrEqual", "1"),
        **{f"{column}5:{column}8": ("decimal", "greaterThan", "0") for column in "MOQ"},
    }


def test_inputs_are_looked_up_by_card_and_offer_book_wherever_they_stand() -> None:
    book = as_workbook(hard_document())
    found = "SUMPRODUCT((prices!$A$5:$A$8={card})*(prices!$H$5:$H$8={book})*(ROW(prices!$A$5:$A$8)-4))"
    titles = [head.value for head in book["cards"][1]]
    card, offer = (f"${get_column_letter(titles.index(one) + 1)}5" for one in ("card", "offer book"))
    lots = f"${get_column_letter(titles.index('lots') + 1)}5"
    asked = f"INDEX(prices!$O$5:$O$8,{found.format(card=card, book=offer)})"
    total = book["cards"].cell(5, titles.index("price, 7 days") + 1).value
    assert total == f'=IF(OR({lots}="",{asked}=""),"",ROUND({lots}*{asked},2))'
    rows = list(book["summary"].iter_rows())
    heads = next(row for row in rows if row[3].value == "lots")
    first = rows[heads[0].row]
    at = [head.value for head in heads]
    place = {title: first[at.index(title)].coordinate for title in ("card", "offer book")}
    keys = {"card": f"${place['card']}", "book": f"${place['offer book']}"}
    assert first[at.index("lot size (cards)")].value == f"=INDEX(prices!$D$5:$D$8,{found.format(**keys)})"


def test_lots_of_an_arrangement_follow_the_card_s_first_lot_size() -> None:
    sheet = as_workbook(hard_document())["arrangements"]
    titles = [head.value for head in sheet[1]]
    lots = sheet.cell(2, titles.index("lots") + 1).value
    needed = f"${get_column_letter(titles.index('cards') + 1)}2"
    first = "INDEX(prices!$D$5:$D$8,MATCH($A2,prices!$A$5:$A$8,0))"
    assert lots == f'=IF({needed}="","",ROUNDUP({needed}/{first},0))'


def test_the_summary_s_verdicts_have_their_sign() -> None:
    rows = rows_of(as_workbook(hard_document(), True)["summary"], 4)
    assert [row["verdict"] for row in rows[:4]] == [SYMBOLS[row.verdict] for row in hard_document().cards]


def test_the_scenario_s_parts_are_whole_bytes_and_their_sum_a_formula() -> None:
    sheet, values = (as_workbook(hard_document(), one)["scenario"] for one in (False, True))
    first = next(row for row in range(1, 40) if str(sheet.cell(row, 1).value).startswith("part, at"))
    last = first + len(Parts.NAMES)
    assert [sheet.cell(first, column).value for column in (2, 3, 4)] == ["load", "prefill", "decode"]
    for column, total in zip((2, 3, 4), (16 * GIB, PREFILL_BYTES, HUGE), strict=True):
        letter = "ABCD"[column - 1]
        assert sheet.cell(last + 1, column).value == f"=SUM({letter}{first + 1}:{letter}{last})"
        # A cell holds 16 digits.
        assert values.cell(last + 1, column).value == pytest.approx(total, rel=1e-15)
        parts = [values.cell(row, column).value for row in range(first + 1, last + 1)]
        assert sum(parts) == pytest.approx(total, rel=1e-15)


def test_the_scenario_s_facts_are_numbers_where_they_are_counts() -> None:
    sheet = as_workbook(hard_document())["scenario"]
    facts = {sheet.cell(row, 1).value: sheet.cell(row, 2).value for row in range(2, 18)}
    assert facts["context (tokens)"] == 131_072
    assert facts["new tokens"] == 1000
    assert facts["sequences at once"] == 7
    assert facts["parameters"] == 8_030_261_248
    assert facts["model"] == '=HYPERLINK("http://x","größer|模型")'
    assert facts["profile"] == f"profiles/{LONG_NAME}=1+1|ü.json"


def test_the_parts_of_a_card_are_in_gib_and_the_chart_draws_them_all() -> None:
    document = real_document(BOOK)
    rows = rows_of(as_workbook(document, True)["parts"], 1)
    for shown, row in zip(rows, document.cards, strict=True):
        parts = [shown[f"{group.title} (GiB)"] for group in PART_GROUPS]
        assert sum(parts) * GIB == pytest.approx(row.need_bytes, abs=1)  # type: ignore[arg-type]
        assert shown["need (GiB)"] == pytest.approx(row.need_bytes / GIB, rel=1e-15)
        assert (shown["capacity (GiB)"] is None) == (row.capacity_bytes is None)
        assert not row.capacity_bytes or shown["capacity (GiB)"] == pytest.approx(row.capacity_bytes / GIB, rel=1e-15)
        spread = (row.need_upper_bytes - row.need_bytes) / GIB
        assert shown["upper less need (GiB)"] == pytest.approx(spread, rel=1e-15)  # a cell holds 16 digits
    with zipfile.ZipFile(io.BytesIO(load_format("xlsx").render_fit(document))) as members:
        chart = members.read("xl/charts/chart1.xml").decode()
    drawn = set(re.findall(r"<c:val><c:numRef><c:f>(.*?)</c:f>", chart))
    # Six groups, the need that carries the interval, and the capacity, for 41 cards.
    assert drawn == {f"parts!${letter}$2:${letter}$42" for letter in "BCDEFGHK"}
    assert '<c:grouping val="stacked"/>' in chart
    assert set(re.findall(r"<c:(plus|minus)><c:numRef><c:f>(.*?)</c:f>", chart)) == {
        ("plus", "parts!$N$2:$N$42"), ("minus", "parts!$M$2:$M$42")
    }  # fmt: skip


def test_every_figure_stands_beside_its_evidence_and_every_sentence_in_the_same_table() -> None:
    document = hard_document()
    rows = rows_of(as_workbook(document)["evidence"], 1)
    needs = {row["for"]: row for row in rows if row["what"] == "need"}
    for row in document.cards:
        assert needs[row.card]["evidence"] == str(row.evidence)
        assert needs[row.card]["likely (GiB)"] == row.need_bytes / GIB
    phases = {row["for"]: row["evidence"] for row in rows if row["what"] == "allocated"}
    assert phases == {"load": "measured", "prefill": "scaled", "decode": "assumed"}
    said = {what: [row["in words"] for row in rows if row["what"] == what] for what in ("assumed", "note", "growth")}
    assert said["assumed"] == list(document.assumptions)
    assert said["note"][: len(document.notes)] == list(document.notes)
    assert f"x1-80gb: {SCRIPT}" in said["note"]
    assert said["growth"] == [
        "KV cache: 3.0 MiB a sequence + 23,040 B a token + 11,520 B a token up to 4,096 tokens of a sequence"
    ]


def test_a_server_s_parts_each_have_their_evidence(tmp_path: Path) -> None:
    document = served_document(tmp_path, "h100-sxm", "b200")
    rows = rows_of(as_workbook(document)["evidence"], 1)
    for row in document.cards:
        assert row.start is not None
        shown = {one["what"]: one["evidence"] for one in rows if one["for"] == row.card}
        assert shown["weights"] == str(row.start.parts[0].evidence)
        assert {"need", "weights", "activation", "outside torch", "CUDA graphs"} <= set(shown)


def test_a_text_longer_than_a_cell_holds_ends_in_an_ellipsis() -> None:
    class Sheet:
        def write_string(self, row: int, column: int, text: str, form: object) -> None:
            self.written = text

    sheet = Sheet()
    Paper(sheet, {"words": None}).text(0, 0, "x" * 40_000)
    assert sheet.written == "x" * (LONGEST_TEXT - 1) + "…"


def test_places_are_named_as_formulas_name_them() -> None:
    assert (cell(0, 0), cell(4, 2), cell(41, 25)) == ("A1", "C5", "Z42")
    assert column_range("parts", 2, 1, 41) == "parts!$C$2:$C$42"
    assert [cell(0, column) for column in (26, 51, 52, 701, 702)] == ["AA1", "AZ1", "BA1", "ZZ1", "AAA1"]
    assert cell(4, 2, fixed=True) == "$C5"
    with pytest.raises(ValueError, match="column -1"):
        cell(0, -1)
