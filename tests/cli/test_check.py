"""`gpufit check` on real models: whole, stopped in each step, interrupted, and refused."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from architectures import ARCHITECTURES
from conftest import Done, Run, command, environment
from model_files import MINILM, need, save_llama, save_own_llama

pytestmark = pytest.mark.model

STEPS = ["start", "load", "preprocess", "compute", "write", "read_back"]


def states(document: dict[str, Any]) -> dict[str, str]:
    return {step["step"]: step["state"] for step in document["steps"]}


def stopped_at(name: str) -> dict[str, str]:
    at = STEPS.index(name)
    return dict(zip(STEPS, ["ok"] * at + ["failed"] + ["not_reached"] * (len(STEPS) - at - 1), strict=True))


def failed(done: Done, name: str) -> str:
    """The error of a check that stopped in a step, which is also the last line on standard error."""
    assert done.code == 4, done.stderr
    document = json.loads(done.stdout)
    assert not document["ok"]
    assert states(document) == stopped_at(name)
    (step,) = [step for step in document["steps"] if step["state"] == "failed"]
    error: str = step["error"]
    assert "\n" not in error
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == f"gpufit: {name} failed: {error}"
    return error


def test_a_decoder_without_a_tokenizer_makes_three_tokens_of_random_ids(
    gpufit: Run, llama_dir: Path, tmp_path: Path
) -> None:
    done = gpufit("check", llama_dir, "--json", "-o", tmp_path / "out", "--device", "cpu")
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    assert states(document) == dict.fromkeys(STEPS, "ok")
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == [
        f"[{number}/6] {name.replace('_', ' ')}" for number, name in enumerate(STEPS, start=1)
    ]
    seen = {step["step"]: step["seen"] for step in document["steps"]}
    assert seen["preprocess"] == "no tokenizer beside the weights: random token ids"
    assert seen["compute"].startswith("3 tokens made; ")
    assert document["context_tokens"] == 16
    assert document["resident"][0]["dtype"] == "bfloat16"
    assert document["notes"] == []
    load, prefill, decode = document["memory"]
    # 16 tokens are read; the cache of 18 has 18 x 256 bytes, so decoding allocates at least that beyond the weights.
    assert [one["phase"] for one in document["memory"]] == ["load", "prefill", "decode"]
    assert decode["allocated_bytes"] >= document["resident"][0]["size_bytes"] + 18 * 256
    assert prefill["allocated_bytes"] > load["allocated_bytes"]
    assert {one["reserved_bytes"] for one in document["memory"]} == {None}
    file = tmp_path / "out" / "gpufit-check.json"
    assert document["result_file"] == str(file)
    assert json.loads(file.read_text()) == document["result"]
    assert len(document["result"]["token_ids"]) == 3
    assert all(0 <= one < 256 for one in document["result"]["token_ids"])
    assert document["result"]["generated"] is None
    assert [one.name for one in file.parent.iterdir()] == [file.name]


def test_a_models_own_tokenizer_reads_the_text_and_an_encoder_gives_its_output(gpufit: Run) -> None:
    done = gpufit("check", need(MINILM), "--json")
    assert done.code == 0, done.stderr
    document = json.loads(done.stdout)
    seen = {step["step"]: step["seen"] for step in document["steps"]}
    assert seen["preprocess"].startswith("a text of ")
    assert seen["preprocess"].endswith(" tokens, of which 16 are read")
    # https://huggingface.co/sentence-transformers/all-MiniLM-L6-v2: 384 dimensions.
    assert document["result"]["output_shape"] == [1, 384]
    assert document["result"]["token_ids"] == []
    assert [one["phase"] for one in document["memory"]] == ["load", "forward"]
    assert document["result_file"] is None
    assert "torch sees no CUDA or ROCm card here" in document["notes"][0]


@pytest.mark.parametrize("name", ["bert", "t5", "whisper", "qwen2_5_vl"])
def test_every_kind_of_model_runs_through(gpufit: Run, name: str, tmp_path: Path) -> None:
    done = gpufit("check", ARCHITECTURES[name]().save(tmp_path / name), "--json")
    assert done.code == 0, done.stdout
    document = json.loads(done.stdout)
    assert len(document["result"]["token_ids"]) == (0 if name == "bert" else 3)
    assert document["result"]["finite"]


def test_a_text_takes_the_place_of_random_ids(gpufit: Run, tmp_path: Path) -> None:
    # MiniLM's vocabulary has 30,522 entries, and so has this model.
    model = save_llama(tmp_path / "model", vocab_size=30522)
    random = json.loads(gpufit("check", model, "--json").stdout)
    copy_tokenizer(model)
    done = gpufit("check", model, "--json")
    assert done.code == 0, done.stdout
    read = json.loads(done.stdout)
    assert read["result"]["generated"] is not None
    assert read["result"]["token_ids"] != random["result"]["token_ids"]


def copy_tokenizer(model: Path) -> None:
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        shutil.copy(need(MINILM) / name, model / name)


def test_a_limit_that_the_weights_exceed_fails_the_load(gpufit: Run, tmp_path: Path) -> None:
    # Embedding and head alone are 2 x 32768 x 64 x 2 bytes: 8 MiB.
    model = save_llama(tmp_path / "model", vocab_size=32768)
    error = failed(gpufit("check", model, "--memory-limit", "4MiB", "--json"), "load")
    assert "does not fit" in error
    assert "the limit is 4.0 MiB" in error


def test_a_tokenizer_of_another_model_fails_the_preprocessing(gpufit: Run, tmp_path: Path) -> None:
    model = save_llama(tmp_path / "model")
    copy_tokenizer(model)
    error = failed(gpufit("check", model, "--json"), "preprocess")
    assert "the model knows 256: it is another model's" in error


def test_a_broken_tokenizer_fails_the_preprocessing(gpufit: Run, tmp_path: Path) -> None:
    model = save_llama(tmp_path / "model")
    copy_tokenizer(model)
    (model / "tokenizer.json").write_text("{not json")
    failed(gpufit("check", model, "--json"), "preprocess")


OWN = ("--trust-remote-code", "--json")


def test_running_out_of_memory_fails_the_computation_with_the_limit_named(gpufit: Run, tmp_path: Path) -> None:
    # A decode step reads one token; 1 GiB more does not go into a limit of 512 MiB.
    statement = "import torch; kept = torch.ones(2**30, dtype=torch.uint8) if tokens == 1 else None"
    model = save_own_llama(tmp_path / "model", statement)
    error = failed(gpufit("check", model, *OWN, "--memory-limit", "512MiB"), "compute")
    assert error.startswith("memory ran out in decode within 512.0 MiB: ")


def test_outputs_that_are_no_numbers_fail_the_computation(gpufit: Run, tmp_path: Path) -> None:
    model = save_own_llama(tmp_path / "model", "self.lm_head.weight.data.fill_(float('nan'))")
    assert failed(gpufit("check", model, *OWN), "compute") == (
        "the model's outputs are not finite numbers (NaN or infinite)"
    )


def test_a_worker_that_dies_fails_the_computation(gpufit: Run, tmp_path: Path) -> None:
    model = save_own_llama(tmp_path / "model", "tokens == 1 and os.abort()")
    assert "SIGABRT" in failed(gpufit("check", model, *OWN), "compute")


def test_a_folder_that_is_gone_when_the_result_is_there_fails_the_write(gpufit: Run, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    statement = f"import shutil; shutil.rmtree('{folder}', ignore_errors=True); open('{folder}', 'w').close()"
    model = save_own_llama(tmp_path / "model", f"tokens == 1 and exec({statement!r})")
    error = failed(gpufit("check", model, *OWN, "-o", folder), "write")
    assert f"{folder}/gpufit-check.json: cannot be written" in error


def test_what_cannot_be_asked_or_read_is_one_line_and_no_document(gpufit: Run, llama_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for code, words, arguments in (
        (2, "torch sees no CUDA or ROCm card here", (llama_dir, "--device", "cuda:0")),
        (2, "--quantization awq", (llama_dir, "--quantization", "awq")),
        (2, "a limit can only be lower", (llama_dir, "--memory-limit", "1000t")),
        (3, "no such model", (tmp_path / "nothing",)),
        (3, "cannot be written", (llama_dir, "-o", tmp_path / "file" / "out")),
    ):
        done = gpufit("check", *arguments)
        assert (done.code, done.stdout) == (code, ""), done.stderr
        assert words in done.stderr.splitlines()[-1]


def test_the_table_says_the_same(gpufit: Run, llama_dir: Path) -> None:
    done = gpufit("check", llama_dir)
    assert done.code == 0
    rows = [line.split()[:3] for line in done.stdout.splitlines()]
    for name in ("start", "load", "preprocess", "compute", "write"):
        assert next(row[:2] for row in rows if row and row[0] == name) == [name, "ok"]
    assert "ok: tiny-llama runs from end to end" in done.stdout


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_with_its_own_status_and_leaves_nothing(how: signal.Signals, tmp_path: Path) -> None:
    # pause() ends by a signal only: the second decode step never comes.
    model = save_own_llama(tmp_path / "model", "tokens == 1 and ctypes.PyDLL(None).pause()")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        command("check", model, "--trust-remote-code"),
        env=environment(tmp_path) | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("[3/6]"):
            break
    time.sleep(0.5)
    process.send_signal(how)
    out, rest = process.communicate(timeout=60)
    assert process.returncode == 130, rest
    assert out == ""
    assert rest.splitlines()[-1] == "gpufit: interrupted"
    assert list(temporary.iterdir()) == []
