"""`gpufit fit --if`: the document says what was switched, by which rule, and what does not apply is one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from builders import make_layout, make_profile

from gpufit.cli.main import main
from gpufit.profile.store import save_profile


@pytest.fixture
def profile(tmp_path: Path) -> str:
    path = tmp_path / "tiny.json"
    save_profile(make_profile(layout=make_layout()), path)
    return str(path)


def test_the_document_says_what_was_switched_and_by_which_rule(
    profile: str, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["fit", profile, "--if", "weights=FP8", "--if", "kv=fp8", "--if", "compute=float32", "--json"]
    assert main(asked) == 0
    found = json.loads(capsys.readouterr().out)
    scenario = {key: found["scenario"][key] for key in ("weights", "compute", "kv_cache")}
    assert scenario == {"weights": "FP8", "compute": "float32", "kv_cache": "FP8"}
    assert [share["dtype"] for share in found["precision"]["resident"]] == ["float8_e4m3fn", "float16"]
    assert found["precision"]["kv"][0]["dtype"] == "float8_e4m3fn"
    assert found["precision"]["compute"][0]["dtypes"] == ["float32"]
    assert found["phases"]["prefill"]["parts"]["weights_bytes"] == 256_000_000 - 200_000_000 + 100_025_000
    assert found["notes"][0].startswith(
        "worked out, not run: as if with weights FP8 and compute float32 and KV cache FP8"
    )
    assert any(
        line.startswith("weights in FP8: linear layers and experts at 8.002 bits") for line in found["assumptions"]
    )
    kinds = {found["evidence"], *(row["evidence"] for row in found["cards"])}
    assert kinds | {one["evidence"] for one in found["phases"].values()} == {"scaled"}
    assert "float8_e4m3fn/float16 weights" in found["holds_for"]


def test_without_it_the_scenario_has_no_such_key(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["fit", profile, "--json"])
    found = json.loads(capsys.readouterr().out)["scenario"]
    assert set(found) == {"context_tokens", "new_tokens", "concurrency", "cached_tokens"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--if", "weights=int3"], "--if takes weights=16-bit|fp8|4-bit; compute=float32|16-bit; kv=16-bit|fp8"),
        (["--if", "colour=red"], "--if takes weights="),
        (["--if", "weights=as profiled"], "--if takes weights="),
        (["--if", "kv=fp8", "--if", "kv=16-bit"], "--if kv=... is given twice; set each switch once"),
        (["--if", "compute=16-bit"], "compute cannot be 16-bit: it computed in float16 already"),
        (["--if", "weights=16-bit"], "weights cannot be 16-bit: no weight is held in float32"),
    ],
)
def test_what_does_not_apply_is_one_line(
    profile: str, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fit", profile, *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert words in captured.err.splitlines()[-1]


def test_a_start_of_vllm_refuses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", str(tmp_path), "--engine", "vllm", "--if", "kv=fp8"]) == 2
    assert "--if is for profiles" in capsys.readouterr().err


def test_every_scenario_of_several_says_it(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", profile, "--scenario", "a=128x1", "--scenario", "b=512x4", "--if", "kv=fp8"]) == 0
    out = capsys.readouterr().out
    assert out.count("at once, if KV cache FP8: fits") == 2
    assert "a = context 128 x 1 at once, if KV cache FP8" in out


def test_a_row_of_the_csv_says_it(profile: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fit", profile, "--card", "t4", "--if", "kv=fp8", "--csv"]) == 0
    (row,) = csv.DictReader(capsys.readouterr().out.splitlines())
    assert "float16 weights, float8_e4m3fn KV cache as if with KV cache FP8, NVIDIA T4 16GB" in row["holds_for"]
    assert row["evidence"] == "scaled"
