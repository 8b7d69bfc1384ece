"""A run in a process of its own, as its caller hears it: every event, always a last one, and no process left."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from processes import is_running
from run_scripts import FLOOD, LOADING, OUT_OF_MEMORY, WAIT, bare_config, began, ended, measured, scripted_run, started

from gpufit.flows_run import Run, start_run
from gpufit.profile.evidence import Evidence
from gpufit.profile.store import load_profile
from gpufit.sources.estimate.request import EstimateRequest
from gpufit.sources.measure.events import (
    Crashed,
    Finished,
    Interrupted,
    Now,
    Refused,
    RunEvent,
    RunRequest,
    decode_event,
    decode_request,
    encode,
)
from gpufit.sources.measure.protocol import Simulation
from gpufit.sources.measure.request import ProfileRequest


@pytest.fixture
def silent_hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """A hub that takes questions and never answers one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(20)
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        monkeypatch.setenv("HF_HUB_OFFLINE", "0")
        yield server


def waiting_run(hub: socket.socket) -> tuple[Run, Iterator[RunEvent]]:
    """A run that waits for a hub, and what it tells from then on."""
    run = start_run(RunRequest(estimate=EstimateRequest(model="someone/model")))
    events = run.events()
    assert isinstance(next(events), Now)
    hub.accept()
    return run, events


@pytest.mark.parametrize(
    "request_",
    [
        RunRequest(
            profile=ProfileRequest(
                model="m", output=Path("profiles/m.json"), contexts=(1, 2), image_size=(4, 5), simulation=Simulation()
            )
        ),
        RunRequest(estimate=EstimateRequest(model="m", context_tokens=5), estimate_output=Path("a b.json")),
    ],
)
def test_a_request_arrives_as_it_was_sent(request_: RunRequest) -> None:
    line = encode(request_)
    assert line.count(b"\n") == 1
    assert decode_request(line) == request_


def test_every_event_arrives_as_it_was_told() -> None:
    told = [LOADING, started(), began(512, 2), measured(512, 2), ended(512, 4, OUT_OF_MEMORY), Finished(output="x")]
    assert [decode_event(encode(event)) for event in told] == told
    run = scripted_run(told)
    assert list(run.events()) == told
    assert not is_running(run.pid)


def test_ten_thousand_lines_arrive_in_order() -> None:
    run = scripted_run([], FLOOD)
    assert list(run.events()) == [*(Now(text=f"step {number}") for number in range(10_000)), Finished(output="x")]


def test_a_process_that_ends_without_a_word_has_crashed_with_its_last_one() -> None:
    *rest, last = scripted_run([LOADING], "sys.exit('Traceback\\nSystemError: no more\\n')").events()
    assert rest == [LOADING]
    assert last == Crashed(reason="the run ended with status 1: SystemError: no more")


def test_one_that_is_killed_has_crashed_by_its_signal() -> None:
    (last,) = scripted_run([], "os.kill(os.getpid(), 9)").events()
    assert last == Crashed(reason="the run was killed by signal 9")


@pytest.mark.parametrize("line", ['{"event": "now", "te', "hello\\n", '{"event": "none"}\\n', '{"text": "x"}\\n'])
def test_what_is_no_event_ends_the_run_and_its_process(line: str) -> None:
    run = scripted_run([LOADING], f"say(b'{line}'); {WAIT if line.endswith('n') else ''}")
    *rest, last = run.events()
    assert rest == [LOADING]
    assert isinstance(last, Crashed)
    assert not is_running(run.pid)


def test_stopped_it_is_interrupted_whatever_its_process_says() -> None:
    run = scripted_run([LOADING], WAIT)
    events = run.events()
    assert next(events) == LOADING
    run.stop()
    assert list(events) == [Interrupted()]
    assert not is_running(run.pid)


def test_one_that_does_not_listen_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpufit.flows_run.STOP_SECONDS", 0.2)
    run = scripted_run([LOADING], "import time; time.sleep(600)")
    events = run.events()
    assert next(events) == LOADING
    run.stop()
    assert list(events) == [Interrupted()]
    assert not is_running(run.pid)


class TestTheProcess:
    """The real one, where nothing heavy is reached."""

    def test_refuses_with_the_commands_own_sentence_and_status(self, tmp_path: Path) -> None:
        run = start_run(RunRequest(profile=ProfileRequest(model=str(tmp_path / "nowhere"))))
        *_, last = run.events()
        assert isinstance(last, Refused)
        assert last.exit_code == 3
        assert "no such model" in last.reason

    def test_a_file_that_is_there_is_not_replaced_unasked(self, tmp_path: Path) -> None:
        output = tmp_path / "profile.json"
        output.write_text("mine")
        request = RunRequest(estimate=EstimateRequest(model=str(bare_config(tmp_path))), estimate_output=output)
        *_, last = start_run(request).events()
        assert last == Refused(
            reason=f"{output} exists; replace it, or name another file", exit_code=2, there=str(output)
        )
        assert output.read_text() == "mine"

    def test_an_estimate_writes_its_profile(self, tmp_path: Path) -> None:

        output = tmp_path / "new" / "profile.json"
        request = RunRequest(estimate=EstimateRequest(model=str(bare_config(tmp_path))), estimate_output=output)
        events = list(start_run(request).events())
        assert events == [Now(text="reading the model's config and file headers"), Finished(output=str(output))]
        assert load_profile(output).evidence is Evidence.COMPUTED

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_a_signal_interrupts_it(self, number: signal.Signals, silent_hub: socket.socket) -> None:
        run, events = waiting_run(silent_hub)
        os.kill(run.pid, number)
        assert list(events) == [Interrupted()]

    def test_stopped_it_is_gone_though_it_waits_for_an_answer(self, silent_hub: socket.socket) -> None:
        run, events = waiting_run(silent_hub)
        run.stop()
        assert list(events) == [Interrupted()]
        assert not is_running(run.pid)
