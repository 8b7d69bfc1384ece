"""Several profiles and several scenarios in one `gpufit fit`: each answer is the one that is given alone."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import make_profile
from conftest import Run
from model_files import REPOSITORY
from openpyxl import load_workbook
from public_models import CONFIGS

from gpufit.profile.store import save_profile

RECORDED = REPOSITORY / "tests" / "facts" / "profiles"
SMOLLM2 = RECORDED / "SmolLM2-135M-Instruct.Q4_1.json"
MINILM = RECORDED / "all-MiniLM-L6-v2.json"
CARDS = ("--card", "t4", "--card", "l4", "--card", "h200-sxm", "--card", "b200")
SCENARIOS = ("--scenario", "chat=2kx16+256", "--scenario", "rag=8kx128")
ALONE = (
    ("chat", ("--context", "2k", "--concurrency", "16", "--new-tokens", "256")),
    ("rag", ("--context", "8k", "--concurrency", "128")),
)


def loaded(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    return document


def named(document: dict[str, Any], name: str) -> dict[str, Any]:
    return document | {"scenario": {"name": name} | document["scenario"]}


@pytest.fixture(scope="module")
def alone(gpufit: Run) -> list[dict[str, Any]]:
    """The same questions, asked one at a time."""
    answers = []
    for name, shape in ALONE:
        document = loaded(gpufit("fit", SMOLLM2, *shape, *CARDS, "--json").stdout)
        assert "name" not in document["scenario"]
        answers.append(named(document, name))
    return answers


def test_every_answer_is_the_one_given_alone(gpufit: Run, alone: list[dict[str, Any]]) -> None:
    done = gpufit("fit", SMOLLM2, *SCENARIOS, *CARDS, "--json")
    document = loaded(done.stdout)
    assert done.code == 0
    assert document["schema_version"] == 1
    assert document["gpufit_version"]
    assert document["documents"] == alone


def test_one_scenario_with_a_name_is_the_document_of_one_question(gpufit: Run, alone: list[dict[str, Any]]) -> None:
    assert loaded(gpufit("fit", SMOLLM2, "--scenario", "rag=8kx128", *CARDS, "--json").stdout) == alone[1]
    lone = gpufit("fit", SMOLLM2, "--scenario", "rag=8kx128", *CARDS, "--csv").stdout
    assert lone == gpufit("fit", SMOLLM2, *ALONE[1][1], *CARDS, "--csv").stdout


def test_the_multiplication_sign_reads_as_an_x(gpufit: Run, alone: list[dict[str, Any]]) -> None:
    for text in ("rag=8k\u00d7128", "rag = 8,192 X 128", "rag=8k\u00d7128+1"):
        assert loaded(gpufit("fit", SMOLLM2, "--scenario", text, *CARDS, "--json").stdout) == alone[1]


def test_the_cards_for_all_scenarios_are_those_that_fit_each(gpufit: Run, alone: list[dict[str, Any]]) -> None:
    document = loaded(gpufit("fit", SMOLLM2, *SCENARIOS, *CARDS, "--json").stdout)
    (answer,) = document["profiles"]
    for card in answer["cards_for_all"]:
        rows = [row for one in alone for row in one["cards"] if row["card"] == card["card"]]
        assert card["fits_every_scenario"] == all(row["verdict"] == "fits" for row in rows)
        needed = [row["cards_needed"] for row in rows]
        assert card["cards_needed"] == (None if None in needed else max(needed))
    by_card = {card["card"]: card for card in answer["cards_for_all"]}
    # No bfloat16 on a T4: nothing is promised for either. 128 sequences of 8k hold 22.5 GiB of cache alone (23,040 B a
    # token), more than an L4 has, which copies serve; two B200 come in a lot, of which one is enough.
    assert by_card["t4-16gb"]["lots"] is None
    assert by_card["l4-24gb"]["fits_every_scenario"] is False
    assert by_card["l4-24gb"]["lots"] > 1
    assert by_card["h200-sxm-141gb"]["fits_every_scenario"] is True
    assert (by_card["b200-sxm-180gb"]["lots"], by_card["b200-sxm-180gb"]["idle_cards"]) == (1, 1)
    assert {card["tightest_scenario"] for card in answer["cards_for_all"]} == {"rag"}


def test_csv_has_a_row_a_card_a_scenario_and_a_profile(gpufit: Run) -> None:
    many = gpufit("fit", SMOLLM2, MINILM, "--scenario", "short=128x64", "--scenario", "long=512x64", *CARDS, "--csv")
    table = list(csv.reader(io.StringIO(many.stdout)))
    assert table[0][:2] == ["profile", "scenario"]
    lines = []
    for profile in (SMOLLM2, MINILM):
        for name, context in (("short", "128"), ("long", "512")):
            lone = gpufit("fit", profile, "--context", context, "--concurrency", "64", *CARDS, "--csv")
            header, *rows = list(csv.reader(io.StringIO(lone.stdout)))
            assert table[0][2:] == header
            lines += [[str(profile), name, *row] for row in rows]
    assert table[1:] == lines
    assert len(lines) == 2 * 2 * 4


def test_the_table_has_a_matrix_and_a_section_for_each_question(gpufit: Run, alone: list[dict[str, Any]]) -> None:
    text = gpufit("fit", SMOLLM2, *SCENARIOS, *CARDS).stdout
    matrix, *sections = re.split(r"\n\n\n", text)
    l4 = next(line for line in matrix.splitlines() if line.startswith("l4-24gb"))
    copies = next(row["lots"] for row in alone[1]["cards"] if row["card"] == "l4-24gb")
    assert re.split(r" {2,}", l4) == ["l4-24gb", "✓ 1", f"✗ {copies} (replicas)", str(copies)]
    assert "every scenario fits: h200-sxm-141gb, b200-sxm-180gb (2 of 4)" in matrix
    assert len(sections) == 2
    for (name, shape), section in zip(ALONE, sections, strict=True):
        heading, line, body = section.split("\n", 2)
        assert heading == f"{name} · SmolLM2-135M-Instruct.Q4_1"
        assert set(line) == {"="}
        lone = gpufit("fit", SMOLLM2, *shape, *CARDS).stdout
        assert body.strip() == lone.replace("\ncontext ", f"\n{name}: context ", 1).strip()


def test_markdown_has_the_same_matrix(gpufit: Run, tmp_path: Path) -> None:
    assert gpufit("fit", SMOLLM2, *SCENARIOS, *CARDS, "-o", tmp_path / "many.md").code == 0
    text = (tmp_path / "many.md").read_text()
    assert re.search(r"^\| card +\| chat +\| rag +\| all, in turn +\|$", text, re.MULTILINE)
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == [
        "chat · SmolLM2-135M-Instruct.Q4_1",
        "rag · SmolLM2-135M-Instruct.Q4_1",
    ]


def test_the_workbook_has_every_row_of_the_csv(gpufit: Run, tmp_path: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(gpufit("fit", SMOLLM2, *SCENARIOS, *CARDS, "--csv").stdout)))
    assert gpufit("fit", SMOLLM2, *SCENARIOS, *CARDS, "-o", tmp_path / "many.xlsx").code == 0
    header, *cells = load_workbook(tmp_path / "many.xlsx")["cards"].iter_rows(values_only=True)
    at = [header.index(title) for title in ("profile", "scenario", "card", "need (GiB)")]
    for row, line in zip(rows, cells, strict=True):
        assert [line[index] for index in at[:3]] == [row["profile"], row["scenario"], row["card"]]
        assert float(str(line[at[3]])) * 2**30 == pytest.approx(int(row["need_bytes"]), abs=1)


def test_the_page_has_the_matrix_of_the_table_and_each_question_s_headline(gpufit: Run, tmp_path: Path) -> None:
    done = gpufit(
        "fit", SMOLLM2, MINILM, "--scenario", "a=128x4", "--scenario", "b=512x64", *CARDS, "-o", tmp_path / "x.html"
    )
    assert (done.code, done.stdout) == (0, "")
    page = (tmp_path / "x.html").read_text()
    lines = [
        [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", line)]
        for line in re.findall(r"<tr>.*?</tr>", page)
    ]
    table = gpufit("fit", SMOLLM2, MINILM, "--scenario", "a=128x4", "--scenario", "b=512x64", *CARDS).stdout
    shown = [
        re.split(r" {2,}", line)
        for line in table.split("\n\n\n")[0].splitlines()
        if re.match(r"(t4|l4|h200|b200)-", line)
    ]
    assert len(shown) == 2 * 4
    assert all(line in lines for line in shown)
    assert re.findall(r"<h1>(.*?)</h1>", page)[1:] == [
        f"{name} · {profile.stem}" for profile in (SMOLLM2, MINILM) for name in "ab"
    ]


def test_several_profiles_without_scenarios_stand_side_by_side(gpufit: Run) -> None:
    text = gpufit("fit", SMOLLM2, MINILM, "--context", "512", "--concurrency", "4", *CARDS).stdout
    summary = text.split("\n\n\n")[0]
    assert "2 profiles x 1 scenario, 4 cards" in summary
    assert re.search(r"^card +SmolLM2-135M-Instruct.Q4_1 +all-MiniLM-L6-v2$", summary, re.MULTILINE)
    assert re.search(r"^t4-16gb +≈ - +✓ 1$", summary, re.MULTILINE)
    assert "every scenario" not in summary


def test_status_1_where_nothing_serves_one_of_the_scenarios(gpufit: Run, tmp_path: Path) -> None:
    path = tmp_path / "endless.json"
    profile = make_profile()
    save_profile(
        msgspec.structs.replace(profile, model=msgspec.structs.replace(profile.model, position_limit=None)), path
    )
    # 1,024m tokens of 25,016 B are 27 TB: more than 64 of the largest card have, 288 GiB each; 1k tokens fit any.
    done = gpufit("fit", path, "--scenario", "short=1kx1", "--scenario", "endless=1024mx1")
    assert done.code == 1
    assert "no card serves endless by any of the plans tried, neither alone nor several of it" in done.stdout
    assert "every scenario fits: no card (0 of 41)" in done.stdout
    assert gpufit("fit", path, "--scenario", "short=1kx1", "--scenario", "longer=2kx1", "--csv").code == 0


@pytest.mark.parametrize("engine", [(), ("--engine", "vllm", "--tp", "2")])
def test_a_model_is_estimated_at_every_scenario(gpufit: Run, tmp_path: Path, engine: tuple[str, ...]) -> None:
    model = tmp_path / "Qwen3-32B"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-32B"]))
    done = gpufit("fit", model, "--scenario", "chat=8kx4+128", "--scenario", "rag=32kx2", *engine, *CARDS, "--json")
    many = loaded(done.stdout)["documents"]
    for (name, shape), document in zip(
        (("chat", ("8k", "4", "--new-tokens", "128")), ("rag", ("32k", "2"))), many, strict=True
    ):
        context, concurrency, *new = shape
        lone = gpufit("fit", model, "--context", context, "--concurrency", concurrency, *new, *engine, *CARDS, "--json")
        assert document == named(loaded(lone.stdout), name)


def test_a_profile_and_a_model_stand_side_by_side(gpufit: Run, tmp_path: Path) -> None:
    model = tmp_path / "Qwen3-32B"
    model.mkdir()
    (model / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-32B"]))
    done = gpufit("fit", SMOLLM2, model, "--scenario", "a=1kx1", "--dtype", "float16", *CARDS, "--json")
    document = loaded(done.stdout)
    assert [one["label"] for one in document["profiles"]] == ["SmolLM2-135M-Instruct.Q4_1", "Qwen3-32B"]
    assert [one["precision"]["resident"][0]["dtype"] for one in document["documents"]] == ["bfloat16", "float16"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--scenario", "chat"), "a scenario is name=CONTEXTxCONCURRENCY"),
        (("--scenario", "=8kx4"), "a scenario is name=CONTEXTxCONCURRENCY"),
        (("--scenario", "chat=8k"), "a scenario is name=CONTEXTxCONCURRENCY"),
        (("--scenario", "chat=8kx"), "a scenario is name=CONTEXTxCONCURRENCY"),
        (("--scenario", "chat=x4"), "a scenario is name=CONTEXTxCONCURRENCY"),
        (("--scenario", "chat=8kx4x2"), "the concurrency of 'chat' must be a whole number"),
        (("--scenario", "chat=8kx4+"), "'chat=8kx4+'"),
        (("--scenario", "chat=8kx4+1+2"), "the new tokens of 'chat' must be a whole number"),
        (("--scenario", "chat=0x4"), "the context of 'chat' must be a whole number of at least 1"),
        (("--scenario", "chat=8kx4+0"), "the new tokens of 'chat' must be a whole number of at least 1"),
        (("--scenario", "a\nb=8kx4"), "printable characters"),
        (("--scenario", f"{'a' * 41}=8kx4"), "printable characters"),
        (("--scenario", "a=1kx4", "--scenario", "a=2kx4"), "two scenarios are called 'a'"),
        (("--scenario", "a=1kx4", "--context", "1k"), "--context and --scenario are two ways to ask"),
        (("--scenario", "a=1kx4", "--concurrency", "1"), "--concurrency and --scenario are two ways to ask"),
        (("--scenario", "a=1kx4", "--new-tokens", "1"), "--new-tokens and --scenario are two ways to ask"),
        (("--scenario", "a=1kx4", "--scenario", "b=9kx1"), "scenario 'b' of"),
        ((str(SMOLLM2.parent / ".." / "profiles" / SMOLLM2.name),), "given twice"),
        ((str(MINILM), "--dtype", "float16"), "--dtype is for a model"),
        ((str(MINILM), "--context", "1k"), f"{MINILM}: all-MiniLM-L6-v2 takes at most 512 tokens"),
    ],
)
def test_a_question_that_cannot_be_asked_is_one_line(gpufit: Run, arguments: tuple[str, ...], said: str) -> None:
    done = gpufit("fit", SMOLLM2, *arguments, "--json")
    assert (done.code, done.stdout) == (2, "")
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_a_profile_that_cannot_be_read_ends_it(gpufit: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    done = gpufit("fit", SMOLLM2, tmp_path / "broken.json", "--scenario", "a=1kx4")
    assert (done.code, done.stdout) == (3, "")
    assert "broken.json" in done.error


def test_no_profile_is_overwritten_by_the_report(gpufit: Run, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    save_profile(make_profile(), other)
    before = other.read_bytes()
    done = gpufit("fit", SMOLLM2, other, "--scenario", "a=1kx4", "-o", other)
    assert done.code == 2
    assert "is the profile itself" in done.stderr
    assert other.read_bytes() == before
