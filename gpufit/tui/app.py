"""The application: one session, and a screen for each way to look at it."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual import work
from textual.app import App, SystemCommand
from textual.binding import BindingType
from textual.filter import LineFilter
from textual.screen import ModalScreen, Screen
from textual.theme import Theme
from textual.worker import get_current_worker

from gpufit.tui import state
from gpufit.tui.export import Exports, with_picture
from gpufit.tui.keys import EVERYWHERE, OF_VIEWS, QUESTION, Key, bindings
from gpufit.tui.light import LightColours
from gpufit.tui.messages import AnswerFound
from gpufit.tui.paste import keep_pastes_text
from gpufit.tui.screens.base import QuestionScreen, SessionScreen
from gpufit.tui.screens.export import ExportScreen
from gpufit.tui.screens.help import HelpScreen
from gpufit.tui.screens.quit import Quit, QuitScreen
from gpufit.tui.session import Question, Session
from gpufit.tui.state import View

if TYPE_CHECKING:
    from gpufit.tui.runner import Runner

DARK = Theme(
    name="gpufit-dark",
    primary="#5b9bf8",
    secondary="#c583e8",
    accent="#8fb8ff",
    foreground="#d5dae3",
    background="#0f131a",
    surface="#0f131a",
    panel="#1a212d",
    dark=True,
)
LIGHT = Theme(
    name="gpufit-light",
    primary="#2a66c4",
    secondary="#8238ad",
    accent="#1d4ea8",
    foreground="#1f2733",
    background="#fbfcfe",
    surface="#fbfcfe",
    panel="#e9edf4",
    dark=False,
)

LIGHT_COLOURS = LightColours()

SCREENS: Mapping[View, str] = {
    View.PROFILES: "profiles:ProfilesScreen",
    View.CARDS: "cards:CardsScreen",
    View.CURVE: "curve:CurveScreen",
    View.GROWTH: "growth:GrowthScreen",
    View.PRECISION: "precision:PrecisionScreen",
    View.TIME: "time:TimeScreen",
    View.ORDER: "order:OrderScreen",
    View.RUN: "run:RunScreen",
}
"""Module in `tui.screens` and class of each screen, imported when it is first looked at: some bring libraries."""


def _hint(key: Key) -> str:
    shown = key.sign or key.shown
    return f"key{'s' if ',' in shown else ''} {shown}"


def keys_of(screen: Screen[object]) -> tuple[Key, ...]:
    """The keys that a screen has of its own and as one that shows an answer."""
    own = OF_VIEWS.get(screen.VIEW, ()) if isinstance(screen, SessionScreen) else getattr(screen, "KEYS", ())
    return (*own, *(QUESTION if isinstance(screen, QuestionScreen) else ()))


class _SomethingElseAskedError(Exception):
    """An answer is not waited for any more."""


class GpufitApp(App[None]):
    """Does no reading of its own: the session is loaded before it starts."""

    TITLE = "gpufit"
    CSS_PATH = Path(__file__).with_name("gpufit.tcss")
    COMMAND_PALETTE_BINDING = "ctrl+p"
    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [  # type: ignore[misc]
        (0, "-narrow"),
        (118, "-medium"),
        (150, "-wide"),
    ]
    VERTICAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [(0, "-short"), (44, "-tall")]  # type: ignore[misc]
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(EVERYWHERE)]

    def __init__(self, session: Session, runner: Runner | None = None) -> None:
        super().__init__()
        keep_pastes_text(self.driver_class)
        self.session = session
        self.views = tuple(view for view in View if view in SCREENS)
        """The screens, in the order of their keys."""
        self._working = False
        """Whether an answer is being worked out."""
        self.runner = runner
        """Who holds the run; None until the screen for runs is opened, unless one was given."""
        self._quits_with_the_run = False

    def on_mount(self) -> None:
        """Open the screen that the state looks at."""
        for theme in (DARK, LIGHT):
            self.register_theme(theme)
        kept = self.session.theme
        self.theme = kept if kept in self.available_themes else DARK.name
        for view in SCREENS:
            self.add_mode(view, lambda view=view: self._open(view))  # type: ignore[misc]
        view = self.session.state.view
        self.look_at(view if view in SCREENS else View.CARDS)

    def watch_theme(self, theme: str) -> None:
        """What is chosen is kept."""
        self.session.theme = theme

    def get_line_filters(self) -> Sequence[LineFilter]:
        """On a light screen, its own colours in place of those that renderables name."""
        filters = super().get_line_filters()
        return filters if self.current_theme.dark else [LIGHT_COLOURS, *filters]

    def action_light_or_dark(self) -> None:
        """The other one of gpufit's own two."""
        self.theme = LIGHT.name if self.current_theme.dark else DARK.name

    def _open(self, view: View) -> SessionScreen:
        module, _, name = SCREENS[view].partition(":")
        screen: SessionScreen = getattr(importlib.import_module(f"gpufit.tui.screens.{module}"), name)(self.session)
        return screen

    def look_at(self, view: View) -> None:
        """Show another screen over the same state."""
        if view in SCREENS:
            self.session.go(state.look_at(self.session.state, view))
            self.switch_mode(view)

    def action_look_at(self, view: str) -> None:
        """The same, by a key."""
        self.look_at(View(view))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """Every key that works on a screen, by its words, and the themes."""
        for one in (*keys_of(screen), *EVERYWHERE):
            name = one.command
            if name and one.action != "command_palette":
                yield SystemCommand(f"{name[0].upper()}{name[1:]}", _hint(one), partial(self._do, one))
        yield SystemCommand("Theme", "another of Textual's themes", self.action_change_theme)

    async def _do(self, key: Key) -> None:
        screens = hasattr(self.screen, f"action_{key.action.partition('(')[0]}")
        await self.run_action(key.action, default_namespace=self.screen if screens else self)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A key for a screen only works where there is one, and none but those that close under an open dialog."""
        if action in ("look_at", "help", "export") and isinstance(self.screen, ModalScreen):
            return False
        return action != "look_at" or View(str(parameters[0])) in SCREENS

    async def action_quit(self) -> None:
        """Close at once, or ask where a run goes on."""
        if self.runner is None or not self.runner.state.alive:
            self.exit()
        elif not isinstance(self.screen, QuitScreen) and not self._quits_with_the_run:
            self.push_screen(QuitScreen(self.runner.state.stage), self._answered)

    def _answered(self, answer: Quit | None) -> None:
        if answer is None or self.runner is None:
            return
        self.look_at(View.RUN)
        if answer is Quit.STOP:
            self._quits_with_the_run = True
            self.runner.stop()
            self.run_moved()

    def run_moved(self) -> None:
        """The run is another way on: close where its end was waited for, and show it where it is looked at."""
        if self._quits_with_the_run and self.runner is not None and not self.runner.state.alive:
            self.exit()
        elif isinstance(self._shown, SessionScreen) and self._shown.VIEW is View.RUN:
            self.draw_again()

    def work_out(self) -> None:
        """Have the rest of the answer worked out beside the screen, where it is wanted; one answer at a time."""
        question = self.session.wanted
        if question is not None and not self._working:
            self._working = True
            self._work_out(question)

    @work(thread=True, group="answer")
    def _work_out(self, question: Question) -> None:
        worker = get_current_worker()

        def between() -> None:
            if worker.is_cancelled or not self.session.wants(question):
                raise _SomethingElseAskedError

        answer = None
        with contextlib.suppress(_SomethingElseAskedError):
            answer = self.session.work_out(question, between)
        self.post_message(AnswerFound(question, answer))

    def on_answer_found(self, message: AnswerFound) -> None:
        """Draw the whole answer; where something else was asked meanwhile, go on with that."""
        self._working = False
        if message.answer is not None:
            self.session.take_answer(message.question, message.answer)
            if self.session.settled:
                self.draw_again()
        self.work_out()

    @property
    def still_grows(self) -> bool:
        """Whether a run that goes on writes the profile on screen."""
        run, session = None if self.runner is None else self.runner.state, self.session
        if run is None or not (run.alive and run.output and session.profiles):
            return False
        return session.place_of(run.output) == session.state.profile

    def draw_again(self) -> None:
        """What is on show may have changed; a screen that is only being opened draws itself when it is there, and one
        that is being closed has lost some of its parts."""
        if self.is_running and isinstance(self._shown, SessionScreen) and self._shown.is_mounted:
            self._shown.draw()

    @property
    def _shown(self) -> Screen[object] | None:
        """The screen on show; None once all are closed, when a run or an answer may still tell something."""
        return self.screen_stack[-1] if self.screen_stack else None

    def action_help(self) -> None:
        """Show the help over any screen."""
        if not isinstance(self.screen, ModalScreen):
            self.push_screen(HelpScreen(self.views))

    def action_export(self) -> None:
        """Write what is on show."""
        if isinstance(self.screen, ModalScreen):
            return
        if isinstance(self.screen, QuestionScreen) and self.screen.SEARCHES and not self.session.settled:
            # The picture is of the same answer as the files, and of no question before.
            self.session.settle()
            self.draw_again()
        made = self.screen.exportable() if isinstance(self.screen, Exports) else None
        picture = self.export_screenshot(title="gpufit")
        self.push_screen(ExportScreen(with_picture(made, self.session.state.view, picture)), self._exported)

    def _exported(self, done: str | None) -> None:
        if done is not None:
            self.notify(done, markup=False)
