"""kill -9 at any moment of a sweep: nothing finished is lost, nothing is left running, and the next run goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Run, command, environment, without_moments
from processes import children, is_running

from gpufit.profile.cells import Cell, Measured
from gpufit.profile.store import load_profile

pytestmark = pytest.mark.model

GRID = ("--context", "8,16,24,32,40,48", "--concurrency", "1,2,3,4", "--new-tokens", "2")
CELLS = 24


def start(model: Path, path: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("profile", model, "-o", path, *GRID, "--resume"),
        env=environment(path.parent),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def wait_for(condition: Callable[[], bool], seconds: float, what: str) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail(f"{what} within {seconds} s")
        time.sleep(0.001)


def stamp(path: Path) -> tuple[int, int] | None:
    """What changes when the file is replaced."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_mtime_ns


def saved(path: Path) -> tuple[Cell, ...]:
    """The cells in the file, which must be whole or absent."""
    return load_profile(path).cells if path.exists() else ()


def kill(process: subprocess.Popen[str]) -> None:
    """Kill the supervisor alone, and see its worker go with it."""
    workers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    wait_for(lambda: not any(is_running(worker) for worker in workers), 10, "a worker outlived its supervisor")


def test_killed_at_random_moments_a_sweep_loses_nothing_and_comes_to_its_end(
    gpufit: Run, llama_dir: Path, tmp_path: Path
) -> None:
    path = tmp_path / "profile.json"
    moments = random.Random(1)
    before: tuple[Cell, ...] = ()
    for kind in ("start", "save", "cell", "save"):
        process = start(llama_dir, path)
        if kind == "start":  # anywhere between the first line of Python and the import of torch
            time.sleep(moments.uniform(0.1, 2.0))
        else:
            for _ in range(moments.randint(2, 5)):
                standing = stamp(path)
                wait_for(lambda standing=standing: stamp(path) != standing, 120, "no cell was saved")
            if kind == "cell":
                time.sleep(moments.uniform(0.0, 0.2))
        assert process.poll() is None
        kill(process)
        cells = saved(path)
        assert cells[: len(before)] == before
        assert all(isinstance(cell.outcome, Measured) for cell in cells)
        before = cells
    assert 3 <= len(before) < CELLS
    assert [one.name for one in tmp_path.iterdir() if one.name.endswith(".lock")]

    done = gpufit("profile", llama_dir, "-o", path, *GRID, "--resume")
    assert done.code == 0, done.stderr
    after = load_profile(path)
    assert after.complete
    assert without_moments(after.cells)[: len(before)] == without_moments(before)
    assert len({cell.key for cell in after.cells}) == len(after.cells) == CELLS
    assert f"[{len(before) + 1}/{CELLS}]" in done.stderr
    assert [one.name for one in tmp_path.glob(".profile*")] == []


def test_a_second_sweep_on_the_same_file_is_refused_while_the_first_runs(
    gpufit: Run, llama_dir: Path, tmp_path: Path
) -> None:
    path = tmp_path / "profile.json"
    process = start(llama_dir, path)
    wait_for(lambda: bool(saved(path)), 120, "no cell was saved")
    for how in ("--resume", "--force"):
        second = gpufit("profile", llama_dir, "-o", path, *GRID, how)
        assert second.code == 2
        assert f"process {process.pid} is writing it" in second.error
    # Reading is possible all the while.
    smallest = ("--context", "8", "--concurrency", "1", "--new-tokens", "2", "--json")
    assert gpufit("fit", path, *smallest).code == 0
    assert process.wait(timeout=120) == 0
    assert load_profile(path).complete


def test_a_worker_that_is_stuck_with_the_interpreters_lock_dies_with_its_supervisor(tmp_path: Path) -> None:
    from model_files import save_own_llama

    model = save_own_llama(tmp_path / "model", "tokens == 24 and ctypes.PyDLL(None).pause()")
    path = tmp_path / "profile.json"
    arguments = ("--context", "8,24", "--concurrency", "1", "--new-tokens", "2", "--trust-remote-code")
    process = subprocess.Popen(
        command("profile", model, "-o", path, *arguments), env=environment(tmp_path), stderr=subprocess.DEVNULL
    )
    wait_for(lambda: len(saved(path)) == 1, 120, "the first cell was not saved")
    time.sleep(0.5)
    (worker,) = children(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: not is_running(worker), 10, "the stuck worker outlived its supervisor")
