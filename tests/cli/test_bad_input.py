"""Bad input: one line on standard error, the right status, nothing written and nothing lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from builders import make_profile
from conftest import Done, Run, command, environment
from model_files import REPOSITORY, SMOLLM2, need, rewrite_config
from public_models import CONFIGS

from gpufit.profile.store import load_profile, save_profile
from gpufit.report.document import SCHEMA_VERSION


def refused(done: Done, code: int, *words: str) -> None:
    assert done.code == code, done
    assert done.stdout == ""
    assert done.error.startswith("gpufit: ")
    for word in words:
        assert word in done.error


@pytest.fixture
def output(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "profile.json"


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    path = tmp_path / "profile.json"
    save_profile(make_profile(), path)
    return path


@pytest.fixture
def broken_llama(llama_dir: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(llama_dir, tmp_path / "broken"))


def profile_refused(gpufit: Run, model: Path | str, output: Path, code: int, *words: str) -> None:
    refused(gpufit("profile", model, "-o", output), code, *words)
    assert not output.exists()


def test_no_such_model(gpufit: Run, output: Path, tmp_path: Path) -> None:
    profile_refused(gpufit, tmp_path / "nothing-here", output, 3, "no such model")


def test_a_hub_id_that_cannot_be_had(gpufit: Run, output: Path) -> None:
    profile_refused(gpufit, "some-org/some-model", output, 3, "some-org/some-model", "HF_HUB_OFFLINE")


def test_a_directory_without_config(gpufit: Run, output: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    profile_refused(gpufit, tmp_path / "empty", output, 3, "config.json", "no such file")


def test_a_config_that_is_not_json(gpufit: Run, output: Path, broken_llama: Path) -> None:
    (broken_llama / "config.json").write_text("{")
    profile_refused(gpufit, broken_llama, output, 3, "config.json", "not JSON")


def test_truncated_safetensors(gpufit: Run, output: Path, broken_llama: Path) -> None:
    weights = broken_llama / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    profile_refused(gpufit, broken_llama, output, 3, "model.safetensors", "cut short")


def test_corrupt_safetensors(gpufit: Run, output: Path, broken_llama: Path) -> None:
    (broken_llama / "model.safetensors").write_bytes(b"\xff" * 4096)
    profile_refused(gpufit, broken_llama, output, 3, "model.safetensors", "damaged")


def test_a_missing_shard(gpufit: Run, output: Path, broken_llama: Path) -> None:
    (broken_llama / "model.safetensors").unlink()
    index = {"weight_map": {"lm_head.weight": "model-00001-of-00002.safetensors"}}
    (broken_llama / "model.safetensors.index.json").write_text(json.dumps(index))
    profile_refused(gpufit, broken_llama, output, 3, "model-00001-of-00002.safetensors")


def test_truncated_gguf(gpufit: Run, output: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    with need(SMOLLM2).open("rb") as whole:
        cut.write_bytes(whole.read(50_000_000))
    profile_refused(gpufit, cut, output, 3, "cut.gguf", "cut short")


def test_gguf_cut_inside_its_header(gpufit: Run, output: Path, tmp_path: Path) -> None:
    cut = tmp_path / "cut.gguf"
    with need(SMOLLM2).open("rb") as whole:
        cut.write_bytes(whole.read(20_000))
    profile_refused(gpufit, cut, output, 3, "cut.gguf")


def test_a_file_that_is_no_gguf(gpufit: Run, output: Path, tmp_path: Path) -> None:
    (tmp_path / "text.gguf").write_text("hello " * 100)
    profile_refused(gpufit, tmp_path / "text.gguf", output, 3, "not a GGUF file")


def test_pickled_weights_are_refused(gpufit: Run, output: Path, broken_llama: Path) -> None:
    (broken_llama / "model.safetensors").rename(broken_llama / "pytorch_model.bin")
    profile_refused(gpufit, broken_llama, output, 3, "pickled", "safetensors")


@pytest.mark.model
def test_code_of_the_models_own_is_refused_with_the_flag_named(gpufit: Run, output: Path, broken_llama: Path) -> None:
    rewrite_config(
        broken_llama,
        model_type="own-llama",
        architectures=["OwnLlama"],
        auto_map={"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnLlama"},
    )
    (broken_llama / "own.py").write_text("raise SystemExit('this code must not run')\n")
    done = gpufit("profile", broken_llama, "-o", output)
    refused(done, 2, "--trust-remote-code")
    assert not output.exists()


@pytest.mark.model
def test_an_architecture_that_transformers_does_not_know(gpufit: Run, output: Path, broken_llama: Path) -> None:
    rewrite_config(broken_llama, model_type="never-heard-of", architectures=["NeverHeardOf"])
    profile_refused(gpufit, broken_llama, output, 4, "never-heard-of")


@pytest.mark.model
def test_a_context_beyond_the_models_positions_is_not_out_of_memory(gpufit: Run, output: Path, llama_dir: Path) -> None:
    done = gpufit("profile", llama_dir, "-o", output, "--context", "1k")
    refused(done, 2, "at most 512 tokens", "position limit", "not memory")
    assert not output.exists()


@pytest.mark.model
def test_a_dtype_that_torch_does_not_have(gpufit: Run, output: Path, llama_dir: Path) -> None:
    refused(gpufit("profile", llama_dir, "-o", output, "--dtype", "bf17"), 2, "--dtype bf17")


@pytest.mark.model
def test_a_quantisation_that_cannot_be_asked_for(gpufit: Run, output: Path, llama_dir: Path) -> None:
    for name, words in (("gptq", "quantised beforehand"), ("int9", "torchao-int8wo")):
        refused(gpufit("profile", llama_dir, "-o", output, "--quantization", name), 2, f"--quantization {name}", words)


def test_a_quantisation_of_a_file_that_is_quantised_already(gpufit: Run, output: Path) -> None:
    done = gpufit("profile", need(SMOLLM2), "-o", output, "--quantization", "bitsandbytes-nf4")
    refused(done, 2, "quantised already (GGUF)")


def test_a_compute_dtype_that_autocast_does_not_take(gpufit: Run, output: Path, llama_dir: Path) -> None:
    refused(gpufit("profile", llama_dir, "-o", output, "--compute-dtype", "int8"), 2, "--compute-dtype", "bfloat16")


def test_a_device_that_is_not_here(gpufit: Run, output: Path, llama_dir: Path) -> None:
    import torch

    if torch.cuda.is_available():
        pytest.skip("this machine has the device")
    refused(gpufit("profile", llama_dir, "-o", output, "--device", "cuda"), 2, "no CUDA or ROCm card")


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", ""])
def test_concurrency_that_is_no_count(gpufit: Run, profile: Path, value: str) -> None:
    refused(gpufit("fit", profile, f"--concurrency={value}"), 2, "--concurrency", "at least 1")
    refused(gpufit("profile", "anything", f"--concurrency={value}"), 2, "--concurrency", "at least 1")


def test_an_unknown_card(gpufit: Run, profile: Path) -> None:
    refused(gpufit("fit", profile, "--card", "h999"), 2, "h999")


def test_h100_asks_which(gpufit: Run, profile: Path) -> None:
    done = gpufit("fit", profile, "--card", "h100")
    refused(done, 2, "h100-pcie-80gb", "h100-sxm-80gb")


def test_fit_beyond_the_position_limit(gpufit: Run, profile: Path) -> None:
    done = gpufit("fit", profile, "--context", "64k", "--concurrency", "1")
    refused(done, 2, "at most 32768 tokens", "position limit", "not memory")


def test_a_missing_profile(gpufit: Run, tmp_path: Path) -> None:
    refused(gpufit("fit", tmp_path / "none.json"), 3, "none.json: no such file")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not a profile"),
        (b"{", "not a profile"),
        (b"[]", "not a profile"),
        (b'{"schema_version": 1}', "damaged profile"),
        (b"\x00\xff\xfe", "not a profile"),
    ],
)
def test_a_corrupt_profile(gpufit: Run, tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    refused(gpufit("fit", path), 3, "bad.json", words)


def test_a_truncated_profile(gpufit: Run, profile: Path) -> None:
    profile.write_bytes(profile.read_bytes()[:-200])
    refused(gpufit("fit", profile), 3, "not whole JSON")


def test_a_profile_from_a_newer_schema(gpufit: Run, profile: Path) -> None:
    raw = json.loads(profile.read_text())
    profile.write_text(json.dumps(raw | {"schema_version": 99, "new_thing": 1}))
    refused(gpufit("fit", profile), 3, "newer gpufit", "schema 99")


def test_an_option_of_models_given_beside_a_profile(gpufit: Run, profile: Path) -> None:
    refused(gpufit("fit", profile, "--dtype", "float16"), 2, "--dtype is for a model")


def test_an_output_extension_that_means_nothing(gpufit: Run, profile: Path, tmp_path: Path) -> None:
    refused(gpufit("fit", profile, "-o", tmp_path / "cards.doc"), 2, ".doc")


def test_a_place_that_cannot_be_written_is_found_before_the_model_is_loaded(gpufit: Run, llama_dir: Path) -> None:
    refused(gpufit("profile", llama_dir, "-o", "/proc/gpufit/profile.json"), 3, "cannot be written")


@pytest.mark.parametrize(
    "arguments",
    [
        ("fit", "PROFILE", "-o", "new/deep/cards.html"),
        ("fit", "PROFILE", "--scenario", "a=1kx1", "--scenario", "b=1kx2", "-o", "new/deep/cards.csv"),
        ("order", "PROFILE", "--card", "h100-sxm", "--term", "7", "-o", "new/deep/order.md"),
        ("compare", "PROFILE", "PROFILE", "-o", "new/deep/difference.md"),
        ("estimate", "MODEL", "-o", "new/deep/estimate.json"),
        ("estimate", "MODEL", "--save", "new/deep/profile.json"),
        ("estimate", "MODEL", "--engine", "vllm", "--card", "h100-sxm", "-o", "new/deep/start.md"),
        ("schema", "-o", "new/deep/fit.schema.json"),
        ("catalog", "offers", "--template", "-o", "new/deep/acme.toml"),
    ],
    ids=" ".join,
)
def test_a_folder_that_is_missing_is_made_and_said_by_every_writer(
    gpufit: Run, profile: Path, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-0.6B"]))
    given = [{"PROFILE": str(profile), "MODEL": str(tmp_path / "model")}.get(one, one) for one in arguments]
    output = Path(arguments[-1])
    for made in (True, False):
        (tmp_path / output).unlink(missing_ok=True)
        done = gpufit(*given, cwd=tmp_path)
        assert done.code == 0, done.stderr
        assert (tmp_path / output).is_file()
        said = done.stderr.splitlines()
        assert said.count("made the folder new/deep") == made
        assert any(line.startswith(f"wrote {output}") for line in said)
    # A file in the way of a folder is no folder to make.
    (tmp_path / "taken").write_text("kept")
    done = gpufit(*given[:-1], f"taken/{output.name}", cwd=tmp_path)
    refused(Done(done.code, done.stdout, done.stderr.splitlines()[-1]), 3, "a file, not a folder")
    assert (tmp_path / "taken").read_text() == "kept"


def test_a_full_disk_while_writing_leaves_the_old_file_whole(tmp_path: Path) -> None:
    """The system's own limit on file sizes stands in for the disk: the write fails half-way with a real error."""
    path = tmp_path / "profile.json"
    save_profile(make_profile(), path)
    report = tmp_path / "cards.json"
    report.write_text("the old report")
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)); "
        "from gpufit.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["fit", str(path), "--context", "8k", "--concurrency", "2", "-o", str(report)]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment(tmp_path)
    )
    refused(Done(done.returncode, done.stdout, done.stderr), 3, "cannot be written", "nothing was changed")
    assert report.read_text() == "the old report"
    assert sorted(one.name for one in tmp_path.iterdir()) == ["cards.json", "profile.json"]


