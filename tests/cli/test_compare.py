"""`gpufit compare`: two recorded runs of one model, and a run beside arithmetic."""

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
from public_models import CONFIGS

from gpufit.profile.store import load_profile, save_profile

RECORDED = REPOSITORY / "tests" / "facts" / "profiles"
SMOLLM2 = RECORDED / "SmolLM2-135M-Instruct.Q4_1.json"
EAGER = RECORDED / "compared" / "SmolLM2-135M-Instruct.Q4_1.eager.json"
FLOAT32 = RECORDED / "compared" / "SmolLM2-135M-Instruct.Q4_1.float32.json"
MINILM = RECORDED / "all-MiniLM-L6-v2.json"


def as_json(gpufit: Run, *arguments: str | Path) -> dict[str, Any]:
    done = gpufit("compare", *arguments, "--json")
    assert done.code == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.fixture
def qwen(tmp_path: Path) -> Path:
    folder = tmp_path / "Qwen3-32B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-32B"]))
    return folder


def test_the_largest_cell_both_ran_is_compared_as_it_was(gpufit: Run) -> None:
    document = as_json(gpufit, SMOLLM2, EAGER)
    assert (document["schema_version"], document["same"]) == (1, False)
    assert document["scenario"] == {
        "context_tokens": 1536, "new_tokens": 8, "concurrency": 4, "cached_tokens": 1543
    }  # fmt: skip
    prefill = next(phase for phase in document["phases"] if phase["phase"] == "prefill")
    cell = load_profile(EAGER).measured_cells[-1]
    assert cell.key == (1536, 8, 4)
    assert prefill["b"]["allocated_bytes"] == cell.outcome.phases[0].allocated_bytes  # type: ignore[union-attr]
    assert prefill["b"]["ran"] is True
    assert prefill["beyond_intervals"] is True
    assert document["conclusion"][-1] == "look first at the engine (attention: sdpa against eager)"


def test_precision_is_named_before_all_else(gpufit: Run) -> None:
    document = as_json(gpufit, SMOLLM2, FLOAT32)
    assert [one["topic"] for one in document["differences"]] == ["precision"] * 5
    assert document["differences"][0]["what"] == "resident"
    assert document["conclusion"][-1] == "look first at the precision (resident: bfloat16 against float32)"


def test_a_shape_that_was_asked_for_is_predicted_with_its_interval(gpufit: Run) -> None:
    document = as_json(gpufit, SMOLLM2, FLOAT32, "--context", "1000", "--concurrency", "2", "--new-tokens", "4")
    assert document["scenario"]["cached_tokens"] == 1003
    prefill = next(phase for phase in document["phases"] if phase["phase"] == "prefill")
    assert prefill["a"]["ran"] is False
    assert prefill["a"]["allocated_lower_bytes"] < prefill["a"]["allocated_bytes"]
    assert prefill["a"]["allocated_bytes"] < prefill["a"]["allocated_upper_bytes"]
    part = next(part for part in prefill["parts"] if part["part"] == "kv_cache_bytes")
    assert (part["a_bytes"], part["b_bytes"]) == (23_040 * 2000, 46_080 * 2000)
    assert [(term["term"], round(term["b_bytes_per_unit"])) for term in part["terms"]] == [("per_token", 46_080)]


def test_the_same_file_twice_is_the_same(gpufit: Run) -> None:
    done = gpufit("compare", SMOLLM2, SMOLLM2)
    assert done.code == 0
    assert done.stdout.endswith("\n\nA and B are the same profile: nothing differs\n")
    assert as_json(gpufit, SMOLLM2, SMOLLM2)["same"] is True


def test_the_table_names_part_bytes_and_reason(gpufit: Run) -> None:
    done = gpufit("compare", SMOLLM2, FLOAT32)
    assert done.stderr == ""
    assert re.search(
        r"^KV cache +135.0 MiB +270.0 MiB +\+135.0 MiB +2 bytes an element against 4: bfloat16 against float32;$",
        done.stdout,
        re.MULTILINE,
    )
    assert "23,040 B against 46,080 B a token" in done.stdout
    assert re.search(r"^precision +resident +bfloat16 +float32$", done.stdout, re.MULTILINE)


def test_csv_carries_the_values_of_the_json(gpufit: Run) -> None:
    rows = list(csv.DictReader(io.StringIO(gpufit("compare", SMOLLM2, EAGER, "--csv").stdout)))
    for phase in as_json(gpufit, SMOLLM2, EAGER)["phases"]:
        for part in phase["parts"]:
            (row,) = [row for row in rows if (row["phase"], row["part"]) == (phase["phase"], part["part"])]
            for key in ("a_bytes", "b_bytes", "difference_bytes"):
                assert row[key] == str(part[key])


