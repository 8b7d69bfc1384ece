"""The compare document: what it comes to in words, and every format over names that could do harm."""

from __future__ import annotations

import csv
import importlib
import io
import pkgutil
import re
from typing import Any

import msgspec
import openpyxl
import pytest
from builders import make_parts, make_peak, make_profile
from report_readers import Page

from gpufit.advice.comparison import compare
from gpufit.errors import UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured
from gpufit.profile.environment import DeviceInfo, Environment
from gpufit.profile.peaks import DeviceReading, Parts, Phase
from gpufit.profile.record import Profile
from gpufit.report import compare_formats
from gpufit.report.compare_document import CompareDocument, build_compare_document
from gpufit.report.registry import COMPARE_FORMATS, EXTENSIONS, load_compare_format

CELL = Shape(512, 4, 4)


def comparing(a: Profile, b: Profile, where: tuple[str, str] = ("a.json", "b.json")) -> CompareDocument:
    return build_compare_document(a, b, where, CELL, compare(a, b, CELL))


def with_temporaries(added: int, **changes: Any) -> Profile:
    """The default profile, whose largest cell took so much more for temporaries in prefill."""
    profile = make_profile(**changes)
    cells = []
    for cell in profile.cells:
        if cell.key == (CELL.context_tokens, CELL.new_tokens, CELL.concurrency):
            assert isinstance(cell.outcome, Measured)
            prefill, decode = cell.outcome.phases
            parts = msgspec.structs.replace(prefill.parts, temporaries_bytes=prefill.parts.temporaries_bytes + added)
            outcome = msgspec.structs.replace(cell.outcome, phases=(make_peak(Phase.PREFILL, parts, 512), decode))
            cell = msgspec.structs.replace(cell, outcome=outcome)
        cells.append(cell)
    return msgspec.structs.replace(profile, cells=tuple(cells))


def on_device(name: str) -> Environment:
    return msgspec.structs.replace(
        make_profile().environment, device=DeviceInfo(kind="cpu", name=name, total_bytes=24 * 2**30)
    )


def test_one_and_the_same_profile_is_said_to_be_that() -> None:
    for created_at in (make_profile().created_at, "2027-01-01T00:00:00Z"):
        document = comparing(make_profile(), make_profile(created_at=created_at))
        assert document.same
        assert document.conclusion == ("A and B are the same profile: nothing differs",)


def test_two_runs_alike_differ_in_nothing_that_is_recorded() -> None:
    document = comparing(make_profile(), make_profile(notes=("run at night",)))
    assert not document.same
    assert document.conclusion == (
        "load, prefill, decode: the same to the byte",
        "nothing that the two record differs",
    )


def test_parts_that_make_up_for_each_other_are_not_passed_over() -> None:
    """39 MiB more of temporaries and as much less of the cache, whose 512 x 4 tokens of 20,000 B are 39.06 MiB."""
    moved = 39 * 2**20
    other = with_temporaries(moved)
    cells = []
    for cell in other.cells:
        if cell.key == (512, 4, 4):
            assert isinstance(cell.outcome, Measured)
            prefill, decode = cell.outcome.phases
            parts = msgspec.structs.replace(prefill.parts, kv_cache_bytes=prefill.parts.kv_cache_bytes - moved)
            outcome = msgspec.structs.replace(cell.outcome, phases=(make_peak(Phase.PREFILL, parts, 512), decode))
            cell = msgspec.structs.replace(cell, outcome=outcome)
        cells.append(cell)
    document = comparing(make_profile(), msgspec.structs.replace(other, cells=tuple(cells)))
    assert document.conclusion[0] == "prefill: the same in all, but KV cache -39.0 MiB, temporaries +39.0 MiB"


def test_the_engine_is_looked_at_before_the_device() -> None:
    engine = msgspec.structs.replace(make_profile().engine, attention="eager")
    other = with_temporaries(64 * 2**20, engine=engine, environment=on_device("Intel Xeon"))
    *_, last = comparing(make_profile(), other).conclusion
    assert last == "look first at the engine (attention: sdpa against eager), before the device is blamed"
    *_, last = comparing(make_profile(), with_temporaries(64 * 2**20, engine=engine)).conclusion
    assert last == "look first at the engine (attention: sdpa against eager)"


