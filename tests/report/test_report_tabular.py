"""Documents with tables in each format, read back by readers that are not ours: figures from arithmetic."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from tabular_builders import (
    LOAD,
    PREFILL,
    REPORTS,
    as_csv,
    as_json,
    as_page,
    as_workbook,
    bare,
    curve_of,
    growth_of,
    precision_of,
    profiles_of,
    swept,
    times_of,
)

from gpufit.advice.curve import Axis
from gpufit.memory.held import Cache, Held
from gpufit.report.curve_table import curve_report
from gpufit.report.registry import TABULAR_FORMATS, load_tabular_format
from gpufit.report.schema import DOCUMENTS, schema_of
from gpufit.report.tabular import TabularReport
from gpufit.units import GIB

EVERY = pytest.mark.parametrize("make", REPORTS.values(), ids=REPORTS)
CEILING = 1_490_641_216
"""What 2 GiB leave the allocator, beside the driver context and the library workspace."""


def of(rows: list[dict[str, str]], **wanted: str) -> dict[str, str]:
    """The one row that has these."""
    (found,) = (row for row in rows if all(row[key] == value for key, value in wanted.items()))
    return found


def renamed(name: str) -> TabularReport:
    profile = swept()
    return curve_of(profile=msgspec.structs.replace(profile, model=msgspec.structs.replace(profile.model, name=name)))


class TestEveryKind:
    @EVERY
    @pytest.mark.parametrize("name", TABULAR_FORMATS)
    def test_the_same_report_gives_the_same_bytes(self, make: Callable[[], TabularReport], name: str) -> None:
        render = load_tabular_format(name).render_tables
        assert render(make()) == render(make())

    @EVERY
    def test_its_json_is_valid_by_its_schema_alone(self, make: Callable[[], TabularReport]) -> None:
        report = make()
        written = as_json(report)
        valid = {name for name in DOCUMENTS if Draft202012Validator(schema_of(name)).is_valid(written)}
        assert valid == {report.kind}
        content = load_tabular_format("json").render_tables(report)
        assert msgspec.json.decode(content, type=type(report.document)) == report.document
        written["schema_version"] += 1
        assert not Draft202012Validator(schema_of(report.kind)).is_valid(written)

    @EVERY
    def test_no_column_of_a_table_is_a_column_of_the_question(self, make: Callable[[], TabularReport]) -> None:
        report = make()
        asked = {heading.key for heading in report.question.headings}
        for table in report.tables:
            keys = [heading.key for heading in table.headings]
            assert len(set(keys)) == len(keys)
            assert not asked & set(keys), (report.kind, table.name)

    @EVERY
    def test_every_table_says_what_its_figures_rest_on(self, make: Callable[[], TabularReport]) -> None:
        report = make()
        for table in report.tables:
            assert "evidence" in [heading.key for heading in table.headings], table.name
        meant = [node.text for node in as_page(report).section("Evidence").all("dt")]
        assert meant == [str(kind) for kind in report.evidence]
        written = {row["evidence"] for row in as_csv(report)} | {
            row.get("weakest_evidence", "") for row in as_csv(report)
        }
        assert written - {""} == set(meant)

    @EVERY
    def test_csv_page_and_workbook_have_the_same_rows(self, make: Callable[[], TabularReport]) -> None:
        report = make()
        rows, page, book = as_csv(report), as_page(report), as_workbook(report)
        for table in report.tables:
            count = sum(row.get("table", table.name) == table.name for row in rows)
            assert count == len(table.rows) > 0
            assert len(page.section(table.title).all("tr")) == count + 1
            assert book[table.name].max_row == count + 1

    @EVERY
    def test_the_page_is_whole_and_loads_nothing(self, make: Callable[[], TabularReport]) -> None:
        page = as_page(make())
        assert page.doctypes == ["DOCTYPE html"]
        for node in page.root.walk():
            assert node.tag not in ("script", "img", "iframe", "object")
            assert not [name for name in node.attributes if name in ("src", "onload") or name.startswith("on")]
        ids = [node.attributes["id"] for node in page.root.walk() if "id" in node.attributes]
        assert len(set(ids)) == len(ids)

    @EVERY
    def test_the_workbook_s_summary_says_what_was_asked(self, make: Callable[[], TabularReport]) -> None:
        report = make()
        sheet = as_workbook(report)["summary"]
        assert sheet["A1"].value == report.title
        lines = [(row[0].value, row[1].value) for row in sheet.iter_rows(min_row=3)]
        (question,) = report.question.rows
        for heading, cell in zip(report.question.headings, question, strict=True):
            assert (heading.title, cell.text) in lines
        for note in report.notes:
            assert ("note", note) in lines


class TestCurve:
    def test_csv_has_each_phase_with_its_interval_at_each_place(self) -> None:
        rows = as_csv(curve_of())
        at = of(rows, table="points", phase="prefill", at_context_tokens="512")
        assert int(at["allocated_bytes"]) == PREFILL
        assert int(at["allocated_lower_bytes"]) <= PREFILL <= int(at["allocated_upper_bytes"])
        assert (at["evidence"], at["context_tokens"], at["concurrency"], at["new_tokens"]) == (
            "measured",
            "512",
            "4",
            "4",
        )
        beyond = of(rows, table="points", phase="prefill", at_context_tokens="2048")
        # 256,004,000 + 1,000,000 + 4 logits + 4 x 2048 tokens
        assert int(beyond["allocated_bytes"]) == 257_404_000 + 8192 * 25_016
        assert beyond["evidence"] == "scaled"
        assert {row["allocated_bytes"] for row in rows if row["phase"] == "load"} == {str(LOAD)}

    def test_csv_has_each_card_s_crossing_and_blanks_for_what_nobody_knows(self) -> None:
        rows = as_csv(curve_of())
        small = of(rows, table="cards", card="small-2gb")
        assert int(small["ceiling_bytes"]) == CEILING
        # The most tokens whose need is inside: (ceiling - 257,404,000) / (4 x 25,016)
        assert int(small["estimate_up_to_context_tokens"]) == (CEILING - 257_404_000) // 100_064
        assert small["verdict"] == "fits"
        unknown = of(rows, table="cards", card="unknown")
        assert {unknown[key] for key in ("capacity_bytes", "ceiling_bytes", "estimate_up_to_context_tokens")} == {""}

    def test_csv_has_the_cells_that_ran_along_it(self) -> None:
        cells = [row for row in as_csv(curve_of()) if row["table"] == "cells"]
        found = [(row["at_context_tokens"], row["outcome"], row["allocated_bytes"]) for row in cells]
        assert found == [
            ("128", "measured", str(257_404_000 + 512 * 25_016)),
            ("512", "measured", str(PREFILL)),
            ("2048", "out_of_memory", ""),
        ]

    def test_along_sequences_the_columns_say_so(self) -> None:
        rows = as_csv(curve_of(Axis.CONCURRENCY))
        at = of(rows, table="points", phase="prefill", at_concurrency="4")
        assert int(at["allocated_bytes"]) == PREFILL
        assert "estimate_up_to_concurrency" in at
        assert not [key for key in at if key.endswith("_to_context_tokens")]

    def test_the_workbook_has_sizes_in_gib_and_a_chart_of_what_is_drawn(self) -> None:
        book = as_workbook(curve_of())
        assert book.sheetnames == ["summary", "chart", "cards", "points", "cells", "drawn"]
        heads, first, *_ = book["cards"].iter_rows(values_only=True)
        small = dict(zip(heads, first, strict=True))
        assert small["ceiling (GiB)"] == pytest.approx(CEILING / GIB)
        assert small["estimate (tokens)"] == (CEILING - 257_404_000) // 100_064
        assert small["verdict"] == "✓ fits"
        (chart,) = book["chart"]._charts
        series = {
            one.tx.strRef.f if one.tx.strRef else one.tx.v: (one.xVal.numRef.f, one.yVal.numRef.f)
            for one in chart.series
        }
        assert list(series)[:3] == ["load", "prefill", "prefill, carried beyond what was run"]
        assert [name for name in series if name.startswith(("small-2gb", "large-80gb"))] == [
            "small-2gb: 1.39 GiB",
            "large-80gb: 79.39 GiB",
        ]
        xs, ys = (column_of(book, one) for one in series["prefill"])
        assert dict(zip(xs, ys, strict=True))[512] == pytest.approx(PREFILL / GIB)
        assert max(xs) == 512
        xs, ys = (column_of(book, one) for one in series["small-2gb: 1.39 GiB"])
        assert ys == pytest.approx([CEILING / GIB] * 2)
        assert (chart.x_axis.scaling.logBase, chart.y_axis.scaling.logBase) == (2, 2)

    def test_the_page_draws_every_line_and_ceiling_and_folds_up_the_points(self) -> None:
        page = as_page(curve_of())
        (svg,) = page.root.all("svg", "chart")
        titles = [line.all("title")[0].text for line in svg.all("polyline")]
        assert titles == ["load", "prefill", "prefill", "decode", "decode"]
        dotted = [line.attributes.get("stroke-dasharray") is not None for line in svg.all("polyline")]
        assert dotted == [False, False, True, False, True]
        levels = [line.all("title")[0].text for line in svg.all("line", "level")]
        assert levels == ["small-2gb: 1.39 GiB", "large-80gb: 79.39 GiB"]
        assert [line.all("title")[0].text for line in svg.all("line", "strong")] == ["small-2gb: 1.39 GiB"]
        marks = {node.text for group in svg.all("g") for node in group.all("text", "mark")}
        assert {"[", "\u00d7", "]", "o", "✗"} >= marks >= {"\u00d7", "o", "✗"}
        (details,) = page.section("Every phase at every place").all("details")
        assert details.all("tr")
        assert "open" not in details.attributes

    def test_a_line_and_its_ceiling_meet_where_the_card_is_crossed(self) -> None:
        """In pixels: the prefill line at the estimate is as high as the ceiling."""
        (svg,) = as_page(curve_of()).root.all("svg", "chart")
        level = float(svg.all("line", "strong")[0].attributes["y1"])
        (place,) = (
            float(group.all("text")[0].attributes["x"])
            for group in svg.all("g")
            if group.all("title") and group.all("title")[0].text == "small-2gb: by the estimate up to 12324"
        )
        line = next(line for line in svg.all("polyline") if line.attributes.get("stroke-dasharray"))
        points = [tuple(map(float, point.split(","))) for point in line.attributes["points"].split()]
        before, after = max(one for one in points if one[0] <= place), min(one for one in points if one[0] > place)
        share = (place - before[0]) / (after[0] - before[0])
        assert before[1] + share * (after[1] - before[1]) == pytest.approx(level, abs=1)

    def test_the_sentence_of_the_selected_card_has_its_evidence(self) -> None:
        first, second = curve_of().sentences
        assert re.fullmatch(
            r"small-2gb: tokens of context surely up to \d+, by the estimate up to 12324, "
            r"surely not beyond \d+ \(scaled\)",
            first,
        )
        assert second == "against tokens of context: measured from 1 to 512 (solid), scaled beyond (dotted)"

    def test_markdown_has_the_cards_and_names_what_it_leaves_out(self) -> None:
        report = curve_of()
        text = load_tabular_format("markdown").render_tables(report).decode()
        assert "\n# tiny-llama: memory against tokens of context\n" in f"\n{text}"
        (line,) = (line for line in text.split("\n") if line.startswith("| small-2gb"))
        assert [cell.strip() for cell in line.strip("|").split("|")][1:4] == ["✓ fits", "2.00 GiB", "1.39 GiB"]
        points = next(table for table in report.tables if table.name == "points")
        assert f"- Every phase at every place: {len(points.rows)} rows, which the CSV" in text
        assert "| prefill" not in text

    def test_without_a_memory_model_nothing_is_said_of_crossings(self) -> None:
        report = curve_of(profile=bare())
        (row,) = (row for row in report.tables[0].by_key if row["card"].value == "large-80gb")
        assert row["estimate_up_to_context_tokens"].value is None
        assert row["estimate_up_to_context_tokens"].text == "not known"

    def test_where_only_the_estimate_speaks_nothing_is_promised(self) -> None:
        document = curve_of().document
        cards = tuple(msgspec.structs.replace(card, surely_up_to=None) for card in document.cards)
        report = curve_report(msgspec.structs.replace(document, cards=cards), cards, None)
        texts = {row["card"].value: row["surely_up_to_context_tokens"].text for row in report.tables[0].by_key}
        assert texts == {"small-2gb": "not promised", "large-80gb": "not promised", "unknown": "not known"}

    @pytest.mark.parametrize("name", ["=1+1", "a|b", "<b>x</b>", "ü\x1b[31m"])
    def test_a_name_in_somebody_s_file_does_no_harm(self, name: str) -> None:
        report = renamed(name)
        model = as_csv(report)[0]["model"]
        assert model == {"=1+1": "'=1+1", "ü\x1b[31m": "ü\N{REPLACEMENT CHARACTER}[31m"}.get(name, name)
        page = as_page(report)
        assert page.root.all("h1")[0].text.startswith(name.replace("\x1b", "\N{REPLACEMENT CHARACTER}"))
        assert not page.root.all("b")
        title = as_workbook(report)["summary"]["A1"]
        assert title.data_type == "s"
        heading = load_tabular_format("markdown").render_tables(report).decode().split("\n")[0]
        assert "<b>" not in heading.replace("\\<b>", "")


def column_of(book: Any, reference: str) -> list[Any]:
    """The values of a range as a chart names it: `drawn!$A$2:$A$9`."""
    sheet, cells = reference.replace("'", "").split("!")
    return [row[0].value for row in book[sheet][cells.replace("$", "")]]


class TestGrowth:
    def test_csv_has_the_slope_what_more_costs_and_every_length(self) -> None:
        rows = as_csv(growth_of())
        assert of(rows, table="growth", what="a token")["size_bytes"] == "20000"
        whole = of(rows, table="growth", what="all sequences of the scenario")
        # 512 + 3 tokens of 20,000 B in each of 4 sequences
        assert (whole["size_bytes"], whole["tokens"], whole["evidence"]) == (str(4 * 515 * 20_000), "2060", "measured")
        more = of(rows, table="steps", what="1 more sequence")
        assert (more["allocated_bytes"], more["kv_cache_bytes"]) == (str(512 * 25_016 + 100_000), str(512 * 20_000))
        assert more["evidence"] == "scaled"
        # 515 tokens are the longest that was run.
        assert of(rows, table="points", tokens="515")["evidence"] == "measured"
        last = of(rows, table="points", tokens="1030")
        assert (last["cache_bytes"], last["evidence"]) == (str(1030 * 20_000), "scaled")

    def test_in_the_workbook_a_token_is_whole_bytes(self) -> None:
        book = as_workbook(growth_of())
        assert book.sheetnames == ["summary", "chart", "growth", "steps", "points", "drawn"]
        sheet = book["growth"]
        assert [cell.value for cell in sheet[1]] == ["what", "size (bytes)", "tokens", "evidence"]
        (token,) = (row for row in sheet.iter_rows(min_row=2, values_only=True) if row[0] == "a token")
        assert token == ("a token", 20_000, 1, "measured")

    def test_the_page_draws_what_was_run_solid_and_the_rest_dotted(self) -> None:
        (svg,) = as_page(growth_of()).root.all("svg", "chart")
        run, beyond = svg.all("polyline")
        assert "stroke-dasharray" not in run.attributes
        assert "stroke-dasharray" in beyond.attributes
        assert run.attributes["points"].split()[-1] == beyond.attributes["points"].split()[0]

    def test_where_none_is_known_it_says_why_and_draws_nothing(self) -> None:
        report = growth_of(bare())
        assert "too few measured cells (2)" in report.sentences[0]
        assert report.chart is None
        assert as_csv(report) == []
        assert as_page(report).root.all("svg") == []
        assert as_workbook(report).sheetnames == ["summary"]


class TestPrecision:
    def test_csv_has_each_dtype_and_what_each_position_comes_to(self) -> None:
        rows = as_csv(precision_of())
        resident = of(rows, table="columns", column="resident")
        assert (resident["dtype"], resident["size_bytes"], resident["evidence"]) == ("float16", "256000000", "measured")
        assert of(rows, table="columns", column="compute")["operations"] == "matmul"
        assert of(rows, table="columns", column="kv_cache")["size_bytes"] == ""
        fp8 = of(rows, table="switches", switch="kv_cache", value="FP8")
        # Two bytes an element become one: 10,000 B of 2048 tokens
        assert int(fp8["allocated_bytes"]) == PREFILL - 2048 * 10_000
        assert (fp8["chosen"], fp8["evidence"], fp8["phase"]) == ("no", "scaled", "prefill")
        wide = of(rows, table="switches", switch="weights", value="16-bit")
        assert (wide["allocated_bytes"], wide["evidence"]) == ("", "")
        assert wide["why_not"] == "no weight is held in float32"

    def test_what_is_switched_stands_beside_what_was_found(self) -> None:
        report = precision_of(Held(kv_cache=Cache.FP8))
        rows = as_csv(report)
        assert {row["kv_cache"] for row in rows} == {"FP8"}
        assert {row["weights"] for row in rows} == {"as profiled"}
        held = {row["held"]: (row["dtype"], row["evidence"]) for row in rows if row["column"] == "kv_cache"}
        assert held == {"as profiled": ("float16", "measured"), "as switched": ("float8_e4m3fn", "scaled")}
        assert any(sentence.startswith("KV cache in FP8: one byte an element") for sentence in report.sentences)


class TestTimes:
    def test_csv_has_rates_as_counts_over_the_wall_time(self) -> None:
        """4 inputs of 512 prompt and 4 new tokens in 1.0 s, the first token after 0.5 s."""
        row = of(as_csv(times_of()), context_tokens="512", concurrency="4")
        assert {key: float(row[key]) for key in row if "second" in key} == {
            "time_to_first_token_seconds": 0.5,
            "wall_seconds": 1.0,
            "inputs_per_second": 4.0,
            "generated_tokens_per_second": 16.0,
            "prompt_tokens_per_second": 2048.0,
        }
        out = of(as_csv(times_of()), context_tokens="2048")
        assert (out["outcome"], out["wall_seconds"], out["evidence"]) == ("out of memory", "", "")

    def test_the_workbook_names_seconds_and_shows_them(self) -> None:
        sheet = as_workbook(times_of())["times"]
        heads = [cell.value for cell in sheet[1]]
        wall, rate = (
            next(iter(sheet.iter_cols(heads.index(one) + 1, min_row=2, max_row=2)))[0]
            for one in ("whole run (s)", "inputs/s")
        )
        assert (wall.value, wall.number_format, rate.number_format) == (1, "#,##0.000", "#,##0.0###")

    def test_the_page_says_that_speed_is_never_carried(self) -> None:
        page = as_page(times_of())
        assert "speed is never carried to another card" in page.root.all("header")[0].text
        assert page.root.all("h2")[0].text == "Times by cell"


class TestProfiles:
    def test_csv_has_a_row_each_with_how_its_cells_ended(self) -> None:
        first, second = as_csv(profiles_of())
        assert (first["cells_completed"], first["cells_out_of_memory"], first["cells"]) == (
            "6",
            "1",
            "6 measured, 1 out of memory",
        )
        assert (first["starts_at"], first["device_total_bytes"]) == ("512x4+4", str(24 * GIB))
        assert (second["profile"], second["why_not"], second["starts_at"]) == ("'=begun.json", "no cell yet", "")
        assert (second["complete"], second["context_tokens"]) == ("no", "")

    def test_people_are_spared_what_programs_want_and_columns_of_blanks(self) -> None:
        heads = [
            node.text
            for node in as_page(profiles_of()).section("Profiles").all("th")
            if node.attributes["scope"] == "col"
        ]
        assert heads[:5] == ["model", "evidence", "device", "made (UTC)", "cells"]
        assert "parameters" not in heads
        assert "notes" not in heads, "neither profile has any"
        assert "notes" in as_csv(profiles_of())[0]
