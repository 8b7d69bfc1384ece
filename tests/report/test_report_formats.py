"""What each format promises, checked on the hard document and on documents of real verdicts."""

from __future__ import annotations

import math
import re
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from report_builders import FITS, GIB, UNKNOWN, hard_document
from report_readers import CATALOG, as_csv, as_json, as_workbook, real_document

from gpufit.report.cells import SCREEN_COLUMNS
from gpufit.report.document import SCHEMA_VERSION, FitDocument
from gpufit.report.formats.csv import guard
from gpufit.report.price_text import PRICE_HEADERS, cost_headers
from gpufit.report.registry import FORMATS, load_format

PART_KEYS = {
    "weights_bytes",
    "buffers_bytes",
    "kv_cache_bytes",
    "inputs_bytes",
    "outputs_bytes",
    "activations_bytes",
    "temporaries_bytes",
    "rounding_bytes",
    "unexplained_bytes",
}


RATES = ("inputs_per_second", "generated_tokens_per_second", "prompt_tokens_per_second")


def precisions_in(precision: dict[str, Any]) -> dict[str, Any]:
    """The columns of the four precisions: dtypes by the name, whatever their sizes."""
    dtypes = {
        f"{name}_dtype": "/".join(dict.fromkeys(one["dtype"] for one in precision[name])) or None
        for name in ("stored", "resident", "kv")
    }
    families = [f"{one['family']} {'/'.join(one['dtypes'])}" for one in precision["compute"]]
    method = precision["quantization"] and precision["quantization"]["method"]
    return dtypes | {"compute_dtype": ", ".join(families) or None, "quantization": method}


def in_json(document: dict[str, Any], row: dict[str, Any], key: str) -> Any:
    """The JSON value that a CSV column stands for, by the column's name alone."""
    first = row["prices"][0]
    prices = {
        f"{name}_{price['term_days']}_days": price[name]
        for price in row["prices"]
        for name in ("total_price", "idle_price", "cost_per_million_tokens", "cost_per_thousand_inputs")
    }
    odd = [f"{one['term_days']} days: {one['odd']}" for one in row["prices"] if one["odd"]]
    priced = any(price["price_per_lot"] is not None for price in row["prices"])
    book = {one["name"]: one for one in document["offer_books"]}[first["book"]] if priced else {}
    speed = row["throughput"] or {}
    elsewhere = {
        "model": document["model"]["name"],
        "engine": document["engine"]["name"],
        "engine_version": document["engine"]["version"],
        "attention": document["engine"]["attention"],
        # Either document multiplies matrices in one dtype, or nothing was observed.
        "dtype": next((one["dtypes"][0] for one in document["precision"]["compute"]), None),
        **precisions_in(document["precision"]),
        "holds_for": document["holds_for"],
        "lot_size_cards": row["lot_size"],
        "currency": first["currency"],
        "seller": first["seller"],
        "offer_book": first["book"],
        "offered_on": book.get("offered_on"),
        "price_age_days": book.get("age_days"),
        "price_notes": "; ".join(book["notes"]) if book else None,
        "odd_prices": "; ".join(odd) or None,
        "throughput_how": speed.get("how"),
        "throughput_evidence": speed.get("evidence"),
        **{name: speed.get(name) for name in RATES},
    }
    for place in (elsewhere, prices, document["scenario"], row["parts"], row):
        if key in place:
            return place[key]
    raise AssertionError(f"no such value in the JSON: {key}")


HOSTS = ("idle_hosts_copies", "idle_hosts_sequences")
OF_A_PLAN = ("arrangement", "cards_needed", "lots", "idle_cards", "prices", *HOSTS)
SHARES = ("tensor_parallel_size", "pipeline_parallel_size", "copies", "sequences_per_copy", "machines")
NEEDS = ("need_bytes", "need_lower_bytes", "need_upper_bytes")


def arranged(row: dict[str, Any]) -> list[dict[str, Any]]:
    """A card's row once for each of its arrangements, in the JSON's order; speed was measured of the first alone."""
    found = []
    for number, plan in enumerate(row["arrangements"] or [None]):
        of_plan = {key: row[key] if plan is None else plan[key] for key in OF_A_PLAN}
        of_plan |= {key: plan and plan[key] for key in SHARES}
        of_plan |= {f"device_{key}": plan and plan[key] for key in NEEDS}
        of_plan |= {"arrangement_evidence": plan and plan["evidence"]}
        found.append(row | of_plan | {"throughput": row["throughput"] if number == 0 else None})
    return found