@pytest.mark.model
def test_a_disk_that_fills_during_a_sweep_leaves_the_cells_that_were_saved(llama_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "out" / "profile.json"
    limit = 120_000  # bytes: of the tiny model each cell adds about 50,000, all its moments included
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit})); "
        "from gpufit.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    arguments = ["profile", str(llama_dir), "-o", str(path), "--context", "16,32", "--concurrency", "1,2"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment(tmp_path)
    )
    assert done.returncode == 3, done.stderr
    assert "cannot be written" in done.stderr.splitlines()[-1]
    assert f"made the folder {path.parent}" in done.stderr.splitlines()
    kept = load_profile(path)
    assert 1 <= len(kept.cells) < 4
    assert not kept.complete
    assert [one.name for one in path.parent.iterdir()] == ["profile.json"]


def test_a_reader_that_stops_early_is_no_error(profile: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [
            "sh",
            "-c",
            f"{' '.join(command('fit', profile, '--csv', '--context', '1k', '--concurrency', '1'))} | head -1",
        ],
        capture_output=True,
        text=True,
        env=environment(tmp_path),
    )
    assert done.stdout.startswith("model,engine,")
    assert done.stderr == ""


def test_the_terminal_interface_needs_a_terminal(gpufit: Run, profile: Path) -> None:
    refused(gpufit("tui", profile), 2, "needs a terminal", "gpufit fit")


