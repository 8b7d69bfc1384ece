"""Bounds on a sweep: memory, time, failures. Each costs its own cells, and the sweep goes on."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Run
from model_files import save_llama, save_own_llama

from gpufit.profile.cells import Failed, Measured, Outcome, OutOfMemory, Skipped
from gpufit.profile.peaks import Phase
from gpufit.profile.record import Profile
from gpufit.profile.store import load_profile
from gpufit.sources.measure.campaign import Campaign
from gpufit.sources.measure.listener import Listener
from gpufit.sources.measure.request import ProfileRequest
from gpufit.units import MIB

pytestmark = pytest.mark.model

LOGITS = {"vocab_size": 32768, "hidden_size": 64, "max_position_embeddings": 2048}
"""With all logits kept, a prompt of 512 tokens leaves 512 x 32768 x 2 bytes: 32 MiB of bfloat16 in one block."""


SLACK = 16 * MIB
"""What a process takes beside a cell's tensors: kernels' first use, malloc's own pages, Python."""


def outcomes(profile: Profile) -> dict[tuple[int, int], Outcome]:
    return {(cell.context_tokens, cell.concurrency): cell.outcome for cell in profile.cells}


def peak_bytes(outcome: Outcome) -> int:
    assert isinstance(outcome, Measured)
    return max(one.allocated_bytes for one in outcome.phases)


@pytest.fixture(scope="module")
def wide_llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_llama(tmp_path_factory.mktemp("models") / "wide-llama", **LOGITS)


def measured(model: Path, output: Path, loads: list[str] | None = None, **settings: object) -> Profile:
    request = ProfileRequest(model=str(model), output=output, new_tokens=2, **settings)  # type: ignore[arg-type]
    return Campaign(request, Listener(progress=[].append if loads is None else loads.append)).run()


GRID = {"contexts": (512, 1024), "concurrencies": (1, 2), "logits_kept": "all"}


@pytest.fixture(scope="module")
def needed(wide_llama: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[int, int], int]:
    """What each cell of GRID takes without a limit."""
    profile = measured(wide_llama, tmp_path_factory.mktemp("free") / "free.json", **GRID)
    return {key: peak_bytes(outcome) for key, outcome in outcomes(profile).items()}


def test_cells_that_need_less_than_the_memory_limit_are_measured_as_without_it(
    wide_llama: Path, needed: dict[tuple[int, int], int], tmp_path: Path
) -> None:
    limit = needed[1024, 2] + SLACK
    held = measured(wide_llama, tmp_path / "held.json", memory_limit_bytes=limit, **GRID)
    assert {key: peak_bytes(outcome) for key, outcome in outcomes(held).items()} == needed
    assert held.workload.memory_limit_bytes == limit
    assert held.environment.device.total_bytes > limit


def test_a_cell_that_needs_more_than_the_memory_limit_runs_out_of_it(
    wide_llama: Path, needed: dict[tuple[int, int], int], tmp_path: Path
) -> None:
    limit = needed[1024, 2] - 4 * MIB
    loads: list[str] = []
    found = outcomes(measured(wide_llama, tmp_path / "held.json", loads, memory_limit_bytes=limit, **GRID))
    for key in ((512, 1), (512, 2), (1024, 1)):
        assert peak_bytes(found[key]) == needed[key]
    full = found[1024, 2]
    assert isinstance(full, OutOfMemory)
    assert full.phase is Phase.PREFILL
    assert full.limit_bytes == limit
    assert full.asked_bytes is not None
    assert "can't allocate memory" in full.message
    assert loads.count("loading the model") == 1


def test_after_an_out_of_memory_a_fresh_worker_goes_on_and_the_axes_end_there(wide_llama: Path, tmp_path: Path) -> None:
    # 2046 x 1 keeps 2046 x 32768 x 2 bytes of logits, 128 MiB, and 512 x 4 as many: both are beyond a limit of 100 MiB,
    # neither is larger than the other both ways, and 2046 x 4 is answered by the first of them.
    loads: list[str] = []
    found = outcomes(
        measured(
            wide_llama,
            tmp_path / "held.json",
            loads,
            contexts=(512, 2046),
            concurrencies=(1, 4),
            logits_kept="all",
            memory_limit_bytes=100 * MIB,
        )
    )
    assert isinstance(found[512, 1], Measured)
    assert isinstance(found[512, 4], OutOfMemory)
    assert isinstance(found[2046, 1], OutOfMemory)
    assert found[2046, 4] == Skipped(why="context 2046 x 1 already ran out of memory")
    assert loads.count("loading the model") == 2


