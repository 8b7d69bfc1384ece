"""However the interface ends, the run that it started ends with it, and what was finished stays."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import children, is_running, wait_until
from terminals import LEFT, START, TAB, Terminal, interface

from gpufit.files import sole_writer
from gpufit.profile.cells import Measured
from gpufit.profile.store import load_profile
from gpufit.tui.run_form import KIND_WORDS, Kind

FORM, ESTIMATE = KIND_WORDS[Kind.PROFILE], KIND_WORDS[Kind.ESTIMATE]
PROFILE = Path("profiles") / "model.json"
GONE_SECONDS = 60
"""A run takes eight of them at most where nothing else runs."""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP])
def test_a_run_that_waits_for_an_answer_ends_with_the_interface(number: signal.Signals, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as hub:  # takes questions and never answers one
        hub.settimeout(120)
        variables = {"HF_ENDPOINT": f"http://127.0.0.1:{hub.getsockname()[1]}", "HF_HUB_OFFLINE": "0"}
        with interface(tmp_path, variables, "tui") as terminal:
            terminal.wait_for("No profile yet")
            terminal.send("8")
            terminal.wait_for(FORM)
            terminal.send(TAB, LEFT)
            terminal.wait_for(ESTIMATE)
            terminal.send(TAB, "someone/model", START)
            connection, _ = hub.accept()
            with connection:
                (run,) = children(terminal.process.pid)
                terminal.process.send_signal(number)
                terminal.process.wait(timeout=60)
                wait_until(lambda: not is_running(run), GONE_SECONDS, "the run is gone")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from model_files import save_llama

    return save_llama(tmp_path_factory.mktemp("models") / "model")


@contextlib.contextmanager
def sweep(folder: Path, model: Path) -> Iterator[tuple[Terminal, tuple[int, int]]]:
    """The interface in the middle of a real run on the processor, and the processes of the run and of its worker."""
    with interface(folder, {}, "tui") as terminal:
        terminal.wait_for("No profile yet")
        terminal.send("8")
        terminal.wait_for(FORM)
        terminal.send(TAB, TAB, str(model), TAB, "8,16,24,32,40,48", TAB, "1,2,3,4", START)
        path = folder / PROFILE
        wait_until(lambda: path.exists() and len(load_profile(path).cells) >= 2, 240, "two cells are saved")
        (run,) = children(terminal.process.pid)
        (worker,) = children(run)
        yield terminal, (run, worker)


def is_whole_so_far(path: Path) -> None:
    """Every finished cell is there, and whoever goes on with the file may have it."""
    profile = load_profile(path)
    assert 2 <= len(profile.cells) < 24
    assert not profile.complete
    assert all(isinstance(cell.outcome, Measured) for cell in profile.cells)
    with sole_writer(path):
        """Nobody holds the file."""


@pytest.mark.model
def test_killed_in_a_sweep_it_leaves_no_worker_and_every_finished_cell(tmp_path: Path, model: Path) -> None:
    with sweep(tmp_path, model) as (terminal, processes):
        os.kill(terminal.process.pid, signal.SIGKILL)
        wait_until(lambda: not any(map(is_running, processes)), GONE_SECONDS, "run and worker are gone")
    is_whole_so_far(tmp_path / PROFILE)


@pytest.mark.model
@pytest.mark.parametrize("key", ["q", "\x11", "\x03"], ids=["q", "ctrl+q", "ctrl+c"])
def test_a_key_that_quits_asks_and_then_stops_the_sweep(key: str, tmp_path: Path, model: Path) -> None:
    with sweep(tmp_path, model) as (terminal, processes):
        terminal.send(key)
        terminal.wait_for("stop it and quit")
        assert all(map(is_running, processes)), "it only asks"
        terminal.send("s")
        assert terminal.process.wait(timeout=GONE_SECONDS) == 0
        assert not any(map(is_running, processes)), "it closes when they have ended"
    is_whole_so_far(tmp_path / PROFILE)


@pytest.mark.model
@pytest.mark.parametrize(("how", "status"), [("SIGTERM", 143), ("SIGHUP", 129), ("closed", 129)])
def test_ended_from_outside_it_stops_the_sweep_first(how: str, status: int, tmp_path: Path, model: Path) -> None:
    with sweep(tmp_path, model) as (terminal, processes):
        if how == "closed":
            terminal.close()
        else:
            terminal.process.send_signal(signal.Signals[how])
        assert terminal.process.wait(timeout=GONE_SECONDS) == status
        assert not any(map(is_running, processes)), "it ends when they have"
    is_whole_so_far(tmp_path / PROFILE)