def test_a_traceback_is_shown_only_when_asked_for(gpufit: Run, tmp_path: Path) -> None:
    done = gpufit("fit", tmp_path / "none.json", "--debug")
    assert done.code == 3
    assert "Traceback" in done.stderr
    assert "Traceback" not in gpufit("fit", tmp_path / "none.json").stderr


@pytest.mark.model
def test_weights_of_another_model_are_refused(gpufit: Run, output: Path, broken_llama: Path) -> None:
    from safetensors.torch import load_file, save_file

    weights = load_file(broken_llama / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, broken_llama / "model.safetensors", metadata={"format": "pt"})
    profile_refused(gpufit, broken_llama, output, 3, "lack 1 of the weights", "model.layers.1.mlp.up_proj.weight")


@pytest.mark.model
def test_weights_of_other_shapes_are_refused(gpufit: Run, output: Path, broken_llama: Path) -> None:
    rewrite_config(broken_llama, intermediate_size=96)
    profile_refused(gpufit, broken_llama, output, 3, "shapes")


@pytest.mark.model
def test_an_attention_that_there_is_not(gpufit: Run, output: Path, llama_dir: Path) -> None:
    done = gpufit("profile", llama_dir, "-o", output, "--attn-implementation", "telepathy")
    refused(done, 2, "--attn-implementation telepathy")


