"""Two profiles side by side, over the screen of profiles: at the scenario both ran, and at others by the same keys."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.screen import Screen

from gpufit import flows
from gpufit.errors import UsageError
from gpufit.report.compare_document import CompareDocument
from gpufit.tui import state
from gpufit.tui.export import Exportable, of_compare, of_pair
from gpufit.tui.keys import COMPARE, bindings
from gpufit.tui.loaded import LoadedProfile, UnfinishedProfile
from gpufit.tui.messages import SliderMoved
from gpufit.tui.renderables import compare
from gpufit.tui.screens.ask import Asked, AskScreen
from gpufit.tui.state import Axis, Event, ViewState
from gpufit.tui.widgets.block import Block
from gpufit.tui.widgets.key_footer import KeyFooter
from gpufit.tui.widgets.scenario import ScenarioBar
from gpufit.tui.widgets.scroll import Scroll
from gpufit.tui.widgets.words import Words


class CompareScreen(Screen[None]):
    """A and B, until it is closed. The scenario is its own: what the other screens ask stays as it was."""

    AUTO_FOCUS = "Scroll"
    KEYS = COMPARE
    """Named as commands, too."""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(COMPARE)]
    DEFAULT_CSS = """
    CompareScreen #sides { height: auto; max-height: 8; padding: 0 1; background: $panel; }
    CompareScreen Scroll { height: 1fr; padding: 1 1 0 1; }
    """

    def __init__(self, a: LoadedProfile | UnfinishedProfile, b: LoadedProfile | UnfinishedProfile) -> None:
        super().__init__()
        self._pair = (a, b)
        self.document: CompareDocument | None = None
        """None while one of the two cannot answer."""
        self._why_not = ""
        self._state = ViewState()
        self._begin()

    def _begin(self) -> None:
        """At the scenario that both can answer for."""
        a, b = self._pair
        try:
            shape = flows.common_shape(a.profile, b.profile)
        except UsageError as error:
            self._why_not = _about(self._pair, error)
            return
        longest = min(state.start_of(one.profile, shape).longest_context for one in self._pair)
        self._state = state.initial_state((state.Start(shape, longest),))
        self._ask()

    def _ask(self) -> None:
        a, b = self._pair
        try:
            self.document = flows.compare(a.profile, b.profile, (a.where, b.where), self._state.shape)
        except UsageError as error:
            self.document, self._why_not = None, str(error)

    def compose(self) -> ComposeResult:
        """Which two, the scenario, and what the comparison comes to."""
        yield Block(id="sides")
        yield ScenarioBar(id="scenario")
        with Scroll(id="comparison"):
            yield Words(id="answer")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Draw it once there is room."""
        self.draw()

    def draw(self) -> None:
        """The comparison, or why there is none."""
        document, answer = self.document, self.query_one("#answer", Words)
        scenario = self.query_one(ScenarioBar)
        scenario.display = bool(self._state.starts)
        scenario.show(self._state)
        a, b = (one.where for one in self._pair)
        self.query_one("#sides", Block).show(f"A = {a}\nB = {b}" if document is None else compare.sides(document))
        answer.update(compare.no_comparison(self._why_not) if document is None else compare.comparison(document))

    def exportable(self) -> Exportable | None:
        """The comparison; without an answer the name alone, for its picture."""
        if self.document is not None:
            return of_compare(self.document)
        a, b = (one.profile.model.name for one in self._pair)
        return of_pair(a, b)

    def action_press(self, event: str) -> None:
        """Another scenario."""
        if self._state.starts:
            self._go(state.press(self._state, Event(event)))

    def action_ask(self) -> None:
        """Type the scenario."""
        if self._state.starts:
            self.app.push_screen(AskScreen(self._state.shape), self._asked)

    def _asked(self, found: Asked | None) -> None:
        if found is not None:
            self._go(state.with_shape(self._state, *found))

    def on_slider_moved(self, message: SliderMoved) -> None:
        """The same, by the mouse."""
        change = state.with_context if message.axis is Axis.CONTEXT else state.with_concurrency
        self._go(change(self._state, message.value))

    def action_swap(self) -> None:
        """B first."""
        a, b = self._pair
        self._pair = (b, a)
        if self._state.starts:
            self._go(self._state)
        else:
            self.draw()

    def _go(self, to: ViewState) -> None:
        self._state = to
        self._ask()
        self.draw()


def _about(pair: tuple[LoadedProfile | UnfinishedProfile, ...], error: UsageError) -> str:
    """The error with the file that it is about, where that is known."""
    bare = [one.where for one in pair if isinstance(one, UnfinishedProfile)]
    return f"{' and '.join(bare)}: {error}" if bare else str(error)