def test_the_device_is_named_where_nothing_else_is_left() -> None:
    other = with_temporaries(64 * 2**20, environment=on_device("Intel Xeon"))
    first, *_, last = comparing(make_profile(), other).conclusion
    # 64 MiB on 256,000,000 + 4,000 B and 25,016 B for each of 2,048 tokens, 100,000 B for each of 4 sequences and 1 MB
    share = 64 * 2**20 / (256_004_000 + 25_016 * 2048 + 400_000 + 1_000_000)
    assert first == f"prefill: B takes 64.0 MiB more than A ({share:+.1%}), in temporaries +64.0 MiB"
    assert "what is left is the device (device: AMD EPYC (cpu) against Intel Xeon (cpu))" in last


def test_a_difference_that_nothing_recorded_explains_sends_nobody_after_the_device() -> None:
    *_, last = comparing(make_profile(), with_temporaries(64 * 2**20)).conclusion
    assert last.startswith("nothing that the two record bears on it: run both again")


def test_a_difference_that_bears_on_other_parts_is_not_where_to_look() -> None:
    """Fewer positions change no byte of the temporaries."""
    model = msgspec.structs.replace(make_profile().model, position_limit=8192)
    *_, last = comparing(make_profile(), with_temporaries(64 * 2**20, model=model)).conclusion
    assert last.startswith("nothing that the two record bears on it")


def test_a_thousandth_is_named_and_not_looked_into() -> None:
    engine = msgspec.structs.replace(make_profile().engine, attention="eager")
    first, second = comparing(make_profile(), with_temporaries(1000, engine=engine)).conclusion
    assert first == "prefill: B takes 1,000 B more than A (less than 0.1%), in temporaries +1,000 B"
    assert second == "load, decode: the same to the byte"


def test_what_an_allocator_reserves_is_told_apart_from_what_is_allocated() -> None:
    """Expandable segments: the same bytes allocated, a quarter less reserved; host memory is not the device's."""

    def loaded(reserved: int, **changes: Any) -> Profile:
        profile = make_profile(**changes)
        readings = tuple(
            DeviceReading(source="torch.cuda.memory_stats", quantity=name, size_bytes=size)
            for name, size in (("reserved", reserved), ("rss_anon", 5))
        )
        return msgspec.structs.replace(profile, load=msgspec.structs.replace(profile.load, readings=readings))

    environment = msgspec.structs.replace(
        make_profile().environment, settings={"PYTORCH_ALLOC_CONF": "expandable_segments:True"}
    )
    document = comparing(loaded(400 * 2**20), loaded(300 * 2**20, environment=environment))
    assert document.conclusion == (
        "load, prefill, decode: the same to the byte",
        "load: the allocator reserved 400.0 MiB against 300.0 MiB, free blocks included, which no card has to offer",
    )
    text = load_compare_format("table").render_compare(document).decode()
    assert re.search(r"^reserved +400.0 MiB +300.0 MiB +-100.0 MiB +a counter, not a part$", text, re.MULTILINE)
    assert "rss" not in text


def test_the_registry_and_the_folder_name_the_same_formats() -> None:
    modules = {f"{compare_formats.__name__}.{one.name}" for one in pkgutil.iter_modules(compare_formats.__path__)}
    assert set(COMPARE_FORMATS.values()) == modules
    assert set(COMPARE_FORMATS) <= set(EXTENSIONS.values())
    for name, path in COMPARE_FORMATS.items():
        module = importlib.import_module(path)
        assert load_compare_format(name) is module
        assert module.__doc__
        assert module.render_compare.__doc__


def test_a_format_without_comparisons_is_refused_with_those_that_have_them() -> None:
    with pytest.raises(
        UsageError, match="'pdf' is no format of a comparison; choose one of table, json, csv, markdown, xlsx, html"
    ):
        load_compare_format("pdf")


def hard() -> CompareDocument:
    """Names that steer a terminal, open a formula or end a cell; sizes from nothing to an exbibyte."""
    model = msgspec.structs.replace(make_profile().model, name="=größer|\x1b[31m✓")
    engine = msgspec.structs.replace(make_profile().engine, attention="+eager|\x1b")
    load = make_peak(Phase.LOAD, make_parts(unexplained_bytes=2**60))
    environment = on_device("-2+3\ncard | x")
    other = with_temporaries(1, model=model, engine=engine, environment=environment, load=load)
    return comparing(make_profile(), other, ("@a.json", "=1+1|ü\x1b.json"))