def test_a_pipe_or_a_folder_is_never_replaced_by_a_profile(gpufit: Run, llama_dir: Path, tmp_path: Path) -> None:
    pipe, folder = tmp_path / "pipe", tmp_path / "folder"
    os.mkfifo(pipe)
    folder.mkdir()
    for target in (pipe, folder):
        refused(gpufit("profile", llama_dir, "-o", target, "--force"), 3, "not a file")
    assert pipe.is_fifo()
    assert folder.is_dir()


def test_a_report_never_takes_the_place_of_its_profile(gpufit: Run, profile: Path, tmp_path: Path) -> None:
    before = profile.read_bytes()
    link = tmp_path / "link.json"
    link.symlink_to(profile)
    for target in (profile, link):
        refused(gpufit("fit", profile, "--context", "1k", "--concurrency", "1", "-o", target), 2, "profile itself")
    assert profile.read_bytes() == before


def damaged(profile: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    raw = json.loads(profile.read_text())
    change(raw)
    profile.write_text(json.dumps(raw))
    return profile


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda raw: raw["memory_model"].update(phases=[]), "lacks prefill"),
        (lambda raw: raw["memory_model"]["phases"][0]["moments"][0]["parts"][2].update(coefficients=[]), "bytes off"),
        (lambda raw: raw["memory_model"].update(max_cached_tokens=10**6), "claims to reach 1000000 cached tokens"),
        (lambda raw: raw["memory_model"]["phases"][0].update(largest_growth_bytes=1), "claims that 1 bytes grew"),
        (lambda raw: raw["memory_model"]["phases"][0].update(moments=[], worst_miss_bytes=10**12), "has no moment"),
        (lambda raw: raw["cells"].append(raw["cells"][0]), "twice"),
        (lambda raw: raw["model"].update(position_limit=-5), "damaged profile"),
        (lambda raw: raw["load"].update(allocated_bytes=1), "add up"),
    ],
)
def test_a_profile_that_contradicts_itself(
    gpufit: Run, profile: Path, change: Callable[[dict[str, Any]], None], words: str
) -> None:
    refused(gpufit("fit", damaged(profile, change)), 3, "damaged profile", words)


