"""`gpufit estimate` and `gpufit fit MODEL`, run as a user runs them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import Run

from gpufit.profile.evidence import Evidence
from gpufit.profile.store import load_profile

LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 2048,
    "torch_dtype": "bfloat16",
}
# embeddings and head, then in each layer: four projections, three of the MLP, two norms; and the last norm
PARAMETERS = 2 * 256 * 64 + 2 * (2 * 64 * 64 + 2 * 32 * 64 + 3 * 64 * 128 + 2 * 64) + 64
KV_PER_TOKEN = 2 * 2 * 2 * 16 * 2


@pytest.fixture
def model(tmp_path: Path) -> Path:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(LLAMA))
    return folder


def as_json(gpufit: Run, *arguments: str | Path) -> dict[str, Any]:
    done = gpufit(*arguments, "--json")
    assert done.code == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def test_json_has_the_contract_and_its_parts_add_up(gpufit: Run, model: Path) -> None:
    document = as_json(gpufit, "estimate", model, "--max-model-len", "1000", "--concurrency", "3", "--new-tokens", "5")
    assert document["evidence"] == "computed"
    assert document["scenario"] == {"context_tokens": 1000, "new_tokens": 5, "concurrency": 3, "cached_tokens": 1004}
    assert set(document["phases"]) == {"load", "prefill", "decode"}
    for figures in document["phases"].values():
        assert sum(figures["parts"].values()) == figures["allocated_bytes"]
        assert figures["parts"]["weights_bytes"] == PARAMETERS * 2
        assert figures["allocated_bytes"] < figures["need_bytes"] < figures["need_upper_bytes"]
    assert document["phases"]["prefill"]["parts"]["kv_cache_bytes"] == KV_PER_TOKEN * 3 * 1000
    assert document["cards"] == []
    assert document["kv_cache_growth"]["bytes_per_token"] == KV_PER_TOKEN
    assert document["engine"]["name"] == "transformers"


def test_what_was_not_given_fits_the_model_and_is_said(gpufit: Run, model: Path) -> None:
    done = gpufit("estimate", model)
    assert done.code == 0
    # 2,048 positions: 1,793 of context, and 255 of the 256 new tokens are fed back.
    assert "scenario: context 1793, 256 new tokens, 1 at once; computed for transformers 5.24.0, sdpa" in done.stderr
    assert "no weight files" in done.stdout
    assert "no card named" in done.stdout


def test_an_engine_version_changes_the_answer(gpufit: Run, model: Path) -> None:
    now = as_json(gpufit, "estimate", model, "--context", "1024")
    then = as_json(gpufit, "estimate", model, "--context", "1024", "--engine-version", "4.40.2")
    # before 4.45 logits of every position: 256 of them in two and in four bytes
    assert then["phases"]["prefill"]["parts"]["outputs_bytes"] == 1024 * 256 * 4
    assert now["phases"]["prefill"]["parts"]["outputs_bytes"] == 0


def test_a_card_is_judged_and_a_saved_profile_answers_the_same(gpufit: Run, model: Path, tmp_path: Path) -> None:
    saved = tmp_path / "computed.json"
    document = as_json(gpufit, "estimate", model, "--context", "512", "--card", "l40s", "--save", saved)
    assert [(row["card"], row["verdict"], row["evidence"]) for row in document["cards"]] == [
        ("l40s-48gb", "fits", "computed")
    ]
    profile = load_profile(saved)
    assert (profile.evidence, profile.environment.device.kind) == (Evidence.COMPUTED, "none")
    again = as_json(gpufit, "fit", saved, "--card", "l40s")
    assert again["phases"] == document["phases"]
    assert again["cards"] == document["cards"]
    refused = gpufit("estimate", model, "--save", saved)
    assert (refused.code, refused.error.endswith("is there already; name another file, or remove it first")) == (
        2,
        True,
    )


def test_fit_estimates_a_model_first_and_says_so(gpufit: Run, model: Path) -> None:
    done = gpufit("fit", model, "--context", "512")
    assert done.code == 0
    assert "is a model: estimated first, nothing was measured" in done.stderr
    assert "fits 41 of 41 cards" in done.stdout or "evidence: computed" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--dtype", "int8"), "weights are not loaded in it"),
        (("--engine-version", "4.20.0"), "from 4.33 on"),
        (("--csv",), "one row a card"),
        (("--context", "4096"), "position"),
        (("--card", "h100"), "could be several cards"),
    ],
)
def test_what_cannot_be_asked_is_one_line(gpufit: Run, model: Path, arguments: tuple[str, ...], message: str) -> None:
    done = gpufit("estimate", model, *arguments)
    assert (done.code, done.stdout) == (2, "")
    assert message in done.error


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"model_type": "unheard_of"}, "gpufit simulate"),
        ({"model_type": "llama", "hidden_size": "64"}, "hidden_size is '64', not a whole number"),
        ({"model_type": "llama"}, "no hidden_size"),
        ({}, "model_type"),
        ([], "not a JSON object"),
    ],
)
def test_a_config_that_cannot_be_read_is_one_line(gpufit: Run, tmp_path: Path, config: Any, message: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    done = gpufit("estimate", tmp_path / "config.json")
    assert (done.code, done.stdout) == (3, "")
    assert message in done.error


def test_torch_is_never_imported(model: Path) -> None:
    code = (
        "import sys; from gpufit.cli.main import main; status = main(['estimate', sys.argv[1], '--json']); "
        "heavy = {'torch', 'transformers', 'numpy', 'scipy', 'textual'} & set(sys.modules); "
        "print(status, sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(model)], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines()[-1] == "0 []"