@pytest.mark.parametrize("name", sorted({*COMPARE_FORMATS} - {"xlsx"}))
def test_hard_names_harm_no_format(name: str) -> None:
    text = load_compare_format(name).render_compare(hard()).decode()
    assert "\x1b" not in text
    if name == "markdown":
        for block in text.split("\n\n"):
            if block.startswith("|"):
                lines = [line.replace("\\|", "").count("|") for line in block.strip().splitlines()]
                assert len(set(lines)) == 1
    else:
        assert "größer" in text or name == "csv"


def test_csv_has_a_row_a_part_and_their_sum() -> None:
    rows = list(csv.DictReader(io.StringIO(load_compare_format("csv").render_compare(hard()).decode())))
    assert len(rows) == 3 * (len(Parts.NAMES) + 1)
    assert {row["a"] for row in rows} == {"'@a.json"}
    assert {row["b"] for row in rows} == {"'=1+1|ü\N{REPLACEMENT CHARACTER}.json"}
    for phase in ("load", "prefill", "decode"):
        sizes = {row["part"]: row for row in rows if row["phase"] == phase}
        for key in ("a_bytes", "b_bytes", "difference_bytes"):
            total = sum(int(row[key]) for part, row in sizes.items() if part != "allocated_bytes")
            assert total == int(sizes["allocated_bytes"][key])
    (unexplained,) = [row for row in rows if row["part"] == "unexplained_bytes" and row["phase"] == "load"]
    assert unexplained["difference_bytes"] == str(2**60)
    assert unexplained["beyond_intervals"] == "true"


def test_the_workbook_has_whole_bytes_and_text_that_runs_nothing() -> None:
    book = openpyxl.load_workbook(io.BytesIO(load_compare_format("xlsx").render_compare(hard())))
    assert book.sheetnames == ["summary", "phases", "parts", "differences"]
    heads, *rows = book["parts"].iter_rows(values_only=True)
    found = [dict(zip(heads, row, strict=True)) for row in rows]
    (unexplained,) = (row for row in found if (row["phase"], row["part"]) == ("load", "unexplained"))
    assert (unexplained["A (bytes)"], unexplained["B (bytes)"], unexplained["B - A (bytes)"]) == (0, 2**60, 2**60)
    (temporaries,) = (row for row in found if (row["phase"], row["part"]) == ("prefill", "temporaries"))
    assert temporaries["B - A (bytes)"] == 1
    # The parts of a phase add up to what it allocates.
    heads, *rows = book["phases"].iter_rows(values_only=True)
    for phase in (dict(zip(heads, row, strict=True)) for row in rows):
        for side in ("A (bytes)", "B (bytes)", "B - A (bytes)"):
            assert sum(row[side] for row in found if row["phase"] == phase["phase"]) == phase[side]
        assert (phase["evidence, A"], phase["evidence, B"]) == ("measured", "measured")
    cells = [cell for sheet in book for row in sheet.iter_rows() for cell in row]
    assert not [cell.coordinate for cell in cells if cell.data_type == "f"]
    assert "=größer|\N{REPLACEMENT CHARACTER}[31m✓" in [cell.value for cell in cells]


def test_the_page_has_the_conclusion_and_each_table() -> None:
    page = Page.read(load_compare_format("html").render_compare(hard()).decode())
    said = [node.text for node in page.root.all("header")[0].all("p")]
    assert said == [line.replace("\x1b", "\N{REPLACEMENT CHARACTER}") for line in hard().conclusion]
    rows = page.section("Part by part").all("tr")
    (row,) = (
        one for one in rows if [node.text for node in one.all("th") + one.all("td")][:2] == ["load", "unexplained"]
    )
    exact = [node.attributes["value"] for node in row.all("data")]
    assert exact == ["0", str(2**60), str(2**60)]
    assert len(page.section("What differs").all("tr")) == 1 + len(hard().differences)
    same = Page.read(load_compare_format("html").render_compare(comparing(make_profile(), make_profile())).decode())
    assert [node.text for node in same.root.all("h2")][:2] == ["Phase by phase", "Part by part"]


def test_json_reads_back_as_the_document_and_every_render_is_the_same() -> None:
    rendered = load_compare_format("json").render_compare(hard())
    assert msgspec.json.decode(rendered, type=CompareDocument) == hard()
    for name in COMPARE_FORMATS:
        render = load_compare_format(name).render_compare
        assert render(hard()) == render(hard())


def test_the_table_keeps_to_its_width() -> None:
    lines = load_compare_format("table").render_compare(hard()).decode().splitlines()
    assert max(map(len, lines)) <= 120
