"""Verdicts answer a key at once; the most that would fit, plans and totals follow from beside the screen."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from builders import make_layout, make_profile
from model_files import REPOSITORY
from tui_builders import CATALOG, OFFERS, cards_screen, make_loaded, screen_text

from gpufit import flows
from gpufit.advice.verdict import Verdict
from gpufit.memory.terms import Shape
from gpufit.profile.store import load_profile
from gpufit.report.document import FitDocument
from gpufit.tui import state
from gpufit.tui.app import GpufitApp
from gpufit.tui.messages import AnswerFound
from gpufit.tui.renderables.palette import WAIT
from gpufit.tui.screens.export import ExportScreen
from gpufit.tui.session import Question, Session
from gpufit.tui.state import Event, View, press

REAL = sorted((REPOSITORY / "tests" / "facts" / "profiles").glob("*.json")) + sorted(
    path
    for path in (REPOSITORY / "tests" / "facts" / "profiles" / "architectures").glob("*.json")
    if not path.name.endswith(".unseen.json")
)
SEARCHED = ("max_concurrency", "max_context_tokens", "max_context_is_position_limit")
"""What no verdict needs."""
TINY = make_profile(layout=make_layout())
MUCH = Shape(512, 8, 2000)
"""At once more than small cards hold, and less than large ones do."""


def two_steps() -> Session:
    return Session((make_loaded(TINY),), CATALOG, OFFERS, verdicts_first=True)


def whole(shape: Shape) -> FitDocument:
    loaded = make_loaded(TINY)
    return flows.fit(TINY, loaded.where, shape, CATALOG, OFFERS)


@pytest.mark.parametrize("path", REAL, ids=lambda path: path.name)
@pytest.mark.parametrize("times", [1, 64, 4096])
def test_what_is_known_at_once_is_what_the_whole_answer_says(path: Path, times: int) -> None:
    profile = load_profile(path)
    start = flows.default_shape(profile)
    shape = start if profile.memory_model is None else replace(start, concurrency=start.concurrency * times)
    first = flows.verdicts(profile, str(path), shape, CATALOG, OFFERS)
    answer = flows.fit(profile, str(path), shape, CATALOG, OFFERS)
    assert [row.card for row in first.cards] == [row.card for row in answer.cards]
    for early, row in zip(first.cards, answer.cards, strict=True):
        if row.verdict is Verdict.FITS:
            known = msgspec.structs.replace(row, **{key: getattr(early, key) for key in SEARCHED})
            assert msgspec.structs.replace(early, idle_hosts_sequences=row.idle_hosts_sequences) == known
            continue
        figures = (
            "verdict",
            "need_bytes",
            "need_lower_bytes",
            "need_upper_bytes",
            "headroom_bytes",
            "binding",
            "parts",
        )
        assert [getattr(early, key) for key in figures] == [getattr(row, key) for key in figures]
        assert (early.cards_needed, early.changes, early.arrangements) == (None, (), ())
    assert first.phases == answer.phases


class TestSession:
    def test_verdicts_come_first_and_the_rest_is_wanted(self) -> None:
        session = two_steps()
        session.go(state.with_shape(session.state, 512, 2000, 8))
        assert not session.settled
        assert session.document is not None
        answer = whole(MUCH)
        assert [row.verdict for row in session.rows] == [row.verdict for row in answer.cards]
        assert {Verdict.FITS, Verdict.DOES_NOT_FIT} <= {row.verdict for row in session.rows}
        question = session.wanted
        assert question is not None
        session.take_answer(question, session.work_out(question))
        assert session.settled
        assert session.document == answer

    def test_a_question_that_was_answered_is_not_worked_out_again(self) -> None:
        session = two_steps()
        session.settle()
        first = session.document
        session.go(press(session.state, Event.MORE))
        assert not session.settled
        session.go(press(session.state, Event.FEWER))
        assert session.settled
        assert session.document is first

    def test_an_answer_that_comes_too_late_is_kept_and_not_shown(self) -> None:
        session = two_steps()
        late = session.wanted
        assert late is not None
        session.go(press(session.state, Event.MORE))
        shown = session.document
        session.take_answer(late, session.work_out(late))
        assert session.document is shown
        assert not session.settled
        session.go(press(session.state, Event.FEWER))
        assert session.settled

    def test_moving_over_the_list_asks_nothing_again(self) -> None:
        session = two_steps()
        shown, wanted = session.document, session.wanted
        session.go(press(session.state, Event.DOWN))
        assert session.document is shown
        assert session.wanted is wanted

    def test_the_selected_card_stays_selected(self) -> None:
        session = two_steps()
        session.go(state.select(session.state, 7))
        card = session.state.selected_card
        session.settle()
        assert session.state.selected_card == card

    def test_what_cannot_be_answered_says_so_at_once(self) -> None:
        session = two_steps()
        session.go(state.with_shape(session.state, 10**7, 1, 8))
        assert session.settled
        assert session.document is None
        assert "position limit" in session.why_not

    def test_what_is_exported_is_the_whole_answer(self) -> None:
        session = two_steps()
        session.go(state.with_shape(session.state, 512, 2000, 8))
        assert session.listed() == whole(MUCH)

    def test_giving_up_between_two_cards(self) -> None:
        class EnoughError(Exception):
            pass

        session, calls = two_steps(), []

        def between() -> None:
            calls.append(1)
            if len(calls) == 3:
                raise EnoughError

        question = session.wanted
        assert question is not None
        with pytest.raises(EnoughError):
            session.work_out(question, between)
        assert not session.settled


@pytest.fixture
def held_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[Question]]]:
    """Answers wait until this is called; it says which questions they were to."""
    free, asked, work_out = threading.Event(), [], Session.work_out

    def wait(session: Session, question: Question, *rest: Any) -> FitDocument | str:
        asked.append(question)
        free.wait(60)
        return work_out(session, question, *rest)

    def release() -> list[Question]:
        free.set()
        return asked

    monkeypatch.setattr(Session, "work_out", wait)
    yield release
    free.set()


async def settled(pilot: Any) -> None:
    while not pilot.app.session.settled:
        await pilot.pause(0.01)
    await pilot.pause()


class TestScreen:
    async def test_cards_show_verdicts_while_plans_are_worked_out(
        self, held_back: Callable[[], list[Question]]
    ) -> None:
        app = GpufitApp(two_steps())
        async with app.run_test(size=(160, 48)) as pilot:
            await pilot.press("g", "ctrl+a", "ctrl+k", *"512x2000+8", "enter")
            await pilot.pause()
            answer = whole(MUCH)
            fits = sum(row.verdict is Verdict.FITS for row in answer.cards)
            assert f"512 + 8 new x 2000 at once: fits {fits} of {len(answer.cards)} cards" in screen_text(app)
            for place, row in enumerate(answer.cards):
                if row.verdict is Verdict.DOES_NOT_FIT and row.cards_needed is not None:
                    app.screen.go(state.select(app.session.state, place))  # type: ignore[attr-defined]
                    break
            await pilot.pause()
            assert f"max concurrency {WAIT} " in screen_text(app)
            assert f"cards {WAIT} " in screen_text(app)
            held_back()
            await settled(pilot)
            text = screen_text(app)
            assert WAIT not in text.replace("…and", "")
            assert f"max concurrency {row.max_concurrency:,} " in text
            assert app.session.document == answer

    async def test_of_many_keys_the_last_is_worked_out(self, held_back: Callable[[], list[Question]]) -> None:
        app = GpufitApp(two_steps())
        async with app.run_test(size=(160, 48)) as pilot:
            await pilot.pause(0.1)
            await pilot.press("plus", "plus", "plus", "left", "plus")
            questions = held_back()
            assert len(questions) == 1, "one at a time"
            await settled(pilot)
            assert len(questions) == 2, "and then what is on show"
            shown = app.session.document
            assert shown is not None
            assert shown == whole(app.session.state.shape)
            assert cards_screen(app).session.settled

    @pytest.mark.parametrize(
        ("key", "meanwhile", "then"),
        [("7", "working out every way", "ways to serve it"), ("3", "working out how far", "against tokens of context")],
    )
    async def test_a_list_or_a_curve_of_the_question_before_says_so(
        self, key: str, meanwhile: str, then: str, held_back: Callable[[], list[Question]]
    ) -> None:
        app = GpufitApp(two_steps())
        async with app.run_test(size=(160, 48)) as pilot:
            await pilot.press(key, "plus")
            await pilot.pause(0.1)
            assert meanwhile in screen_text(app)
            held_back()
            await settled(pilot)
            text = screen_text(app)
            assert then in text
            assert meanwhile not in text

    @pytest.mark.parametrize("key", ["down", "t", "s", "enter"])
    async def test_a_key_on_the_orders_works_on_those_of_the_question(
        self, key: str, held_back: Callable[[], list[Question]]
    ) -> None:
        """Of the two questions the first fits cards that the second does not, and none but those that fit is listed."""
        app = GpufitApp(two_steps())
        async with app.run_test(size=(160, 48)) as pilot:
            await pilot.press("2", "f", "7")
            held_back()
            await settled(pilot)
            await pilot.press("home", "g", "ctrl+a", "ctrl+k", *"512x2000+8", "enter", key)
            await settled(pilot)
            assert app.session.document == whole(MUCH)
            assert app.session.state.selected_card in {
                row.card for row in whole(MUCH).cards if row.verdict is Verdict.FITS
            }

    async def test_an_export_has_the_whole_answer_and_so_has_the_screen_behind_it(
        self, held_back: Callable[[], list[Question]]
    ) -> None:
        app = GpufitApp(two_steps())
        async with app.run_test(size=(160, 48)) as pilot:
            await pilot.press("plus")
            await pilot.pause(0.1)
            assert f"max concurrency {WAIT} " in screen_text(app)
            threading.Timer(0.2, held_back).start()
            await pilot.press("e")
            await pilot.pause()
            assert app.session.settled
            await pilot.press("escape")
            await app.workers.wait_for_complete()
            await pilot.pause()
            assert f"max concurrency {WAIT} " not in screen_text(app)

    async def test_a_picture_is_of_the_whole_answer_too(self, held_back: Callable[[], list[Question]]) -> None:
        app = GpufitApp(two_steps())
        async with app.run_test(size=(160, 48)) as pilot:
            await pilot.press("7", "plus")
            await pilot.pause(0.1)
            assert "working out every way" in screen_text(app)
            threading.Timer(0.2, held_back).start()
            await pilot.press("e")
            await pilot.pause()
            assert isinstance(app.screen, ExportScreen)
            picture = app.screen._made.render(".svg").decode().replace("&#160;", " ")
            assert "ways to serve it" in picture
            assert "working out every way" not in picture

    async def test_growth_and_precision_need_no_search(self, held_back: Callable[[], list[Question]]) -> None:
        app = GpufitApp(two_steps())
        app.session.go(state.look_at(app.session.state, View.GROWTH))
        async with app.run_test(size=(160, 48)) as pilot:
            await pilot.press("4", "plus", "5", "plus", "6")
            await pilot.pause(0.2)
            later = len(held_back())
            assert later <= 1, "none but that of the screen that the interface opens with"

    async def test_it_quits_while_an_answer_is_worked_out(self, held_back: Callable[[], list[Question]]) -> None:
        app = GpufitApp(two_steps())
        async with app.run_test(size=(160, 48)) as pilot:
            await pilot.press("plus")
            await pilot.pause(0.1)
            held_back()
            await pilot.press("q")
        assert app.return_code == 0

    async def test_what_comes_after_the_last_screen_is_closed_is_let_go(self) -> None:
        app = GpufitApp(two_steps())
        question = app.session.wanted
        assert question is not None
        async with app.run_test(size=(160, 48)) as pilot:
            await pilot.press("8")
        assert app.screen_stack == []
        app.on_answer_found(AnswerFound(question, app.session.work_out(question)))
        app.run_moved()
        assert app.session.settled