def test_new_tokens_for_a_model_that_generates_nothing(gpufit: Run) -> None:
    encoder = REPOSITORY / "tests" / "facts" / "profiles" / "all-MiniLM-L6-v2.json"
    refused(gpufit("fit", encoder, "--new-tokens", "100"), 2, "generates nothing")


def test_resume_and_force_exclude_each_other(gpufit: Run, llama_dir: Path) -> None:
    refused(gpufit("profile", llama_dir, "--resume", "--force"), 2, "--force", "--resume")


def shell(line: str, tmp_path: Path) -> Done:
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, env=environment(tmp_path))
    return Done(done.returncode, done.stdout, done.stderr)


def test_an_output_that_takes_nothing_is_its_own_status(profile: Path, tmp_path: Path) -> None:
    fit = " ".join(command("fit", profile, "--json", "--context", "1k", "--concurrency", "1"))
    refused(shell(f"{fit} > /dev/full", tmp_path), 3, "standard output", "No space left")
    refused(shell(f"{fit} >&-", tmp_path), 3, "standard output is closed")


def test_a_standard_error_that_takes_nothing_does_not_change_the_answer(profile: Path, tmp_path: Path) -> None:
    fit = " ".join(command("fit", profile, "--json"))
    done = shell(f"{fit} 2> /dev/full", tmp_path)
    assert done.code == 0
    assert json.loads(done.stdout)["schema_version"] == SCHEMA_VERSION


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--memory-limit", "6"), ("--memory-limit", "0g"), ("--cell-timeout", "0"), ("--cell-timeout", "1.5")],
)
def test_a_limit_that_is_none(gpufit: Run, flag: str, value: str) -> None:
    refused(gpufit("profile", "anything", flag, value), 2, flag, repr(value))


AT = ("--context", "512", "--concurrency", "4", "--new-tokens", "4")
TOO_LONG = "x" * 300
"""Longer than a file system takes (255 bytes)."""


@pytest.mark.parametrize(
    "arguments",
    [
        ["fit", TOO_LONG],
        ["fit", "PROFILE", *AT, "-o", f"{TOO_LONG}.csv"],
        ["fit", "PROFILE", *AT, "-o", f"{TOO_LONG}/cards.csv"],
        ["fit", "PROFILE", "--catalog", TOO_LONG],
        ["compare", "PROFILE", f"{TOO_LONG}.json"],
        ["catalog", "list", "--catalog", TOO_LONG],
        ["catalog", "offers", "--template", "-o", f"{TOO_LONG}.toml"],
        ["estimate", TOO_LONG],
    ],
)
def test_a_name_too_long_for_a_file_is_said_in_words(
    arguments: list[str], gpufit: Run, profile: Path, tmp_path: Path
) -> None:
    done = gpufit(*(str(profile) if one == "PROFILE" else one for one in arguments))
    assert done.code == 3
    assert "internal error" not in done.error
    assert TOO_LONG in done.error