@pytest.mark.parametrize("document", [hard_document(), real_document()], ids=["hard", "real"])
def test_json_has_the_keys_of_the_contract_with_whole_bytes(document: FitDocument) -> None:
    found = as_json(document)
    assert {"schema_version", "evidence", "model", "precision", "scenario", "phases", "cards"} <= set(found)
    assert found["schema_version"] == SCHEMA_VERSION
    assert {"stored", "resident", "compute", "kv"} <= set(found["precision"])
    assert {"context_tokens", "new_tokens", "concurrency"} <= set(found["scenario"])
    assert {"prefill", "decode"} <= set(found["phases"])
    for phase in found["phases"].values():
        assert set(phase["parts"]) == PART_KEYS
        assert phase["allocated_bytes"] == sum(phase["parts"].values())
        assert phase["need_bytes"] <= phase["need_upper_bytes"]
    assert found["cards"]
    for row in found["cards"]:
        assert {
            "card",
            "capacity_bytes",
            "verdict",
            "binding",
            "headroom_bytes",
            "headroom_lower_bytes",
            "max_concurrency",
            "max_context_tokens",
            "cards_needed",
            "lot_size",
            "lots",
            "arrangement",
            "prices",
        } <= set(row)
        assert row["verdict"] in ("fits", "too_close", "does_not_fit", "unknown")
        assert [price["term_days"] for price in row["prices"]] == [3, 7, 30]


def sizes_in(value: Any, key: str = "") -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        return [found for name, one in value.items() for found in sizes_in(one, name)]
    if isinstance(value, list):
        return [found for one in value for found in sizes_in(one, key)]
    return [(key, value)] if key.endswith("_bytes") else []


def test_every_size_in_json_is_a_whole_number_or_null() -> None:
    for document in (hard_document(), real_document()):
        for key, size in sizes_in(as_json(document)):
            assert size is None or type(size) is int, key


def test_json_keeps_a_huge_number_exactly_and_what_is_not_known_as_null() -> None:
    cards = as_json(hard_document())["cards"]
    assert cards[1]["need_bytes"] == 1_152_921_504_606_846_976
    assert cards[1]["capacity_bytes"] == 0
    assert cards[2]["capacity_bytes"] is None
    assert cards[2]["max_concurrency"] is None
    blank = cards[0]["prices"][1]
    assert (blank["term_days"], blank["currency"], blank["offered_on"]) == (7, "EUR", "2026-01-31")
    assert (blank["price_per_lot"], blank["total_price"]) == (None, None)
    assert cards[0]["throughput"]["generated_tokens_per_second"] is None
    assert cards[1]["throughput"] is None


def test_json_keeps_unicode_readable_and_ends_in_a_newline() -> None:
    text = load_format("json").render_fit(hard_document()).decode("utf-8")
    assert "größer|模型" in text
    assert text.endswith("}\n")


@pytest.mark.parametrize("document", [hard_document(), real_document()], ids=["hard", "real"])
def test_csv_holds_the_values_of_the_json(document: FitDocument) -> None:
    found, rows = as_json(document), as_csv(document)
    cards = [one for card in found["cards"] for one in arranged(card)]
    for row, card in zip(rows, cards, strict=True):
        for key, text in row.items():
            if key == "binding":
                assert str(card["binding"]["phase"]) in text
                continue
            value = in_json(found, card, key)
            value = "; ".join(value) if key == "remarks" else value
            if value is None:
                assert text == ""
            elif isinstance(value, str):
                assert text.removeprefix("'") == value
            else:
                assert (float(text) if isinstance(value, float) else int(text)) == value


def test_csv_has_a_row_a_card_and_arrangement_the_best_first() -> None:
    rows = [(row["card"], row["arrangement"], row["cards_needed"], row["lots"]) for row in as_csv(hard_document())]
    assert rows == [
        ("x1-80gb", "single", "1", "1"),
        ("x0|1b", "", "", ""),
        ("'+x2", "", "", ""),
        ("x3-24gb", "replicas", "3", "2"),
        ("x3-24gb", "sharded", "4", "2"),
        ("x3-24gb", "pipeline", "1000001", "500001"),
    ]
    *_, replicas, sharded, pipeline = as_csv(hard_document())
    # Two lots at 0.01 and at 2.00, half a million and one at 2.00; what the book leaves blank is blank.
    totals = [[row[f"total_price_{days}_days"] for days in (3, 7, 30)] for row in (replicas, sharded, pipeline)]
    assert totals == [["0.02", "4.0", "6.0"], ["0.02", "4.0", ""], ["", "1000002.0", ""]]
    # What is said of one card, and the evidence of it, repeats; that of the arrangement is its own.
    for key in ("verdict", "need_bytes", "headroom_bytes", "binding", "max_concurrency", "evidence"):
        assert replicas[key] == sharded[key] == pipeline[key] != ""
    assert [row["arrangement_evidence"] for row in (replicas, sharded, pipeline)] == ["scaled", "scaled", "assumed"]


