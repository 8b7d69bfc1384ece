"""The run screen under keys, over runs whose process says what the test wants."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import make_cell, make_profile
from recordings import Replay, held_before, said
from run_screens import (
    MEDIUM,
    SMALL,
    WIDE,
    Script,
    open_form,
    run_screen,
    scripted_app,
    started_run,
    state_of,
    text_of,
    until,
)
from run_scripts import (
    FAILED,
    FLOOD,
    LOADING,
    OUT_OF_MEMORY,
    SKIPPED,
    SLOW_TO_END,
    WAIT,
    began,
    ended,
    measured,
    scripted_run,
    started,
)
from textual.pilot import Pilot
from textual.widgets import Input
from tui_builders import CATALOG, OFFERS, make_app, make_loaded, make_session, named, screen_lines, screen_text

from gpufit.profile.store import save_profile
from gpufit.report.document import FitDocument
from gpufit.report.run_text import cell_line, summary_lines
from gpufit.sources.measure.events import CellDone, Finished, Refused, RunRequest
from gpufit.sources.measure.request import ProfileRequest
from gpufit.tui.app import GpufitApp
from gpufit.tui.messages import FieldChanged
from gpufit.tui.run_form import KIND_WORDS, Kind
from gpufit.tui.run_state import Stage
from gpufit.tui.runner import Runner
from gpufit.tui.screens.cards import CardsScreen
from gpufit.tui.session import Session
from gpufit.tui.state import View


class TestForm:
    @pytest.mark.parametrize("size", [SMALL, MEDIUM, WIDE])
    async def test_says_what_each_field_holds_and_the_command_for_it(self, size: tuple[int, int]) -> None:
        app = make_app()
        async with app.run_test(size=size) as pilot:
            await open_form(pilot, "m1")
            text = screen_text(app)
            for words in ("< profile >", "model m1", "256,512,768,1k,1536", "< leave it >", "$ gpufit profile m1"):
                assert words in text
            assert {len(line) for line in screen_lines(app)} == {size[0]}

    async def test_another_kind_has_its_own_fields_and_keeps_what_both_have(self) -> None:
        app = make_app()
        async with app.run_test(size=MEDIUM) as pilot:
            await open_form(pilot, "m1")
            await pilot.press("shift+tab", "right")
            text = screen_text(app)
            assert KIND_WORDS[Kind.SIMULATE][:20] in text
            assert "cards that share it" in text
            assert "device auto" not in text
            assert "$ gpufit simulate m1" in text
            await pilot.press("left", "left")
            assert "$ gpufit estimate m1" in screen_text(app)

    async def test_all_settings_are_folded_until_they_are_asked_for(self) -> None:
        app = make_app()
        async with app.run_test(size=MEDIUM) as pilot:
            await pilot.press("8")
            assert "memory limit" not in screen_text(app)
            await pilot.press("a")
            await pilot.pause()
            assert "memory limit" in screen_text(app)
            await pilot.press("a")
            await pilot.pause()
            assert "memory limit" not in screen_text(app)

    async def test_a_digit_in_a_field_is_typed_and_out_of_it_opens_a_screen(self) -> None:
        app = make_app()
        async with app.run_test(size=MEDIUM) as pilot:
            await open_form(pilot, "2")
            assert app.session.state.view is View.RUN
            assert run_screen(app).query_one("#field-profile-model", Input).value == "2"
            await pilot.press("escape", "2")
            assert isinstance(app.screen, CardsScreen)

    @pytest.mark.parametrize("size", [SMALL, MEDIUM])
    async def test_what_cannot_be_understood_is_said_at_its_field(self, size: tuple[int, int]) -> None:
        script = Script()
        app = scripted_app(script)
        async with app.run_test(size=size) as pilot:
            await open_form(pilot)
            await pilot.press("tab", "x", "escape", "ctrl+s")
            text = screen_text(app)
            assert "! context x" in text
            assert "! context must be a whole number of at least 1" in text
            assert app.focused is run_screen(app).query_one("#field-profile-context")
            assert script.requests == []

    async def test_what_is_typed_faster_than_it_is_told_is_neither_lost_nor_missed(self) -> None:
        script = Script(partial(scripted_run, [Refused(reason="no", exit_code=2)]))
        app = scripted_app(script)
        async with app.run_test(size=MEDIUM) as pilot:
            await open_form(pilot, "so")
            screen = run_screen(app)
            field = screen.query_one("#field-profile-model", Input)
            field.value = "someone"
            screen.on_field_changed(FieldChanged("model", "so"))
            assert field.value == "someone", "a word that comes late does not undo what was typed since"
            screen.action_start()
            assert script.requests == [RunRequest(profile=ProfileRequest(model="someone"))]

    @pytest.mark.parametrize("size", [SMALL, MEDIUM])
    async def test_a_long_value_shows_its_head_until_it_is_typed_in(self, size: tuple[int, int]) -> None:
        app = make_app()
        many = ",".join(str(32 * number) for number in range(1, 60))
        async with app.run_test(size=size) as pilot:
            await open_form(pilot)
            field = run_screen(app).query_one("#field-profile-context", Input)
            field.value = many
            await pilot.press("escape")
            shown = text_of(app, "#field-profile-context")
            assert shown.endswith("…")
            assert many.startswith(shown.removesuffix("…"))
            assert len(shown) > 20
            field.focus()
            await pilot.pause()
            await pilot.press("home", "end")
            await pilot.pause()
            shown = text_of(app, "#field-profile-context")
            assert shown.startswith("…")
            assert many.endswith(shown.removeprefix("…"))
            await pilot.press("home")
            await pilot.pause()
            assert text_of(app, "#field-profile-context").endswith("…")

    async def test_pasted_lines_are_one(self) -> None:
        app = make_app()
        async with app.run_test(size=MEDIUM) as pilot:
            await open_form(pilot, "")
            field = run_screen(app).query_one("#field-profile-model", Input)
            from textual.events import Paste

            field.post_message(Paste("org/name[bold]\nsecond"))
            await pilot.pause()
            assert field.value == "org/name[bold]"
            assert "$ gpufit profile 'org/name[bold]'" in screen_text(app)


class TestRun:
    @pytest.mark.parametrize("size", [SMALL, MEDIUM, WIDE])
    async def test_shows_the_cell_being_run_the_grid_and_the_parts(self, size: tuple[int, int]) -> None:
        told = [LOADING, started(), began(128, 1), measured(128, 1), began(512, 4)]
        script = Script(partial(scripted_run, told, WAIT))
        app = scripted_app(script)
        async with app.run_test(size=size) as pilot:
            await started_run(pilot, script)
            await until(pilot, lambda: state_of(app).current == began(512, 4).key)
            text = text_of(app, "#progress")
            assert script.requests == [RunRequest(profile=ProfileRequest(model="m"))]
            assert "running: context 512 x 4 0 s" in text
            assert "1 of 6 cells" in text
            assert "Cells, each with its highest peak ● measured" in text
            # Weights, buffers, cache, inputs, logits, activations, temporaries of builders.py: 260,306,048 B / 2**20.
            prefill = 256_000_000 + 4_000 + 128 * (20_000 + 16 + 3_000 + 2_000) + 100_000 + 1_000_000
            assert f"128 ✓ {prefill / 2**20:.1f} MiB" in text
            assert "512 · · ▸" in text
            assert "Parts at the peak: context 128 x 1 ● measured" in text
            assert {len(line) for line in screen_lines(app)} == {size[0]}
            script.begun[0].stop()

    async def test_an_out_of_memory_is_an_outcome_and_the_app_stays_up(self) -> None:
        told = [
            started(),
            measured(128, 1),
            ended(512, 2, OUT_OF_MEMORY),
            ended(512, 4, SKIPPED),
            ended(128, 4, FAILED),
            began(512, 1),
        ]
        script = Script(partial(scripted_run, told, WAIT))
        app = scripted_app(script)
        async with app.run_test(size=WIDE) as pilot:
            await started_run(pilot, script)
            await until(pilot, lambda: state_of(app).current is not None)
            text = text_of(app, "#progress")
            assert "512 ▸ ✗mem -" in text
            assert "✓ done ✗mem out of memory ! failed - left out ▸ now · waits" in text
            for event in told[1:5]:
                assert cell_line(event.cell) in text_of(app, "#outcomes")  # type: ignore[union-attr]
            await pilot.press("2")
            assert isinstance(app.screen, CardsScreen)
            script.begun[0].stop()

    @pytest.mark.parametrize("size", [SMALL, MEDIUM])
    async def test_refused_it_says_why_in_the_forms_words_and_may_be_asked_again(self, size: tuple[int, int]) -> None:
        said = "profiles/[m].json exists; --resume goes on with it, --force replaces it, -o FILE writes elsewhere"
        refusal = Refused(reason=said, exit_code=2, there="profiles/[m].json")
        script = Script(partial(scripted_run, [refusal]), partial(scripted_run, [refusal]))
        app = scripted_app(script)
        async with app.run_test(size=size) as pilot:
            await started_run(pilot, script)
            await until(pilot, lambda: state_of(app).stage is Stage.REFUSED)
            text = screen_text(app)
            assert "profiles/[m].json exists; choose" in text
            assert "--resume" not in text
            assert "! if the file exists" in text
            await pilot.press("right", "ctrl+s")
            await until(pilot, lambda: len(script.requests) == 2 and not state_of(app).alive)
            assert script.requests[1] == RunRequest(profile=ProfileRequest(model="m", resume=True))

    @pytest.mark.parametrize("size", [SMALL, MEDIUM])
    async def test_refused_the_keys_go_on_in_the_field_they_were_in(self, size: tuple[int, int]) -> None:
        refusal = Refused(reason="m: no such model", exit_code=2)
        script = Script(partial(scripted_run, [refusal]))
        app = scripted_app(script)
        async with app.run_test(size=size) as pilot:
            await started_run(pilot, script)
            await until(pilot, lambda: state_of(app).stage is Stage.REFUSED)
            assert "m: no such model" in screen_text(app)
            await pilot.press("2", "q")
            assert run_screen(app).query_one("#field-profile-model", Input).value == "m2q"
            assert state_of(app).stage is Stage.IDLE
            assert "no such model" not in screen_text(app), "what was refused is not asked for any more"

    async def test_refused_keys_that_were_out_of_the_form_stay_so(self) -> None:
        refusal = Refused(reason="m: no such model", exit_code=2)
        script = Script(partial(scripted_run, [refusal]))
        app = scripted_app(script)
        async with app.run_test(size=MEDIUM) as pilot:
            await open_form(pilot)
            await pilot.press("escape", "ctrl+s")
            await until(pilot, lambda: state_of(app).stage is Stage.REFUSED)
            await pilot.press("2")
            assert isinstance(app.screen, CardsScreen)

    async def test_a_crash_is_told_with_its_last_words(self) -> None:
        script = Script(partial(scripted_run, [started(), measured(128, 1)], "sys.exit('it broke')"))
        app = scripted_app(script)
        async with app.run_test(size=MEDIUM) as pilot:
            await started_run(pilot, script)
            await until(pilot, lambda: state_of(app).stage is Stage.CRASHED)
            text = text_of(app, "#progress")
            assert "✗ crashed: the run ended with status 1: it broke" in text
            assert "u goes on with it: finished cells are in profiles/tiny-llama.json" in text

    async def test_ten_thousand_lines_leave_the_keys_alive(self) -> None:
        script = Script(partial(scripted_run, [], FLOOD))
        app = scripted_app(script)
        async with app.run_test(size=MEDIUM) as pilot:
            await started_run(pilot, script)
            await pilot.press("2")
            assert isinstance(app.screen, CardsScreen)
            await pilot.press("8")
            await until(pilot, lambda: state_of(app).stage is Stage.FINISHED)
            assert "✓ finished" in text_of(app, "#progress")

    async def test_stopped_it_can_be_gone_on_with(self) -> None:
        script = Script(
            partial(scripted_run, [started(), measured(128, 1), began(128, 2)], SLOW_TO_END),
            partial(scripted_run, [started(cells=(make_cell(128, 1),), done=1), Finished(output="x.json")]),
        )
        app = scripted_app(script)
        async with app.run_test(size=MEDIUM) as pilot:
            await open_form(pilot)
            await pilot.press(*["tab"] * 6, "left", "ctrl+s")
            await until(pilot, lambda: state_of(app).current is not None)
            assert text_of(app, "#run-command") == "$ gpufit profile m --force"
            await pilot.press("u")
            assert len(script.requests) == 1, "a run that goes on is not taken up"
            await pilot.press("x")
            assert "stopping: context 128 x 2" in text_of(app, "#progress")
            await until(pilot, lambda: state_of(app).stage is Stage.STOPPED)
            assert "! stopped" in text_of(app, "#progress")
            await pilot.press("u")
            await until(pilot, lambda: state_of(app).stage is Stage.FINISHED)
            assert script.requests[1] == RunRequest(profile=ProfileRequest(model="m", resume=True))
            assert text_of(app, "#run-command") == "$ gpufit profile m --resume", "what ctrl+s would do from now on"
            assert "1 of 6 cells" in text_of(app, "#progress")

    async def test_only_one_runs_at_a_time(self) -> None:
        script = Script(partial(scripted_run, [LOADING], WAIT))
        app = scripted_app(script)
        async with app.run_test(size=MEDIUM) as pilot:
            await started_run(pilot, script)
            await pilot.press("ctrl+s")
            await pilot.click("#start")
            await pilot.pause()
            assert len(script.requests) == 1
            script.begun[0].stop()

    async def test_where_there_is_no_room_for_both_f_changes_between_form_and_progress(self) -> None:
        script = Script(partial(scripted_run, [LOADING], WAIT))
        app = scripted_app(script)
        async with app.run_test(size=SMALL) as pilot:
            await started_run(pilot, script)
            await until(pilot, lambda: state_of(app).stage is Stage.LOADING)
            assert "loading the model" in text_of(app, "#progress")
            assert "$ gpufit" not in screen_text(app)
            await pilot.press("f")
            assert "$ gpufit profile m" in text_of(app, "#form")
            await pilot.resize_terminal(*MEDIUM)
            await pilot.pause()
            assert "$ gpufit profile m" in text_of(app, "#form")
            assert "loading the model" in text_of(app, "#progress")
            script.begun[0].stop()

    async def test_no_process_is_a_crash_in_words(self) -> None:
        def no_process() -> None:
            raise BlockingIOError(11, "Resource temporarily unavailable")

        script = Script(no_process)  # type: ignore[arg-type]
        app = scripted_app(script)
        async with app.run_test(size=MEDIUM) as pilot:
            await open_form(pilot)
            await pilot.press("ctrl+s")
            await until(pilot, lambda: state_of(app).stage is Stage.CRASHED)
            assert "no process could be started (Resource temporarily unavailable)" in text_of(app, "#progress")


class TestProfile:
    """The file that a run writes is in the session as it grows."""

    async def test_it_grows_in_the_session_and_its_answer_is_new_at_the_end(self, tmp_path: Path) -> None:
        path = tmp_path / "grows.json"
        whole = make_profile()
        model = msgspec.structs.replace(whole.model, name="growing")
        whole = msgspec.structs.replace(whole, model=model)
        begun = msgspec.structs.replace(whole, cells=whole.cells[:1], memory_model=None, complete=False)
        go_on = tmp_path / "go-on"
        then = f"while not os.path.exists({str(go_on)!r}): pass\nsay({_last(path)!r})"
        script = Script(partial(scripted_run, [started(path), measured(128, 1)], then))
        app = scripted_app(script)
        save_profile(begun, path)
        async with app.run_test(size=MEDIUM) as pilot:
            await started_run(pilot, script)
            await until(pilot, lambda: len(app.session.profiles) == 3)
            assert app.session.state.profile == 0, "whoever looks at another profile goes on doing so"
            await pilot.press("o")
            text = screen_text(app)
            assert "growing · transformers" in text
            assert "context 128 + 4 new x 1 at once: fits" in text
            assert app.session.document is not None
            beyond = app.session.state
            await pilot.press("right")
            assert app.session.document is None, "without a memory model its cells alone can answer"
            await pilot.press("8")
            save_profile(whole, path)
            go_on.touch()
            await until(pilot, lambda: app.session.profiles[2].profile.complete)
            text = text_of(app, "#progress")
            for line in summary_lines(whole, path)[:2]:
                assert line in text
            assert len(app.session.profiles) == 3
            await pilot.press("2")
            assert app.session.state.shape.context_tokens == 2 * beyond.shape.context_tokens
            assert app.session.document is not None

    @pytest.mark.parametrize("size", [SMALL, MEDIUM, WIDE])
    async def test_every_screen_says_that_a_run_goes_on_and_what_answers_so_far(
        self, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        app, gate = recorded_app(SECOND_CELL_DONE)
        async with app.run_test(size=size) as pilot:
            await started_recording(pilot)
            for key in "234567":
                await pilot.press(key)
                assert "! a run goes on: only its 1 cell answers so far" in screen_text(app), f"screen {key}"
            await pilot.press("2", "right")
            assert "A run adds cells to it right now, and this page follows." in screen_text(app)
            gate.set()
            await until(pilot, lambda: app.session.profiles[0].profile.complete)
            text = screen_text(app)
            assert "a run" not in text.lower()
            assert "fits" in text, "the page has followed: its memory model answers for twice the context"

    async def test_a_run_that_is_stopped_leaves_an_unfinished_profile_that_says_so(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        app, gate = recorded_app(SECOND_CELL_DONE)
        async with app.run_test(size=SMALL) as pilot:
            await started_recording(pilot)
            await pilot.press("x")
            gate.set()
            await until(pilot, lambda: state_of(app).stage is Stage.STOPPED)
            await pilot.press("2")
            assert "! unfinished: only its 1 cell answers" in screen_text(app)
            assert "run goes on" not in screen_text(app)

    async def test_its_answer_is_never_worked_out_on_the_thread_of_the_screen(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        threads = []

        def work_out(session: Session, *given: Any) -> FitDocument | str:
            threads.append(threading.current_thread())
            return real(session, *given)

        real = Session.work_out
        monkeypatch.setattr(Session, "work_out", work_out)
        app, gate = recorded_app(SECOND_CELL_DONE)
        app.session.verdicts_first = True
        gate.set()
        async with app.run_test(size=MEDIUM) as pilot:
            await started_recording(pilot)
            await pilot.press("2")
            await until(pilot, lambda: bool(app.session.profiles) and app.session.profiles[0].profile.complete)
            assert "fits" in screen_text(app)
        assert threads
        assert threading.main_thread() not in threads

    async def test_what_cannot_be_shown_yet_is_no_profile(self, tmp_path: Path) -> None:
        path = tmp_path / "all-failed.json"
        save_profile(make_profile(cells=(ended(128, 1, OUT_OF_MEMORY).cell,), memory_model=None), path)
        told = [started(path), ended(128, 1, OUT_OF_MEMORY), Refused(reason="no cell could be measured", exit_code=4)]
        app = scripted_app(script := Script(partial(scripted_run, told)))
        async with app.run_test(size=MEDIUM) as pilot:
            await started_run(pilot, script)
            await until(pilot, lambda: state_of(app).stage is Stage.REFUSED)
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert len(app.session.profiles) == 2
            assert "✗ refused: no cell could be measured" in text_of(app, "#progress")
            assert "✗mem" in text_of(app, "#progress")


def test_a_file_is_one_profile_however_it_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    session = make_session(make_loaded(where="profiles/tiny.json"), named("other"))
    session.take(make_loaded(where=str(tmp_path / "profiles" / "tiny.json")))
    assert [one.where for one in session.profiles] == ["profiles/tiny.json", "profiles/other.json"]
    assert session.place_of("./profiles/tiny.json") == 0
    assert session.place_of("profiles/none.json") is None


SECOND_CELL_DONE = [number for number, event in enumerate(said("measured")) if isinstance(event, CellDone)][1]


def recorded_app(held_at: int) -> tuple[GpufitApp, threading.Event]:
    """Without a profile; its run is the recorded one, held before an event until the gate is opened."""
    gate = threading.Event()
    runner = Runner(lambda request: Replay("measured", held_before(held_at, gate)))
    return GpufitApp(Session((), CATALOG, OFFERS), runner), gate


async def started_recording(pilot: Pilot[None]) -> None:
    """Begun, and its first cell in the session."""
    app = pilot.app
    assert isinstance(app, GpufitApp)
    await open_form(pilot)
    await pilot.press("ctrl+s")
    await until(pilot, lambda: bool(app.session.profiles))


def _last(path: Path) -> bytes:
    from gpufit.sources.measure.events import encode

    return encode(Finished(output=str(path)))
