"""`gpufit profile` on real models: the numbers are those that the models' published shapes dictate."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from conftest import Run
from model_files import LLAMA_KV_BYTES_PER_TOKEN, LLAMA_PARAMETERS, MINILM, SMOLLM2, need

from gpufit.profile.cells import Measured
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.record import SCHEMA_VERSION, Profile
from gpufit.profile.store import load_profile

pytestmark = pytest.mark.model

SMOLLM2_PARAMETERS = 134_515_008
"""https://huggingface.co/HuggingFaceTB/SmolLM2-135M-Instruct: 134.5M; by shape: embedding 49152 x 576 (tied),
30 layers of 2 x 576 x 576 + 2 x 576 x 192 + 3 x 576 x 1536 + 2 x 576, final norm 576."""

SMOLLM2_KV_BYTES_PER_TOKEN = 30 * 2 * 3 * 64 * 2
"""Layers x (key, value) x KV heads x head size x bfloat16: 23,040."""

MINILM_PARAMETERS = 22_713_216
"""https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2: 22.7M, as its safetensors header adds up."""


@pytest.fixture(scope="module")
def smollm2(gpufit: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Profile, str]:
    path = tmp_path_factory.mktemp("demo") / "smollm2.json"
    done = gpufit(
        "profile", need(SMOLLM2), "-o", path, "--context", "64,256", "--concurrency", "1,2", "--new-tokens", "4"
    )
    assert done.code == 0, done.stderr
    assert done.stdout == ""
    return load_profile(path), done.stderr


@pytest.fixture(scope="module")
def minilm(gpufit: Run, tmp_path_factory: pytest.TempPathFactory) -> Profile:
    path = tmp_path_factory.mktemp("demo") / "minilm.json"
    done = gpufit("profile", need(MINILM), "-o", path, "--context", "32,128", "--concurrency", "1,4")
    assert done.code == 0, done.stderr
    return load_profile(path)


def peaks(profile: Profile) -> list[tuple[Any, Any]]:
    return [(cell, peak) for cell in profile.measured_cells for peak in cell.outcome.phases]


def assert_identity(profile: Profile) -> None:
    for peak in [profile.load, *(peak for _, peak in peaks(profile))]:
        assert peak.parts.total_bytes == peak.allocated_bytes
        assert peak.parts.unexplained_bytes == 0


def test_the_four_precisions_of_the_demo_model(smollm2: tuple[Profile, str]) -> None:
    precision = smollm2[0].precision
    assert precision.stored[0].dtype == "Q4_1"
    assert [share.dtype for share in precision.resident] == ["bfloat16"]
    assert {one.family: one.dtypes[0] for one in precision.compute}["matmul"] == "bfloat16"
    assert [share.dtype for share in precision.kv] == ["bfloat16"]
    assert precision.findings == ("stored Q4_1, resident bfloat16: blocks dequantised at load",)


def test_the_demo_models_bytes_add_up_and_are_those_of_its_shapes(smollm2: tuple[Profile, str]) -> None:
    profile = smollm2[0]
    assert_identity(profile)
    assert profile.model.parameters == SMOLLM2_PARAMETERS
    assert profile.load.parts.weights_bytes == SMOLLM2_PARAMETERS * 2
    assert len(profile.measured_cells) == 4
    for cell, peak in peaks(profile):
        assert peak.parts.weights_bytes == SMOLLM2_PARAMETERS * 2
        tokens = cell.context_tokens * cell.concurrency
        if peak.phase is Phase.PREFILL:
            assert peak.parts.kv_cache_bytes == SMOLLM2_KV_BYTES_PER_TOKEN * tokens
        else:
            before_last, last = tokens + 2 * cell.concurrency, tokens + 3 * cell.concurrency
            assert peak.cached_tokens == cell.context_tokens + 3
            assert SMOLLM2_KV_BYTES_PER_TOKEN * before_last <= peak.parts.kv_cache_bytes
            assert peak.parts.kv_cache_bytes <= SMOLLM2_KV_BYTES_PER_TOKEN * last


def test_a_further_run_loads_the_converted_copy_and_finds_the_same(
    gpufit: Run, smollm2: tuple[Profile, str], model_cache: Path, tmp_path: Path
) -> None:
    first = smollm2[0]
    (copy,) = (model_cache / "gpufit" / "converted").glob(f"{first.model.fingerprint[:32]}-bfloat16-*")
    written = (copy / "model.safetensors").stat().st_mtime_ns
    path = tmp_path / "again.json"
    done = gpufit(
        "profile", need(SMOLLM2), "-o", path, "--context", "64,256", "--concurrency", "1,2", "--new-tokens", "4"
    )
    assert done.code == 0, done.stderr
    again = load_profile(path)
    assert (copy / "model.safetensors").stat().st_mtime_ns == written
    assert (again.model, again.precision, again.load.parts) == (first.model, first.precision, first.load.parts)
    assert again.precision.quantization is not None
    assert again.precision.quantization.method == "gguf"
    assert again.environment.flags == first.environment.flags
    assert [peak.parts for _, peak in peaks(again)] == [peak.parts for _, peak in peaks(first)]


def test_progress_and_summary_go_to_standard_error(smollm2: tuple[Profile, str]) -> None:
    narration = smollm2[1]
    assert narration.splitlines()[0] == (
        "contexts 64, 256 x 1, 2 at once; 4 new tokens, logits kept: last; dtype auto, device auto, seed 0, "
        "at most 900 s a cell"
    )
    assert "[4/4] context 256 x 2: prefill" in narration
    assert "gpufit fit" in narration
    assert re.search(r"^host memory: [\d.]+ [GM]iB anonymous, [\d.]+ MiB mapped files$", narration, re.MULTILINE)
    assert "\x1b" not in narration


def test_a_profile_says_where_it_comes_from(smollm2: tuple[Profile, str]) -> None:
    profile = smollm2[0]
    assert profile.evidence == "measured"
    assert profile.complete
    assert profile.engine.name == "transformers"
    assert {"python", "torch", "transformers"} <= set(profile.environment.versions)
    assert profile.environment.device.kind in ("cpu", "cuda")
    assert profile.model.position_limit == 8192
    assert len(profile.model.fingerprint) == 64
    for cell in profile.measured_cells:
        assert isinstance(cell.outcome, Measured)
        assert 0 < (cell.outcome.time_to_first_token_seconds or 0) <= cell.outcome.wall_seconds


def test_an_encoder_has_one_forward_and_no_cache(minilm: Profile) -> None:
    assert_identity(minilm)
    assert not minilm.model.generates
    assert minilm.model.parameters == MINILM_PARAMETERS
    assert minilm.precision.kv == ()
    assert minilm.precision.findings == ()
    for cell, peak in peaks(minilm):
        assert peak.phase is Phase.FORWARD
        assert cell.new_tokens == 0
        assert peak.parts.weights_bytes == MINILM_PARAMETERS * 4
        assert peak.parts.kv_cache_bytes == 0
        assert peak.parts.inputs_bytes == cell.context_tokens * cell.concurrency * 2 * 8


def test_a_directory_of_safetensors(llama_profile: Path) -> None:
    profile = load_profile(llama_profile)
    assert_identity(profile)
    assert profile.model.parameters == LLAMA_PARAMETERS
    assert profile.load.parts.weights_bytes == LLAMA_PARAMETERS * 2
    for cell, peak in peaks(profile):
        if peak.phase is Phase.PREFILL:
            tokens = cell.context_tokens * cell.concurrency
            assert peak.parts.kv_cache_bytes == LLAMA_KV_BYTES_PER_TOKEN * tokens


def test_the_written_file_is_the_documented_json(llama_profile: Path) -> None:
    raw = json.loads(llama_profile.read_text())
    assert raw["schema_version"] == SCHEMA_VERSION
    parts = raw["cells"][0]["outcome"]["phases"][0]["parts"]
    assert set(parts) == set(Parts.NAMES)
    assert all(isinstance(size, int) for size in parts.values())


def test_a_hub_id_is_taken_from_the_cache_with_its_commit(
    gpufit: Run, llama_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    repository = tmp_path / "hub" / "models--some-org--tiny-llama"
    shutil.copytree(llama_dir, repository / "snapshots" / commit)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    done = gpufit("profile", "some-org/tiny-llama", "--context", "16", "--concurrency", "1", cwd=tmp_path)
    assert done.code == 0, done.stderr
    profile = load_profile(tmp_path / "profiles" / "some-org--tiny-llama.json")
    assert (profile.model.name, profile.model.revision) == ("some-org/tiny-llama", commit)
    assert profile.memory_model is None
    assert "too few cells for a memory model" in done.stderr


def test_weights_can_be_quantised_while_loading_and_the_narration_says_all_of_it(
    gpufit: Run, llama_dir: Path, tmp_path: Path
) -> None:
    path = tmp_path / "int8.json"
    done = gpufit(
        *("profile", llama_dir, "-o", path, "--context", "16", "--concurrency", "1", "--new-tokens", "2"),
        *("--quantization", "torchao-int8wo"),
    )
    assert done.code == 0, done.stderr
    first, cell, _, *rest = done.stderr.splitlines()
    assert "dtype auto, quantization torchao-int8wo, device" in first
    assert cell.startswith("[1/1] ")
    assert rest[0] == "finding: stored BF16, resident int8: quantised at load by torchao"
    profile = load_profile(path)
    assert_identity(profile)
    assert profile.workload.quantization == "torchao-int8wo"
    assert "torchao" in profile.environment.versions
    # Linear weights: 2 layers of q and o (64 x 64), k and v (32 x 64), three of 128 x 64; 2 x 576 rows of 4 + 1 bytes.
    linear = 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 128 * 64)
    rows = 2 * (64 + 32 + 32 + 64 + 128 + 128 + 64)
    (prefill, _) = [peak for _, peak in peaks(profile)]
    assert prefill.parts.weights_bytes == linear + 5 * rows + (LLAMA_PARAMETERS - linear) * 2


def test_the_narration_says_what_temporaries_are_made_of(smollm2: tuple[Profile, str]) -> None:
    profile, narration = smollm2
    (line,) = [line for line in narration.splitlines() if line.startswith("prefill: temporaries")]
    (largest,) = [
        peak
        for cell, peak in peaks(profile)
        if peak.phase is Phase.PREFILL and (cell.context_tokens, cell.concurrency) == (256, 2)
    ]
    assert "at the peak of context 256 x 2" in line
    assert [one.name in line for one in largest.largest_temporaries] == [True] * len(largest.largest_temporaries)
    assert largest.largest_temporaries
    assert sum(one.size_bytes for one in largest.largest_temporaries) <= largest.parts.temporaries_bytes


def test_a_compute_dtype_is_not_derived_from_the_weights_nor_they_from_it(
    gpufit: Run, llama_dir: Path, tmp_path: Path
) -> None:
    path = tmp_path / "autocast.json"
    done = gpufit(
        *("profile", llama_dir, "-o", path, "--context", "16", "--concurrency", "1", "--new-tokens", "2"),
        *("--dtype", "float32", "--compute-dtype", "bfloat16"),
    )
    assert done.code == 0, done.stderr
    assert "dtype float32, compute dtype bfloat16, device" in done.stderr
    profile = load_profile(path)
    assert_identity(profile)
    assert (profile.workload.dtype_requested, profile.workload.compute_dtype) == ("float32", "bfloat16")
    assert profile.precision.resident[0].dtype == "float32"
    assert {one.family: one.dtypes for one in profile.precision.compute}["matmul"] == ("bfloat16",)
    assert all(peak.parts.weights_bytes == LLAMA_PARAMETERS * 4 for _, peak in peaks(profile))
    assert "finding: autocast to bfloat16" in done.stderr