def test_csv_is_utf_8_without_a_mark_and_a_line_a_row() -> None:
    text = load_format("csv").render_fit(hard_document())
    assert not text.startswith(b"\xef\xbb\xbf")
    assert b"\r" not in text
    assert text.count(b"\n") == 1 + len(as_csv(hard_document()))
    assert "Größte Card ✓ 测试" in text.decode("utf-8")


def test_every_csv_column_says_its_unit() -> None:
    words = {"model", "engine", "card", "name", "verdict", "binding", "arrangement", "currency", "remarks", "evidence"}
    words |= {"engine_version", "attention", "dtype", "holds_for", "seller", "offer_book", "offered_on"}
    words |= {"stored_dtype", "resident_dtype", "compute_dtype", "kv_dtype", "quantization", "odd_prices"}
    words |= {"price_notes", "throughput_how", "throughput_evidence", "arrangement_evidence"}
    counts = {"concurrency", "max_concurrency", "lots", "copies", "sequences_per_copy"}
    counts |= {"tensor_parallel_size", "pipeline_parallel_size"}  # vLLM's names, in devices
    counts |= {"idle_hosts_copies", "idle_hosts_sequences", "machines"}
    for key in as_csv(hard_document())[0]:
        with_unit = key.endswith(("_bytes", "_tokens", "_days", "_cards", "_per_second")) or key == "cards_needed"
        assert with_unit or key in words | counts, key


def test_no_text_cell_of_the_csv_begins_as_a_formula_and_numbers_are_left_alone() -> None:
    for row in as_csv(hard_document()):
        for key, text in row.items():
            if text[:1] in ("=", "+", "-", "@"):
                assert key.endswith("_bytes"), (key, text)
                float(text)
    first, second, third, *_, last = as_csv(hard_document())
    assert first["model"].startswith("'=HYPERLINK(")
    assert second["name"] == "'@SUM(A1)<script>"
    assert third["card"] == "'+x2"
    assert third["name"] == '\'-2+3 "quoted", with a comma'
    assert last["headroom_bytes"] == str(-GIB)


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_the_guard_is_an_apostrophe_before_what_a_spreadsheet_would_run(start: str) -> None:
    assert guard(f"{start}1+1") == f"'{start}1+1"


@pytest.mark.parametrize("value", [None, 0, -1, -1.5, 2**60, "", "plain", "a=b", " =1", "1-1", "'=1"])
def test_the_guard_leaves_everything_else_as_it_is(value: Any) -> None:
    assert guard(value) == value


def test_a_character_that_ends_a_row_for_some_readers_is_made_visible() -> None:
    assert guard("two\rrows\tor more") == "two\N{REPLACEMENT CHARACTER}rows\N{REPLACEMENT CHARACTER}or more"


def test_the_workbook_s_cards_hold_the_values_of_the_json_as_numbers() -> None:
    for document in (hard_document(), real_document()):
        found, keys = as_json(document), list(as_csv(document)[0])
        head, *rows = as_workbook(document, values=True)["cards"].iter_rows()
        assert len(head) == len(keys)
        assert len(rows) == len(found["cards"])
        best = [arranged(card)[0] for card in found["cards"]]
        for cells, card in zip(rows, best, strict=True):
            for title, key, cell in zip(head, keys, cells, strict=True):
                if key == "binding":
                    continue
                value = in_json(found, card, key)
                value = "; ".join(value) if key == "remarks" else value
                if value is None or value == "":
                    assert not cell.value
                elif key == "offered_on":
                    assert (cell.value.date().isoformat(), cell.data_type) == (value, "d")
                elif isinstance(value, str):
                    assert (cell.value, cell.data_type) == (value, "s")
                elif key.endswith("_bytes"):
                    assert title.value.endswith("(GiB)")
                    assert cell.data_type == "n"
                    # A cell holds 16 digits.
                    assert math.isclose(cell.value * 2**30, value, rel_tol=1e-15, abs_tol=1e-6)
                else:
                    assert (cell.value, cell.data_type) == (value, "n")


def test_a_model_whose_name_begins_as_a_formula_is_text_in_the_workbook() -> None:
    book = as_workbook(hard_document())
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    formulas = [cell for cell in cells if cell.data_type == "f"]
    assert {cell.parent.title for cell in formulas} == {"summary", "cards", "prices", "arrangements", "scenario"}
    assert all(cell.value.startswith(("=IF(", "=SUM(", "=INDEX(")) for cell in formulas)
    assert sum(cell.hyperlink is not None for cell in cells) == 0
    names = {cell.value: cell.data_type for cell in cells}
    assert names['=HYPERLINK("http://x","größer|模型")'] == "s"


