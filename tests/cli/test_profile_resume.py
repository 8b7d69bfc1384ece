"""Nothing that was finished is lost: kill -9, interrupts, out-of-memory, and going on afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from conftest import Run, command, environment, without_moments

from gpufit.profile.cells import Measured, OutOfMemory, Skipped
from gpufit.profile.store import load_profile

pytestmark = pytest.mark.model

GRID = ("--context", "16,32,64,96", "--concurrency", "1,2,3", "--new-tokens", "3")


def start(arguments: tuple[str | Path, ...], home: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command(*arguments),
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Tests that a shell runs in the background inherit from it that interrupts are ignored; a terminal's are not.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def wait_for_cells(path: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if path.exists() and len(json.loads(path.read_text())["cells"]) >= count:
            return
        time.sleep(0.02)
    pytest.fail(f"{path} did not reach {count} cells")


def test_finished_cells_survive_a_kill_and_resume_goes_on(gpufit: Run, llama_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    process = start(("profile", llama_dir, "-o", path, *GRID), tmp_path)
    wait_for_cells(path, 3)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = load_profile(path)
    assert 3 <= len(before.cells) < 12
    assert not before.complete

    done = gpufit("profile", llama_dir, "-o", path, *GRID, "--resume")
    assert done.code == 0, done.stderr
    after = load_profile(path)
    assert after.complete
    assert len(after.cells) == 12
    assert without_moments(after.cells)[: len(before.cells)] == without_moments(before.cells)
    assert after.created_at == before.created_at
    assert f"[{len(before.cells) + 1}/12]" in done.stderr
    assert list(tmp_path.glob(".profile*")) == []


def test_a_worker_that_is_killed_costs_its_cell_only(gpufit: Run, llama_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    process = start(("profile", llama_dir, "-o", path, *GRID), tmp_path)
    wait_for_cells(path, 2)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    os.kill(int(children[0]), signal.SIGKILL)
    _, narration = process.communicate(timeout=120)
    assert process.returncode == 0, narration
    profile = load_profile(path)
    assert profile.complete
    assert len(profile.cells) == 12
    (killed,) = [cell for cell in profile.cells if isinstance(cell.outcome, OutOfMemory)]
    assert killed.outcome.phase is None
    assert "SIGKILL" in killed.outcome.message
    for cell in profile.cells:
        larger = cell.context_tokens >= killed.context_tokens and cell.concurrency >= killed.concurrency
        assert isinstance(cell.outcome, Skipped if larger and cell is not killed else Measured | OutOfMemory)

    # What the system killed may end otherwise another time, and what was skipped for it, too.
    assert gpufit("profile", llama_dir, "-o", path, *GRID, "--resume").code == 0
    assert all(isinstance(cell.outcome, Measured) for cell in load_profile(path).cells)


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_with_its_own_status_and_keeps_the_cells(
    llama_dir: Path, tmp_path: Path, how: signal.Signals
) -> None:
    path = tmp_path / "profile.json"
    # More cells than any machine runs between the first and the signal.
    contexts = ",".join(str(context) for context in range(64, 464))
    process = start(("profile", llama_dir, "-o", path, "--context", contexts, "--concurrency", "1,2,3"), tmp_path)
    wait_for_cells(path, 1)
    os.killpg(process.pid, how)
    _, narration = process.communicate(timeout=60)
    assert process.returncode == 130
    assert narration.splitlines()[-2:] == [
        "finished cells are in the profile; the same command with --resume goes on",
        "gpufit: interrupted",
    ]
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".lock")] == []
    assert len(load_profile(path).cells) >= 1


def test_out_of_memory_is_an_outcome_and_larger_cells_are_skipped(gpufit: Run, llama_dir: Path, tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    # 2**40 sequences of 256 tokens: their ids alone are 2**51 bytes, more than any address space grants.
    huge = str(2**40)
    done = gpufit(
        "profile", llama_dir, "-o", path, "--context", "256,384", "--concurrency", f"1,{huge}", "--new-tokens", "2"
    )
    assert done.code == 0, done.stderr
    cells = {(cell.context_tokens, cell.concurrency): cell.outcome for cell in load_profile(path).cells}
    assert isinstance(cells[256, 1], Measured)
    assert isinstance(cells[384, 1], Measured)
    limit = cells[256, 2**40]
    assert isinstance(limit, OutOfMemory)
    assert limit.asked_bytes == 2**51
    assert isinstance(cells[384, 2**40], Skipped)
    assert "out of memory" in done.stderr


def test_a_profile_that_is_there_is_not_replaced_unasked(gpufit: Run, llama_dir: Path, llama_profile: Path) -> None:
    before = llama_profile.read_bytes()
    done = gpufit("profile", llama_dir, "-o", llama_profile)
    assert done.code == 2
    assert "--resume" in done.error
    assert "--force" in done.error
    assert llama_profile.read_bytes() == before


def test_resuming_with_another_setting_is_refused(gpufit: Run, llama_dir: Path, llama_profile: Path) -> None:
    before = llama_profile.read_bytes()
    done = gpufit("profile", llama_dir, "-o", llama_profile, "--resume", "--new-tokens", "9")
    assert done.code == 2
    assert "new tokens" in done.error
    assert llama_profile.read_bytes() == before


def test_resuming_in_another_precision_is_refused(gpufit: Run, llama_dir: Path, llama_profile: Path) -> None:
    before = llama_profile.read_bytes()
    for flag, value, words in (
        ("--quantization", "torchao-int8wo", "quantization None, not torchao-int8wo"),
        ("--compute-dtype", "bfloat16", "compute dtype None, not bfloat16"),
    ):
        done = gpufit("profile", llama_dir, "-o", llama_profile, "--resume", "--new-tokens", "4", flag, value)
        assert done.code == 2
        assert words in done.error
    assert llama_profile.read_bytes() == before


def test_resuming_with_another_model_is_refused(gpufit: Run, llama_profile: Path, tmp_path: Path) -> None:
    from model_files import save_llama

    other = save_llama(tmp_path / "other", vocab_size=300)
    before = llama_profile.read_bytes()
    done = gpufit("profile", other, "-o", llama_profile, "--resume")
    assert done.code == 2
    assert "another model" in done.error
    assert llama_profile.read_bytes() == before
