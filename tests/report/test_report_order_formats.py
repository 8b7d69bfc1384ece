"""What each format of an order promises, over one order that holds every hard value and one that holds none.

`UPDATE_GOLDEN=1 pytest tests/report` writes the golden files anew; read the difference before it is kept.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import io
import json
import os
import pkgutil
import re
from pathlib import Path
from typing import Any

import msgspec
import openpyxl
import pytest
from order_builders import empty_order, hard_order
from report_readers import Page
from test_report_golden import GOLDEN, cells_of

from gpufit.errors import UsageError
from gpufit.report import order_formats
from gpufit.report.order_document import OrderDocument, Worker
from gpufit.report.order_registry import ORDER_EXTENSIONS, ORDER_FORMATS, load_order_format, order_format_for

ORDERS = {"hard": hard_order, "empty": empty_order}


def workbook(document: OrderDocument, values: bool = False) -> Any:
    return openpyxl.load_workbook(io.BytesIO(load_order_format("xlsx").render_order(document)), data_only=values)


def markdown(document: OrderDocument) -> str:
    return load_order_format("markdown").render_order(document).decode()


def labelled(document: OrderDocument, values: bool = True) -> dict[str, Any]:
    """The `order` sheet by its labels."""
    return {row[0].value: row[1].value for row in workbook(document, values)["order"].iter_rows() if len(row) > 1}


def test_the_registry_and_the_folder_name_the_same_formats() -> None:
    modules = {f"gpufit.report.order_formats.{module.name}" for module in pkgutil.iter_modules(order_formats.__path__)}
    assert set(ORDER_FORMATS.values()) == modules
    assert set(ORDER_EXTENSIONS.values()) == set(ORDER_FORMATS)


@pytest.mark.parametrize("name", sorted(ORDER_FORMATS))
def test_every_format_has_a_renderer_a_docstring_and_says_whether_it_is_binary(name: str) -> None:
    module = importlib.import_module(ORDER_FORMATS[name])
    assert load_order_format(name) is module
    assert list(inspect.signature(module.render_order).parameters) == ["document"]
    assert module.BINARY is (name == "xlsx")
    assert module.__doc__
    assert module.render_order.__doc__


def test_what_is_no_format_is_refused() -> None:
    with pytest.raises(UsageError, match="choose one of markdown, json, xlsx, html, csv"):
        load_order_format("table")
    with pytest.raises(UsageError, match=r"cannot tell the format.*\.md, \.json, \.xlsx, \.html, \.csv or --format"):
        order_format_for("order.txt")


@pytest.mark.parametrize("kind", ORDERS)
@pytest.mark.parametrize("name", sorted(ORDER_FORMATS))
def test_an_order_renders_as_the_golden_file_says_and_always_the_same(name: str, kind: str) -> None:
    render = load_order_format(name).render_order
    rendered = render(ORDERS[kind]())
    assert render(ORDERS[kind]()) == rendered
    extension = next(one for one, format_name in ORDER_EXTENSIONS.items() if format_name == name)
    found = cells_of(rendered) if name == "xlsx" else rendered
    path = Path(GOLDEN) / f"order-{kind}{extension}{'.cells' if name == 'xlsx' else ''}"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_bytes(found)
    assert found.decode() == path.read_bytes().decode()


def test_json_is_the_document() -> None:
    for document in (hard_order(), empty_order()):
        text = load_order_format("json").render_order(document)
        assert msgspec.json.decode(text, type=OrderDocument) == document
        assert text.endswith(b"}\n")
        assert json.loads(text)["schema_version"] == 1
    assert "größer|模型" in load_order_format("json").render_order(hard_order()).decode()


def test_the_workbook_s_totals_are_formulas_that_say_what_the_document_says() -> None:
    shown, written = labelled(hard_order()), labelled(hard_order(), values=False)
    for label, value in {
        "cards paid for": 4,
        "idle cards": 1,
        "idle share of the price": 0.25,
        "price a lot (from terms)": 100.25,
        "price": 200.5,
        "of that for idle cards": 50.13,  # 50.125, halves upwards
        "hours in all, at most": 106.625,
    }.items():
        assert shown[label] == value, label
        assert str(written[label]).startswith("="), label
    assert written["price a lot (from terms)"] == '=IF(ISNUMBER(terms!H3),terms!H3,"")'
    terms = workbook(hard_order())["terms"]
    assert [terms[f"A{row}"].value for row in (2, 3, 4)] == [3, 7, 30]  # so H3 is the price for 7 days


def test_a_price_that_is_not_known_is_blank_and_never_zero() -> None:
    order = hard_order()
    cost = msgspec.structs.replace(order.cost, price_per_lot=None, total_price=None)
    terms = tuple(msgspec.structs.replace(one, price_per_lot=None, total_price=None) for one in order.terms)
    document = msgspec.structs.replace(order, cost=cost, terms=terms)
    shown = labelled(document)
    assert not shown["price a lot (from terms)"]
    assert not shown["price"]
    assert "has no price" in shown["about the price"]
    assert all(row[7].value is None for row in workbook(document)["terms"].iter_rows(min_row=2))
    assert "blank: offer book '=book' has no price" in markdown(document)


def test_an_odd_price_is_marked_beside_it() -> None:
    order = hard_order()
    odd = msgspec.structs.replace(order, cost=msgspec.structs.replace(order.cost, odd="less than for 3 days"))
    said = "odd, less than for 3 days: ask before you count on it"
    assert said in markdown(odd)
    assert said in str(labelled(odd)["about the price"])
    assert "odd" not in markdown(order)


def test_text_never_becomes_a_formula() -> None:
    for sheet in workbook(hard_order()):
        for row in sheet.iter_rows():
            for cell in row:
                if cell.data_type == "f":
                    assert re.match(r"=(SUM|IF|ROUNDUP|[BF]\d+[*/-](B\d+|order!))", cell.value), cell.value


def test_a_pipe_does_not_break_a_table_and_control_characters_reach_nobody() -> None:
    text = markdown(hard_order())
    assert not [sign for sign in text if sign != "\n" and (ord(sign) < 32 or 127 <= ord(sign) < 160)]
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) == 7  # ordered, for, room, terms, workers, environment, save
    for table in tables:
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    assert "<b>" not in text.replace("\\<b>", "")


def test_every_worker_is_in_the_workbook_and_the_ends_of_many_in_markdown() -> None:
    many = tuple(
        Worker(worker=one, devices=str(one - 1), at_once=1, first_input=one, last_input=one, inputs=1)
        for one in range(1, 201)
    )
    order = hard_order()
    document = msgspec.structs.replace(
        order, workers=many, work=msgspec.structs.replace(order.work, inputs=200), terms=order.terms
    )
    sheet = workbook(document, values=True)["workers"]
    assert [row[0].value for row in sheet.iter_rows(min_row=2, max_row=201)] == list(range(1, 201))
    assert sheet["F202"].value == 200
    text = markdown(document)
    assert re.search(r"^\| 1 +\| 0 ", text, re.MULTILINE)
    assert re.search(r"^\| 200 +\| 199 ", text, re.MULTILINE)
    assert "190 more, all in JSON and workbook" in text  # 200 less the first 8 and the last 2


def test_not_ready_stands_at_the_top() -> None:
    lines = [line for line in markdown(hard_order()).splitlines() if line]
    assert lines[1] == "**Not ready to order.**"
    assert "too close" in lines[2]
    assert labelled(hard_order())["because"] == "=1+1 | too close: größer ✓"


def test_rates_and_hours_say_that_they_are_bounds_and_on_what_evidence() -> None:
    shown = labelled(hard_order())
    assert shown["inputs/s of a worker, at least"] == 0.5
    assert shown["work, h, at most"] == 100.125
    assert (shown["evidence of these rates"], shown["evidence of the hours"]) == ("measured", "scaled")
    exact = msgspec.structs.replace(hard_order().work, throughput_lower_bound=False, hours_upper_bound=False)
    shown = labelled(msgspec.structs.replace(hard_order(), work=exact))
    assert (shown["inputs/s of a worker"], shown["hours in all"]) == (0.5, 106.625)


@pytest.mark.parametrize(("rate", "form"), [(4.5, "#,##0.00"), (0.0123, "0.00000"), (4.3e-4, "0.00E+00")])
def test_a_rate_shows_its_digits_in_the_workbook(rate: float, form: str) -> None:
    order = hard_order()
    document = msgspec.structs.replace(order, work=msgspec.structs.replace(order.work, inputs_per_second=rate))
    (cell,) = [row[1] for row in workbook(document)["order"].iter_rows() if str(row[0].value).startswith("inputs/s")]
    assert (cell.value, cell.number_format) == (rate, form)


def test_what_is_not_known_of_the_environment_is_said() -> None:
    (line,) = [line for line in markdown(hard_order()).splitlines() if line.startswith("| driver")]
    assert [cell.strip() for cell in line.strip("|").split("|")] == ["driver", "", "", "not known", ""]
    first = next(workbook(hard_order())["environment"].iter_rows(min_row=2, values_only=True))
    assert first[0] == "driver"
    assert first[3] == "not known"


def test_csv_has_a_row_a_term_and_says_which_is_ordered() -> None:
    rows = list(csv.DictReader(io.StringIO(load_order_format("csv").render_order(hard_order()).decode(), newline="")))
    document = hard_order()
    assert [row["term_days"] for row in rows] == ["3", "7", "30"]
    assert [row["term_days"] for row in rows if row["chosen"] == "true"] == [str(document.term_days)] == ["7"]
    ordered = rows[1]
    # Two lots of two at 100.25
    assert (ordered["lots"], ordered["cards"], ordered["price_per_lot"], ordered["total_price"]) == (
        "2",
        "4",
        "100.25",
        "200.5",
    )
    assert ordered["need_upper_bytes"] == str(document.margin.need_upper_bytes)
    assert all(
        row["total_price"] == "" for row, term in zip(rows, document.terms, strict=True) if term.total_price is None
    )
    assert {row["evidence"] for row in rows} == {str(document.evidence)}
    switched = msgspec.structs.replace(document.scenario, weights=None, compute=None, kv_cache="FP8")
    content = load_order_format("csv").render_order(msgspec.structs.replace(document, scenario=switched)).decode()
    held = {
        (row["weights"], row["compute"], row["kv_cache"]) for row in csv.DictReader(io.StringIO(content, newline=""))
    }
    assert held == {("as profiled", "as profiled", "FP8")}


def test_the_page_has_every_section_of_the_markdown_and_every_worker() -> None:
    for document in (hard_order(), empty_order()):
        page = Page.read(load_order_format("html").render_order(document).decode())
        headings = [line.removeprefix("## ") for line in markdown(document).split("\n") if line.startswith("## ")]
        assert [node.text for node in page.root.all("h2")] == headings
        (status_line,) = page.root.all("header")[0].all("li")[:1]
        assert f"**{status_line.text}**" in markdown(document)
        assert not page.root.all("script")
    page = Page.read(load_order_format("html").render_order(hard_order()).decode())
    assert len(page.section("Workers").all("tr")) == 1 + len(hard_order().workers)
    commands = [node.text for node in page.section("Checks on arrival").all("code")]
    assert commands == [check.command for check in hard_order().checks]
    facts = page.section("What is ordered")
    pairs = dict(zip([one.text for one in facts.all("dt")], [one.text for one in facts.all("dd")], strict=True))
    assert pairs["cards paid for"] == "4"
    completion = hard_order().completion
    assert completion is not None
    assert page.section("The whole job is complete if").all("code")[0].text == completion.script.rstrip()