def test_the_output_file_decides_the_format(gpufit: Run, tmp_path: Path) -> None:
    for name in ("a.json", "a.csv", "a.md", "a.txt"):
        done = gpufit("compare", SMOLLM2, EAGER, "-o", tmp_path / name)
        assert (done.code, done.stdout, done.stderr) == (0, "", f"wrote {tmp_path / name}\n")
    assert json.loads((tmp_path / "a.json").read_text())["same"] is False
    assert (tmp_path / "a.csv").read_text().startswith("a,b,context_tokens,")
    assert "| part " in (tmp_path / "a.md").read_text()


def test_a_model_in_place_of_a_profile_is_estimated_at_its_shape(gpufit: Run, qwen: Path, tmp_path: Path) -> None:
    """Arithmetic beside arithmetic saved before: nothing differs; in float16 the same bytes have other names."""
    saved = tmp_path / "qwen.json"
    shape = ("--context", "2k", "--concurrency", "2", "--new-tokens", "8")
    assert gpufit("estimate", qwen, *shape, "--save", saved).code == 0
    done = gpufit("compare", saved, qwen)
    assert done.code == 0
    assert "is a model: estimated first, nothing was measured" in done.stderr
    assert "at context 2k + 8 new x 2 at once, which neither ran · evidence: computed" in done.stdout
    assert done.stdout.endswith("\n\nA and B are the same profile: nothing differs\n")
    document = as_json(gpufit, saved, qwen, "--dtype", "float16")
    assert document["b"]["precision"]["resident"][0]["dtype"] == "float16"
    assert {phase["difference_bytes"] for phase in document["phases"]} == {0}


def test_two_models_are_both_estimated(gpufit: Run, qwen: Path, tmp_path: Path) -> None:
    other = tmp_path / "Qwen3-0.6B"
    other.mkdir()
    (other / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-0.6B"]))
    document = as_json(gpufit, qwen, other)
    assert document["differences"][0]["what"] == "parameters"
    load = document["phases"][0]
    # bfloat16: 2 bytes for each parameter that one has more than the other, tied embeddings once.
    (weights,) = [part for part in load["parts"] if part["part"] == "weights_bytes"]
    counts = [document[side]["model"]["parameters"] for side in ("a", "b")]
    assert weights["difference_bytes"] == pytest.approx(2 * (counts[1] - counts[0]), rel=0.001)


def test_two_models_are_compared_at_what_fit_answers_for(gpufit: Run, qwen: Path) -> None:
    """A context that was asked for is all that a sequence holds, here as there: one question, one number."""
    shape = ("--context", "2k", "--concurrency", "2")
    compared = as_json(gpufit, qwen, qwen, *shape)
    fitted = json.loads(gpufit("fit", qwen, *shape, "--json").stdout)
    assert compared["scenario"]["new_tokens"] == fitted["scenario"]["new_tokens"] == 1
    for phase in compared["phases"]:
        assert phase["a"]["allocated_bytes"] == fitted["phases"][phase["phase"]]["allocated_bytes"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((SMOLLM2,), 2, "the following arguments are required: B"),
        ((SMOLLM2, "nowhere.json"), 3, "nowhere.json: no such file"),
        ((SMOLLM2, EAGER, "--context", "16k"), 2, "takes at most 8192 tokens"),
        ((SMOLLM2, EAGER, "--format", "pdf"), 2, "invalid choice: 'pdf'"),
        ((SMOLLM2, EAGER, "-o", "out.pdf"), 2, "cannot tell the format from the extension '.pdf'"),
        ((SMOLLM2, EAGER, "-o", "out.dat"), 2, "cannot tell the format"),
        ((SMOLLM2, EAGER, "--dtype", "float16"), 2, "--dtype is for a model"),
        ((MINILM, MINILM, "--new-tokens", "4"), 2, "are encoders and generate nothing"),
        ((SMOLLM2, RECORDED / "architectures" / "llama.unseen.json", "--context", "99"), 2, "too few measured cells"),
    ],
)
def test_what_cannot_be_compared_is_one_line(
    gpufit: Run, arguments: tuple[str | Path, ...], code: int, said: str
) -> None:
    done = gpufit("compare", *arguments)
    assert (done.code, done.stdout) == (code, "")
    assert said in done.error


def test_a_start_of_vllm_is_no_profile(gpufit: Run, qwen: Path) -> None:
    done = gpufit("compare", SMOLLM2, qwen, "--engine", "vllm")
    assert (done.code, done.stdout) == (2, "")
    assert "a start of vllm is no profile" in done.error


def test_an_unfinished_profile_is_named(gpufit: Run, tmp_path: Path) -> None:
    empty = tmp_path / "empty.json"
    save_profile(msgspec.structs.replace(make_profile(), cells=(), memory_model=None, complete=False), empty)
    done = gpufit("compare", SMOLLM2, empty)
    assert done.code == 2
    assert done.error.startswith(f"gpufit: {empty}: the profile has no measured cell")


def test_no_profile_is_overwritten_by_the_report(gpufit: Run, tmp_path: Path) -> None:
    mine = tmp_path / "mine.json"
    save_profile(make_profile(), mine)
    before = mine.read_bytes()
    assert gpufit("compare", SMOLLM2, mine, "-o", mine).code == 2
    assert mine.read_bytes() == before
