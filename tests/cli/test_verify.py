"""`gpufit verify` on real models: as predicted, not as predicted, out of memory, refused, interrupted."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from conftest import Done, Run, command, environment
from model_files import LLAMA_KV_BYTES_PER_TOKEN, save_llama, save_own_llama

from gpufit.profile.cells import Measured
from gpufit.profile.store import load_profile, save_profile

pytestmark = pytest.mark.model

MIB = 2**20


def document(done: Done, code: int) -> dict[str, Any]:
    assert done.code == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def phases(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {one["phase"]: one for one in found["phases"]}


def parts(phase: dict[str, Any], side: str) -> dict[str, int]:
    return {one["part"]: one[f"{side}_bytes"] for one in phase["parts"]}


def test_a_measured_profile_is_what_the_same_machine_does_again(gpufit: Run, llama_profile: Path) -> None:
    found = document(gpufit("verify", llama_profile, "--json"), 0)
    assert (found["ok"], found["ending"], found["expected"]) == (True, "inside", "fits")
    # The largest of 32 and 128 tokens x 1 and 3 sequences.
    scenario = found["scenario"]
    assert (scenario["context_tokens"], scenario["new_tokens"], scenario["concurrency"]) == (128, 4, 3)
    assert found["predicted"]["ran_this_cell"]
    assert found["differences"] == []
    seen = phases(found)
    assert list(seen) == ["load", "prefill", "decode"]
    profile = load_profile(llama_profile)
    (cell,) = [cell for cell in profile.cells if cell.key == (128, 4, 3)]
    assert isinstance(cell.outcome, Measured)
    for peak in cell.outcome.phases:
        assert seen[peak.phase]["measured_bytes"] == peak.allocated_bytes
        assert sum(parts(seen[peak.phase], "measured").values()) == peak.allocated_bytes
    assert parts(seen["decode"], "measured")["kv_cache_bytes"] == 3 * 131 * LLAMA_KV_BYTES_PER_TOKEN
    assert found["here"]["wall_seconds"] > 0


def test_a_promise_that_the_run_does_not_keep_is_status_1_and_says_by_how_much(
    gpufit: Run, llama_profile: Path, tmp_path: Path
) -> None:
    # The same profile, of which somebody dropped the model and said that every cell took 2 MiB less: its weights have
    # 0.2 MiB, and 1 MiB either way counts as inside.
    profile = load_profile(llama_profile)
    cells = []
    for cell in profile.cells:
        assert isinstance(cell.outcome, Measured)
        more = tuple(
            msgspec.structs.replace(
                peak,
                parts=msgspec.structs.replace(peak.parts, temporaries_bytes=peak.parts.temporaries_bytes + 2 * MIB),
                allocated_bytes=peak.allocated_bytes + 2 * MIB,
                moments=(),
            )
            for peak in cell.outcome.phases
        )
        cells.append(msgspec.structs.replace(cell, outcome=msgspec.structs.replace(cell.outcome, phases=more)))
    path = tmp_path / "spoilt.json"
    save_profile(msgspec.structs.replace(profile, cells=tuple(cells), memory_model=None), path)
    done = gpufit("verify", path)
    assert done.code == 1
    assert done.stdout.count("✗ outside") == 2
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("not as predicted")]
    assert "1.0 MiB below its interval" in done.stdout, line


@pytest.mark.parametrize(
    "made",
    [
        ("simulate", "--context", "64,128,256", "--concurrency", "1,2", "-o"),
        ("estimate", "--context", "256", "--concurrency", "2", "--new-tokens", "8", "--save"),
    ],
    ids=["simulated", "computed"],
)
def test_what_never_ran_is_verified_too(gpufit: Run, llama_dir: Path, tmp_path: Path, made: tuple[str, ...]) -> None:
    path = tmp_path / "profile.json"
    verb, *options = made
    assert gpufit(verb, llama_dir, *options, path).code == 0
    found = document(gpufit("verify", path, "--json"), 0)
    evidence = "simulated" if verb == "simulate" else "computed"
    assert {one["evidence"] for one in found["phases"]} == {evidence}
    scenario = found["scenario"]
    assert (scenario["context_tokens"], scenario["new_tokens"], scenario["concurrency"]) == (256, 8, 2)
    prefill = phases(found)["prefill"]
    assert parts(prefill, "measured")["weights_bytes"] == parts(prefill, "predicted")["weights_bytes"]
    assert "device" not in {one["what"] for one in found["differences"]}


WIDE = {"vocab_size": 32768, "hidden_size": 64, "max_position_embeddings": 2048}
"""With all logits kept, a prompt of 512 tokens leaves 512 x 32768 x 2 bytes: 32 MiB of bfloat16."""


@pytest.fixture(scope="module")
def wide(gpufit: Run, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """(profile, bytes at the peak of its largest cell)."""
    folder = tmp_path_factory.mktemp("wide")
    save_llama(folder / "wide-llama", **WIDE)
    path = folder / "wide.json"
    arguments = ("--context", "512,1024", "--concurrency", "1,2", "--new-tokens", "2", "--keep-logits", "all")
    done = gpufit("profile", folder / "wide-llama", "-o", path, *arguments)
    assert done.code == 0, done.stderr
    (cell,) = [cell for cell in load_profile(path).cells if cell.key == (1024, 2, 2)]
    assert isinstance(cell.outcome, Measured)
    return path, max(one.allocated_bytes for one in cell.outcome.phases)


def test_another_cell_is_held_against_the_memory_model(gpufit: Run, wide: tuple[Path, int], tmp_path: Path) -> None:
    output = tmp_path / "report.json"
    done = gpufit("verify", wide[0], "--cell", "768x2", "-o", output)
    assert (done.code, done.stdout) == (0, ""), done.stderr
    assert done.stderr.splitlines()[0] == "running context 768 + 2 new x 2 at once, dtype auto"
    assert done.stderr.splitlines()[-1] == f"wrote {output}"
    found = json.loads(output.read_text())
    assert not found["predicted"]["ran_this_cell"]
    assert parts(phases(found)["prefill"], "predicted")["kv_cache_bytes"] == pytest.approx(
        2 * 768 * LLAMA_KV_BYTES_PER_TOKEN, abs=2
    )
    assert phases(found)["prefill"]["predicted_lower_bytes"] < phases(found)["prefill"]["predicted_upper_bytes"]


CONTEXT_BYTES = 200 * MIB + 99_000_000
"""Of the card below: its driver context and the kernels that are loaded at first use."""


def card_of(folder: Path, limit_bytes: int) -> Path:
    """A catalog of one more card, which leaves so much to the allocator."""
    gib = (limit_bytes + CONTEXT_BYTES) / 2**30
    folder.mkdir()
    (folder / "cards.toml").write_text(
        'schema_version = 1\n[tiny-card]\nvendor = "NVIDIA"\nname = "Tiny card"\ncompute_capability = "8.9"\n'
        f"[tiny-card.memory]\nnominal_gb = 1\nplanning_torch_gib = {gib}\n[tiny-card.context]\nmib = 200\n"
    )
    return folder


def test_a_cards_memory_that_is_enough_is_put_on_the_run_and_holds(
    gpufit: Run, wide: tuple[Path, int], tmp_path: Path
) -> None:
    profile, peak = wide
    catalog = card_of(tmp_path / "catalog", peak + 64 * MIB)
    found = document(gpufit("verify", profile, "--as", "tiny-card", "--catalog", catalog, "--json"), 0)
    ceiling = found["ceiling"]
    assert (ceiling["card"], ceiling["context_bytes"]) == ("tiny-card", CONTEXT_BYTES)
    assert ceiling["limit_bytes"] == ceiling["capacity_bytes"] - CONTEXT_BYTES
    assert ceiling["limit_bytes"] == pytest.approx(peak + 64 * MIB, abs=1)
    assert found["memory_limit_bytes"] == found["room_bytes"] == ceiling["limit_bytes"]
    assert found["expected"] == "fits"


def test_a_cards_memory_that_is_too_small_ends_out_of_memory_as_predicted(
    gpufit: Run, wide: tuple[Path, int], tmp_path: Path
) -> None:
    profile, peak = wide
    catalog = card_of(tmp_path / "catalog", peak // 2)
    found = document(gpufit("verify", profile, "--as", "tiny-card", "--catalog", catalog, "--json"), 1)
    assert (found["ok"], found["ending"], found["expected"]) == (False, "out_of_memory", "does_not_fit")
    assert found["out_of_memory"]["phase"] == "prefill"
    assert found["conclusion"].startswith("out of memory in prefill within ")
    assert "as predicted: at least" in found["conclusion"]
    assert phases(found)["prefill"]["measured_bytes"] is None


def test_a_card_that_does_not_even_hold_the_weights_is_told_so(
    gpufit: Run, wide: tuple[Path, int], tmp_path: Path
) -> None:
    # Embedding and head alone are 2 x 32768 x 64 x 2 bytes: 8 MiB.
    catalog = card_of(tmp_path / "catalog", 4 * MIB)
    found = document(gpufit("verify", wide[0], "--as", "tiny-card", "--catalog", catalog, "--json"), 1)
    assert (found["ending"], found["expected"], found["here"]) == ("out_of_memory", "does_not_fit", None)
    assert found["out_of_memory"]["phase"] == "load"


def test_a_run_that_takes_more_than_was_promised_runs_out_where_a_fit_was_predicted(
    gpufit: Run, tmp_path: Path
) -> None:
    model = save_own_llama(tmp_path / "model", "pass")
    path = tmp_path / "profile.json"
    arguments = ("--context", "32,64", "--concurrency", "1,2", "--new-tokens", "2", "--trust-remote-code")
    assert gpufit("profile", model, "-o", path, *arguments).code == 0
    more = "import torch; kept = torch.ones(2**30, dtype=torch.uint8) if tokens == 64 else None"
    (model / "own.py").write_text((model / "own.py").read_text().replace("\n        pass\n", f"\n        {more}\n"))
    catalog = card_of(tmp_path / "catalog", 256 * MIB)
    arguments = ("--as", "tiny-card", "--catalog", catalog, "--trust-remote-code", "--json")
    found = document(gpufit("verify", path, *arguments), 1)
    assert (found["ending"], found["expected"]) == ("out_of_memory", "fits")
    assert "not as predicted: a fit was predicted" in found["conclusion"]


def test_a_run_that_fails_otherwise_is_status_4_in_one_line(gpufit: Run, tmp_path: Path) -> None:
    model = save_own_llama(tmp_path / "model", "pass")
    path = tmp_path / "profile.json"
    arguments = ("--context", "32", "--concurrency", "1", "--new-tokens", "2", "--trust-remote-code")
    assert gpufit("profile", model, "-o", path, *arguments).code == 0
    fails = "tokens == 32 and exec(\"raise ValueError('no such shape')\")"
    (model / "own.py").write_text((model / "own.py").read_text().replace("\n        pass\n", f"\n        {fails}\n"))
    done = gpufit("verify", path, "--trust-remote-code")
    assert (done.code, done.stdout) == (4, "")
    assert done.stderr.splitlines()[-1] == "gpufit: context 32 x 1: ValueError: no such shape"


def test_a_model_that_is_elsewhere_or_another_is_told_in_one_line(
    gpufit: Run, llama_dir: Path, llama_profile: Path, tmp_path: Path
) -> None:
    moved = tmp_path / "moved.json"
    profile = load_profile(llama_profile)
    gone = msgspec.structs.replace(profile.model, source="somewhere/tiny-llama")
    save_profile(msgspec.structs.replace(profile, model=gone), moved)
    done = gpufit("verify", moved)
    assert (done.code, done.stdout) == (3, "")
    assert done.error == (
        f"gpufit: {moved} is of tiny-llama, read from somewhere/tiny-llama, which is not here; say where it is: "
        "--model MODEL"
    )
    bare = tmp_path / "bare"
    bare.mkdir()
    shutil.copy(llama_dir / "config.json", bare)
    save_profile(
        msgspec.structs.replace(profile, model=msgspec.structs.replace(profile.model, source=str(bare))), moved
    )
    done = gpufit("verify", moved)
    assert (done.code, done.stdout) == (3, "")
    assert f"read from {bare}, which cannot be run ({bare}: no weights" in done.error
    other = save_llama(tmp_path / "other", num_hidden_layers=1)
    done = gpufit("verify", moved, "--model", other)
    assert (done.code, done.stdout) == (2, "")
    assert f"{other} is not the model that {moved} is of (tiny-llama, fingerprint " in done.error
    copied = tmp_path / "copy"
    shutil.copytree(llama_dir, copied)
    assert gpufit("verify", moved, "--model", copied, "--cell", "32x1").code == 0


def test_what_cannot_be_asked_is_one_line(gpufit: Run, llama_profile: Path, tmp_path: Path) -> None:
    profile = load_profile(llama_profile)
    sharded, served = tmp_path / "sharded.json", tmp_path / "served.json"
    workload = msgspec.structs.replace(profile.workload, tensor_parallel_size=2)
    save_profile(msgspec.structs.replace(profile, workload=workload), sharded)
    engine = msgspec.structs.replace(profile.engine, name="vllm")
    save_profile(msgspec.structs.replace(profile, engine=engine), served)
    for words, arguments in (
        ("--cell is CONTEXTxCONCURRENCY", (llama_profile, "--cell", "8k")),
        ("the context of --cell must be a whole number", (llama_profile, "--cell", "manyx2")),
        ("position limit", (llama_profile, "--cell", "4kx1")),
        ("h100", (llama_profile, "--as", "h100")),
        ("--as mi355x", (llama_profile, "--as", "mi355x")),
        ("torch sees no CUDA or ROCm card here", (llama_profile, "--device", "cuda")),
        ("one of 2 cards that share the model", (sharded,)),
        ("the profile is of vllm", (served,)),
        ("holds no verification", (llama_profile, "-o", tmp_path / "report.xlsx")),
        ("is the profile itself", (llama_profile, "-o", llama_profile)),
    ):
        done = gpufit("verify", *arguments)
        assert (done.code, done.stdout) == (2, ""), (arguments, done.stderr)
        assert words in done.stderr.splitlines()[-1]


def test_an_interrupt_ends_with_its_own_status_and_leaves_nothing(gpufit: Run, tmp_path: Path) -> None:
    model = save_own_llama(tmp_path / "model", "pass")
    path = tmp_path / "profile.json"
    arguments = ("--context", "32", "--concurrency", "1", "--new-tokens", "2", "--trust-remote-code")
    assert gpufit("profile", model, "-o", path, *arguments).code == 0
    stuck = "tokens == 32 and ctypes.PyDLL(None).pause()"
    (model / "own.py").write_text((model / "own.py").read_text().replace("\n        pass\n", f"\n        {stuck}\n"))
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        command("verify", path, "--trust-remote-code"),
        env=environment(tmp_path) | {"TMPDIR": str(temporary)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith("running context 32")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    out, rest = process.communicate(timeout=60)
    assert process.returncode == 130, rest
    assert out == ""
    assert rest.splitlines()[-1] == "gpufit: interrupted"
    assert list(temporary.iterdir()) == []
