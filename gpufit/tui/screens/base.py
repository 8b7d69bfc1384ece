"""What the screens have in common: the bar of screens, the question above, keys that change it, redrawing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import TYPE_CHECKING, ClassVar, cast

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.events import Resize
from textual.screen import Screen
from textual.widget import Widget

from gpufit.datadir import profiles_dir
from gpufit.tui import state
from gpufit.tui.export import Exportable, of_fit
from gpufit.tui.keys import OF_VIEWS, QUESTION, Key, bindings
from gpufit.tui.messages import SliderMoved, ViewPressed
from gpufit.tui.renderables import header
from gpufit.tui.renderables.pages import empty_page
from gpufit.tui.screens.ask import Asked, AskScreen
from gpufit.tui.session import Session
from gpufit.tui.state import Axis, Event, View
from gpufit.tui.widgets.block import Block
from gpufit.tui.widgets.key_footer import KeyFooter
from gpufit.tui.widgets.scenario import ScenarioBar
from gpufit.tui.widgets.view_bar import ViewBar
from gpufit.tui.widgets.words import Words

if TYPE_CHECKING:
    from gpufit.tui.app import GpufitApp


STALE_OPACITY = 0.45
"""Of what is drawn for a question that is not the one asked any more."""


class SessionScreen(Screen[None]):
    """A screen over the session's state: subclasses compose their part, and draw it whenever the state has changed."""

    VIEW: ClassVar[View]
    """Which of the screens this is."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def compose(self) -> ComposeResult:
        """The bar of screens, the screen's own part, and the footer."""
        yield ViewBar(self.gpufit_app.views, self.VIEW)
        yield from self.compose_view()
        yield KeyFooter()

    @abstractmethod
    def compose_view(self) -> Iterable[Widget]:
        """The widgets between bar and footer."""

    @abstractmethod
    def draw(self) -> None:
        """Hand the session's state and answer to the widgets."""

    @property
    def gpufit_app(self) -> GpufitApp:
        """The app, by its own type."""
        return cast("GpufitApp", self.app)

    def on_screen_resume(self) -> None:
        """The state may have changed on another screen."""
        self.draw()

    def on_resize(self, event: Resize) -> None:
        """Lay out again for the new width."""
        self.call_after_refresh(self.draw)

    def on_view_pressed(self, message: ViewPressed) -> None:
        """Show the screen that was clicked."""
        self.gpufit_app.look_at(message.view)

    def go(self, to: state.ViewState) -> None:
        """Make `to` the state, answer it and draw the answer."""
        self.session.go(to)
        self.draw()


class QuestionScreen(SessionScreen):
    """A screen that shows an answer: the question stands above, and its keys change it."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(QUESTION)]
    _named_for = 0
    """How many profiles the footer's keys were named for."""
    SEARCHES: ClassVar[bool] = True
    """Whether it shows more than verdicts: the most that would fit, plans, totals."""

    def compose(self) -> ComposeResult:
        """As every screen, with the question above."""
        yield ViewBar(self.gpufit_app.views, self.VIEW)
        yield Block(id="header")
        yield Words(header.problem_lines(self.session.problems), id="problems")
        yield ScenarioBar(id="scenario")
        yield from self.compose_view()
        yield Words(id="instead")
        yield KeyFooter()

    def action_press(self, event: str) -> None:
        """Change the state as a key asks."""
        self.go(state.press(self.session.state, Event(event), page=self.page))

    @property
    def page(self) -> int:
        """Cards that page up and page down jump over."""
        return 10

    def action_ask(self) -> None:
        """Type the question."""
        if self.session.profiles:
            self.app.push_screen(AskScreen(self.session.state.shape), self._asked)

    def _asked(self, found: Asked | None) -> None:
        if found is not None:
            self.go(state.with_shape(self.session.state, *found))

    def on_slider_moved(self, message: SliderMoved) -> None:
        """Change the question as the mouse asks."""
        change = state.with_context if message.axis is Axis.CONTEXT else state.with_concurrency
        self.go(change(self.session.state, message.value))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the key for the next profile while there is only one, and what needs an answer without any."""
        if not self.session.profiles and action in _actions((*QUESTION, *OF_VIEWS[self.VIEW])):
            return False
        return not (action == "press" and parameters == (Event.NEXT_PROFILE,) and len(self.session.profiles) < 2)

    def _name_keys(self) -> None:
        """In the footer, once there are more or fewer profiles to ask."""
        if len(self.session.profiles) != self._named_for:
            self._named_for = len(self.session.profiles)
            self.refresh_bindings()

    def draw(self) -> None:
        """The question; then the answer, or why there is none."""
        session = self.session
        grows = self.gpufit_app.still_grows
        self._name_keys()
        self.query_one("#header", Block).show(header.header(session.loaded, session.state, session.document, grows))
        # Without any profile the page below says what could not be read.
        self.query_one("#problems").display = bool(session.problems and session.profiles)
        self.query_one(ScenarioBar).show(session.state)
        instead = self.instead()
        self.set_class(instead is not None, "-instead")
        if instead is None:
            self.draw_answer()
        else:
            self.query_one("#instead", Words).update(instead)
        if self.SEARCHES and not session.settled:
            # What is known at once is on the terminal before anything else is worked out.
            self.call_after_refresh(self._go_on)

    def _go_on(self) -> None:
        """The rest of the answer: worked out, unless somebody could not wait for it."""
        if self.session.settled:
            self.draw()
        else:
            self.gpufit_app.work_out()

    def fade(self, stale: bool, *selectors: str) -> None:
        """Show what is still of the question before as such, until the answer is there."""
        for selector in selectors:
            self.query_one(selector).styles.opacity = STALE_OPACITY if stale else 1.0

    def instead(self) -> Text | None:
        """What stands in place of the answer; None where there is one."""
        session = self.session
        if not session.profiles:
            return empty_page(f"{profiles_dir()}/", session.problems)
        if session.document is None:
            return header.no_answer(session.why_not, len(session.profiles) > 1, self.gpufit_app.still_grows)
        return None

    def exportable(self) -> Exportable | None:
        """The answer for the cards that are listed."""
        document = self.session.listed()
        return None if document is None else of_fit(document)

    @abstractmethod
    def draw_answer(self) -> None:
        """Hand the answer to the widgets; there is one."""


def _actions(keys: Iterable[Key]) -> frozenset[str]:
    """What keys ask for, without what it is about."""
    return frozenset(key.action.partition("(")[0] for key in keys)