def test_the_workbook_is_ready_to_read() -> None:
    sheet = as_workbook(real_document())["cards"]
    assert sheet.freeze_panes == "G2"  # the header row, and the columns up to the card
    assert sheet.auto_filter.ref == f"A1:CB{1 + len(CATALOG.cards)}"
    titles = [cell.value for cell in sheet[1]]
    assert len(set(titles)) == len(titles)
    assert "new tokens" in titles
    assert "price, 7 days" in titles


def table_cells(document: FitDocument) -> list[list[str]]:
    """The cards of the terminal table, split where its rule of dashes says that columns begin."""
    lines = load_format("table").render_fit(document).decode().splitlines()
    rule = next(number for number, line in enumerate(lines) if line.startswith("---"))
    spans = [match.span() for match in re.finditer("-+", lines[rule])]
    end = next(number for number in range(rule, len(lines)) if not lines[number])
    rows = [lines[rule - 1], *lines[rule + 1 : end]]
    return [[row[start:stop].strip() for start, stop in spans] for row in rows]


def markdown_tables(document: FitDocument) -> list[list[str]]:
    """The lines of each table: cards first, then prices and costs where there are any."""
    blocks = load_format("markdown").render_fit(document).decode().split("\n\n")
    return [block.splitlines() for block in blocks if block[:1] == "|"]


def markdown_cells(document: FitDocument) -> list[list[str]]:
    lines = markdown_tables(document)[0]
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in [lines[0], *lines[2:]]]
    return [[re.sub(r"\\(.)", r"\1", cell.strip()) for cell in row] for row in cells]


@pytest.mark.parametrize("document", [hard_document(), real_document()], ids=["hard", "real"])
def test_table_and_markdown_agree_cell_for_cell_with_the_columns(document: FitDocument) -> None:
    expected = [[column.title for column in SCREEN_COLUMNS]]
    expected += [[column.text(document, row) for column in SCREEN_COLUMNS] for row in document.cards]
    assert table_cells(document) == expected
    assert markdown_cells(document) == expected


def test_a_pipe_in_a_card_s_name_does_not_break_the_markdown_table() -> None:
    widths = [{len(re.findall(r"(?<!\\)\|", line)) for line in table} for table in markdown_tables(hard_document())]
    assert widths == [{len(SCREEN_COLUMNS) + 1}, {len(PRICE_HEADERS) + 1}, {len(cost_headers(hard_document())) + 1}]


def test_control_characters_in_a_name_never_reach_a_terminal() -> None:
    for name in ("table", "markdown"):
        text = load_format(name).render_fit(hard_document()).decode()
        assert "�[31mred�[0m" in text.replace("\\", "")
        assert not [sign for sign in text if sign != "\n" and (ord(sign) < 32 or 127 <= ord(sign) < 160)]


def test_the_table_shows_every_part_once_and_every_remark() -> None:
    text = load_format("table").render_fit(hard_document()).decode()
    for title in ("weights", "KV cache", "temporaries", "allocated", "interval", "evidence"):
        assert re.search(rf"^{title} ", text, re.MULTILINE), title
    assert not re.search(r"^rounding ", text, re.MULTILINE)  # no phase has any
    assert "assumed on the way to each card:\n  - upper bound: 2%" in text
    assert "notes:\n  - größer ✓ | as a pipe\n  - =1+1\n" in text


@settings(max_examples=25)
@given(
    name=st.text(max_size=20),
    note=st.text(max_size=40),
    size=st.none() | st.integers(0, 2**70),
    need=st.integers(0, 2**70),
    price=st.none() | st.floats(0.01, 1e9),
    tokens=st.none() | st.integers(0, 2**40),
)
def test_whatever_a_document_holds_every_format_renders_it(
    name: str, note: str, size: int | None, need: int, price: float | None, tokens: int | None
) -> None:
    base = hard_document()
    one = msgspec.structs.replace(FITS.prices[0], price_per_lot=price, total_price=price)
    row = msgspec.structs.replace(
        FITS,
        name=name,
        capacity_bytes=size,
        need_bytes=need,
        max_context_tokens=tokens,
        prices=(one, one, one),
    )
    document = msgspec.structs.replace(
        base, model=msgspec.structs.replace(base.model, name=name), notes=(note,), cards=(row, UNKNOWN)
    )
    for form in FORMATS:
        assert load_format(form).render_fit(document)
    assert as_json(document)["cards"][0]["need_bytes"] == need
    assert as_csv(document)[0]["need_bytes"] == str(need)
