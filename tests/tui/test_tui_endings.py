"""A signal closes what is open, once; what cannot be closed is ended all the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gpufit.tui.endings import SIGNALS, Ending, exit_status


def test_the_statuses_are_those_of_a_shell() -> None:
    for name in ("TERM", "HUP", "INT"):
        done = subprocess.run(["sh", "-c", f"sh -c 'kill -{name} $$'; echo $?"], capture_output=True, text=True)
        assert exit_status(getattr(signal, f"SIG{name}")) == int(done.stdout)


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_closes_once_and_handlers_are_put_back(number: signal.Signals) -> None:
    before = {one: signal.getsignal(one) for one in SIGNALS}
    calls: list[int | None] = []
    ending = Ending(lambda: pytest.fail("it was not stuck"))
    with ending.heard(), ending.closes(lambda: calls.append(ending.number)):
        os.kill(os.getpid(), number)
        os.kill(os.getpid(), signal.SIGTERM)
        assert calls == [number]
    assert ending.number == number
    assert {one: signal.getsignal(one) for one in SIGNALS} == before


def test_a_signal_before_there_is_anything_to_close_closes_it_at_once() -> None:
    calls: list[str] = []
    ending = Ending(lambda: None)
    with ending.heard():
        os.kill(os.getpid(), signal.SIGTERM)
        with ending.closes(lambda: calls.append("closed")):
            assert calls == ["closed"]


def test_what_ignores_a_signal_goes_on_ignoring_it() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        ending = Ending(lambda: None)
        with ending.heard():
            os.kill(os.getpid(), signal.SIGHUP)
        assert ending.number is None
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_without_a_signal_its_thread_ends_with_it() -> None:
    before = threading.active_count()
    for _ in range(3):
        with Ending(lambda: None).heard():
            pass
    assert threading.active_count() == before


def test_what_is_stuck_is_ended_after_its_last_words(tmp_path: Path) -> None:
    said = tmp_path / "said"
    code = f"""
import os, pathlib, signal, threading
from gpufit.tui.endings import Ending
ending = Ending(lambda: pathlib.Path({str(said)!r}).write_text("kept"), stuck_seconds=0.1)
with ending.heard():
    os.kill(os.getpid(), signal.SIGHUP)
    lock = threading.Lock()
    lock.acquire()
    lock.acquire()
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 128 + 1
    assert said.read_text() == "kept"
