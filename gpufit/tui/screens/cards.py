"""The cards screen: the question above, every card's answer in the middle, the selected card's details below."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.events import Resize
from textual.screen import Screen
from textual.widgets import Footer, Static

from gpufit import flows
from gpufit.catalog.offers import Offers
from gpufit.catalog.record import Catalog
from gpufit.errors import UsageError
from gpufit.memory.terms import Shape
from gpufit.report.document import CardRow, FitDocument
from gpufit.tui import state
from gpufit.tui.loaded import LoadedProfile
from gpufit.tui.messages import CardPressed
from gpufit.tui.renderables import header
from gpufit.tui.renderables.bar import legend
from gpufit.tui.renderables.cards import heading
from gpufit.tui.screens.help import HelpScreen
from gpufit.tui.state import Event
from gpufit.tui.widgets.block import Block
from gpufit.tui.widgets.card_list import CardList
from gpufit.tui.widgets.details import Details

_CONTEXT = Binding.Group("context", compact=True)
_AT_ONCE = Binding.Group("at once", compact=True)


def _key(keys: str, event: Event, label: str = "", shown_as: str = "", group: Binding.Group | None = None) -> Binding:
    """A key that presses an event on the state; it stands in the footer when it has a label."""
    return Binding(
        keys, f"press('{event}')", label or str(event), show=bool(label), key_display=shown_as or None, group=group
    )


class CardsScreen(Screen[None]):
    """Holds the state and the document, and hands both to the widgets after every change."""

    AUTO_FOCUS = "CardList"
    BINDINGS: ClassVar[list[BindingType]] = [
        _key("left", Event.SHORTER, "halve the context", "←", _CONTEXT),
        _key("right", Event.LONGER, "double the context", "→", _CONTEXT),
        _key("minus", Event.FEWER, "halve the sequences at once", "-", _AT_ONCE),
        _key("plus,equals_sign", Event.MORE, "double the sequences at once", "+", _AT_ONCE),
        _key("up,k", Event.UP),
        _key("down,j", Event.DOWN),
        _key("pageup", Event.PAGE_UP),
        _key("pagedown", Event.PAGE_DOWN),
        _key("home", Event.FIRST),
        _key("end", Event.LAST),
        _key("s", Event.SORT, "sort"),
        _key("f", Event.FILTER, "filter"),
        _key("p", Event.NEXT_PROFILE, "profile"),
        _key("r", Event.RESET, "reset"),
        Binding("d", "toggle_details", "details"),
        Binding("escape", "close_details", show=False),
        Binding("question_mark", "help", "help", key_display="?"),
    ]

    def __init__(
        self, profiles: Sequence[LoadedProfile], catalog: Catalog, offers: Offers, problems: Sequence[str]
    ) -> None:
        super().__init__()
        self._profiles = tuple(profiles)
        self._catalog = catalog
        self._offers = offers
        self._problems = tuple(problems)
        self._answers: dict[tuple[int, Shape], FitDocument | str] = {}
        self.state = state.initial_state([state.start_of(one.profile, one.start) for one in profiles])
        self.document: FitDocument | None = None
        """The answer to the state's question; None when the profile cannot answer it."""
        self.rows: tuple[CardRow, ...] = ()
        """The rows of the document that are listed, in their order on screen."""

    def compose(self) -> ComposeResult:
        """Top to bottom, as they stand on screen."""
        yield Block(id="header")
        yield Static(header.problem_lines(self._problems), id="problems")
        yield Static(id="heading")
        yield CardList(id="cards")
        yield Static(id="instead")
        yield Static(id="legend")
        yield Details(id="details")
        yield Footer(compact=True)

    def on_mount(self) -> None:
        """Answer the first question, with the smallest card that fits selected: that is what people look for."""
        self.query_one("#problems").display = bool(self._problems)
        self.go(self.state)
        self.go(state.select(self.state, state.first_that_fits(self.rows)))

    def on_resize(self, event: Resize) -> None:
        """Lay the columns out again for the new width."""
        self.call_after_refresh(self._draw)

    def action_press(self, event: str) -> None:
        """Change the state as a key asks."""
        self.go(state.press(self.state, Event(event), page=self.query_one(CardList).page))

    def on_card_pressed(self, message: CardPressed) -> None:
        """Select the card that was clicked."""
        self.go(state.select(self.state, message.index))

    def action_help(self) -> None:
        """Show the help over this screen."""
        self.app.push_screen(HelpScreen())

    def action_toggle_details(self) -> None:
        """Give the details the list's place, or give it back."""
        self._enlarge_details(not self.has_class("-enlarged"))

    def action_close_details(self) -> None:
        """Back to the list, from anywhere in the details."""
        self._enlarge_details(False)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the key for the next profile while there is only one."""
        return not (action == "press" and parameters == (Event.NEXT_PROFILE,) and len(self._profiles) == 1)

    def go(self, to: state.ViewState) -> None:
        """Make `to` the state: ask what it asks, and draw the answer."""
        answer = self._answer(to)
        self.document = None if isinstance(answer, str) else answer
        self.rows = () if isinstance(answer, str) else state.listed_rows(answer.cards, to.sort, to.filter)
        self.state = to if self.document is None else state.show(to, [row.card for row in self.rows])
        if isinstance(answer, str):
            self.query_one("#instead", Static).update(header.no_answer(answer, len(self._profiles) > 1))
        elif not self.rows:
            self.query_one("#instead", Static).update(header.nothing_listed(self.state))
        self._draw()

    def _answer(self, to: state.ViewState) -> FitDocument | str:
        """The document for a state's question, or in words why there is none. Asked once for each question."""
        key = (to.profile, to.shape)
        if key not in self._answers:
            loaded = self._profiles[to.profile]
            try:
                self._answers[key] = flows.fit(loaded.profile, loaded.where, to.shape, self._catalog, self._offers)
            except UsageError as error:
                self._answers[key] = str(error)
        return self._answers[key]

    def _draw(self) -> None:
        """Hand state and answer to the widgets."""
        profile = self._profiles[self.state.profile].profile
        cards, details = self.query_one(CardList), self.query_one(Details)
        self.query_one("#header", Block).show(header.header(profile, self.state, self.document))
        self.query_one("#legend", Static).update(legend(self.size.width - 2), layout=False)
        self.set_class(not self.rows, "-no-rows")
        if self.document is None or not self.rows:
            details.clear()
            return
        cards.show(self.document, self.rows, self.state.selected)
        self.query_one("#heading", Static).update(heading(cards.columns), layout=False)
        details.show(self.document, self.rows[self.state.selected])

    def _enlarge_details(self, large: bool) -> None:
        self.set_class(large, "-enlarged")
        self.query_one("#details" if large else "#cards").focus()