def test_a_model_that_is_too_big_for_the_limit_is_refused_in_one_line(
    gpufit: Run, wide_llama: Path, tmp_path: Path
) -> None:
    # Its embedding and head alone are 2 x 32768 x 64 x 2 bytes: 8 MiB.
    path = tmp_path / "profile.json"
    done = gpufit("profile", wide_llama, "-o", path, "--memory-limit", "4MiB")
    assert done.code == 4
    assert "does not fit" in done.error
    assert "the limit is 4.0 MiB" in done.error
    assert not path.exists()


def test_a_limit_above_the_devices_own_memory_is_refused(gpufit: Run, llama_dir: Path, tmp_path: Path) -> None:
    done = gpufit("profile", llama_dir, "-o", tmp_path / "p.json", "--memory-limit", "1000t", "--device", "cpu")
    assert done.code == 2
    assert "a limit can only be lower" in done.error


def test_a_resumed_run_keeps_its_memory_limit(gpufit: Run, llama_dir: Path, llama_profile: Path) -> None:
    before = llama_profile.read_bytes()
    done = gpufit("profile", llama_dir, "-o", llama_profile, "--resume", "--new-tokens", "4", "--memory-limit", "1g")
    assert done.code == 2
    assert "was measured with memory limit none, not 1.00 GiB" in done.error
    assert llama_profile.read_bytes() == before


def test_a_cell_that_is_stuck_is_given_up_and_larger_ones_are_skipped(gpufit: Run, tmp_path: Path) -> None:
    # pause() ends by a signal only, and PyDLL keeps the interpreter's lock: no thread of the worker runs any more.
    stuck = "tokens == 48 and sequences == 2 and ctypes.PyDLL(None).pause()"
    model = save_own_llama(tmp_path / "model", stuck)
    path = tmp_path / "profile.json"
    arguments = ("--context", "16,48", "--concurrency", "1,2,3", "--new-tokens", "2", "--trust-remote-code")
    done = gpufit("profile", model, "-o", path, *arguments, "--cell-timeout", "5")
    assert done.code == 0, done.stderr
    assert "at most 5 s a cell" in done.stderr.splitlines()[0]
    found = outcomes(load_profile(path))
    assert found[48, 2] == Failed(error="took longer than 5 s (--cell-timeout) and was given up")
    assert found[48, 3] == Skipped(why="context 48 x 2 already took longer than 5 s")
    for key in ((16, 1), (16, 2), (16, 3), (48, 1)):
        assert isinstance(found[key], Measured)

    # Another time it may not be stuck; what was skipped for it is tried again, too.
    (model / "own.py").write_text((model / "own.py").read_text().replace(stuck, "pass"))
    done = gpufit("profile", model, "-o", path, *arguments, "--resume")
    assert done.code == 0, done.stderr
    assert all(isinstance(outcome, Measured) for outcome in outcomes(load_profile(path)).values())


FAILING = """
        if (tokens, sequences) == (16, 2):
            raise ValueError("no such shape")
        if (tokens, sequences) == (48, 1):
            print("terminate called after throwing an instance of 'std::bad_alloc'", file=sys.stderr, flush=True)
            os.abort()
"""
"""An error, and what the C++ runtime says and does where memory ends in a thread that nobody watches."""


def test_a_cell_that_fails_or_crashes_costs_its_worker_and_the_sweep_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_MODULES_CACHE", str(tmp_path / "modules"))
    model = save_own_llama(tmp_path / "model", FAILING)
    loads: list[str] = []
    found = outcomes(
        measured(
            model,
            tmp_path / "profile.json",
            loads,
            contexts=(16, 48),
            concurrencies=(1, 2, 3),
            trust_remote_code=True,
            memory_limit_bytes=512 * MIB,
        )
    )
    assert isinstance(found[16, 1], Measured)
    assert found[16, 2] == Failed(error="ValueError: no such shape")
    assert isinstance(found[16, 3], Measured)
    crashed = found[48, 1]
    assert isinstance(crashed, OutOfMemory)
    assert (crashed.phase, crashed.limit_bytes) == (None, 512 * MIB)
    assert "SIGABRT" in crashed.message
    assert "bad_alloc" in crashed.message
    for key in ((48, 2), (48, 3)):
        assert found[key] == Skipped(why="context 48 x 1 already ran out of memory")
    assert loads.count("loading the model") == 2
