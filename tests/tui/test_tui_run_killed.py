"""However the interface ends, the run that it started ends with it, and what was finished stays."""

from __future__ import annotations

import os
import signal
import socket
from pathlib import Path

import pytest
from processes import children, is_running, wait_until
from terminals import LEFT, START, TAB, interface

from gpufit.files import sole_writer
from gpufit.profile.cells import Measured
from gpufit.profile.store import load_profile
from gpufit.tui.run_form import KIND_WORDS, Kind

FORM, ESTIMATE = KIND_WORDS[Kind.PROFILE], KIND_WORDS[Kind.ESTIMATE]
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


@pytest.mark.model
def test_killed_in_a_sweep_it_leaves_no_worker_and_every_finished_cell(tmp_path: Path) -> None:
    from model_files import save_llama

    save_llama(tmp_path / "model")
    path = tmp_path / "profiles" / "model.json"
    with interface(tmp_path, {}, "tui") as terminal:
        terminal.wait_for("No profile yet")
        terminal.send("8")
        terminal.wait_for(FORM)
        terminal.send(TAB, TAB, "model", TAB, "8,16,24,32,40,48", TAB, "1,2,3,4", START)
        wait_until(lambda: path.exists() and len(load_profile(path).cells) >= 2, 240, "two cells are saved")
        (run,) = children(terminal.process.pid)
        (worker,) = children(run)
        os.kill(terminal.process.pid, signal.SIGKILL)
        wait_until(lambda: not is_running(run) and not is_running(worker), GONE_SECONDS, "run and worker are gone")
    profile = load_profile(path)
    assert 2 <= len(profile.cells) < 24
    assert all(isinstance(cell.outcome, Measured) for cell in profile.cells)
    with sole_writer(path):
        """Nobody holds the file."""
