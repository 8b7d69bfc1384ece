"""The cards screen: the question above, every card's answer in the middle, the selected card's details below."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.widget import Widget
from textual.widgets import Input

from gpufit.tui import state
from gpufit.tui.keys import CARDS, bindings
from gpufit.tui.listing import Listing, next_form, next_memory, next_vendor
from gpufit.tui.messages import CardPressed, ListResized
from gpufit.tui.renderables import header
from gpufit.tui.renderables.bar import legend
from gpufit.tui.renderables.cards import heading
from gpufit.tui.screens.base import QuestionScreen
from gpufit.tui.state import View
from gpufit.tui.widgets.card_list import CardList
from gpufit.tui.widgets.details import Details
from gpufit.tui.widgets.words import Words


class CardsScreen(QuestionScreen):
    """Every card's ceiling, bar, headroom and verdict."""

    VIEW = View.CARDS
    AUTO_FOCUS = "CardList"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(CARDS)]

    def compose_view(self) -> Iterable[Widget]:
        """Top to bottom, as they stand on screen."""
        yield Input(placeholder="search: part of a card's name", id="search", compact=True)
        yield Words(id="heading")
        yield CardList(id="cards")
        yield Words(id="legend")
        yield Details(id="details")

    @property
    def page(self) -> int:
        """Cards in view."""
        return self.query_one(CardList).page

    def on_card_pressed(self, message: CardPressed) -> None:
        """Select the card that was clicked."""
        self.go(state.select(self.session.state, message.index))

    def action_next_vendor(self) -> None:
        """List another vendor's cards."""
        self._list(next_vendor(self.session.state.listing, self.session.catalog.cards))

    def action_next_form(self) -> None:
        """List cards of another form."""
        self._list(next_form(self.session.state.listing, self.session.catalog.cards))

    def action_next_memory(self) -> None:
        """List cards of another least size."""
        self._list(next_memory(self.session.state.listing))

    def action_search(self) -> None:
        """Open the search box; what is typed next is already in it."""
        box = self.query_one("#search", Input)
        box.display = True
        self.set_focus(box)

    def on_input_changed(self, message: Input.Changed) -> None:
        """List what is found so far."""
        self._list(replace(self.session.state.listing, search=message.value))

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Back to the list, of what was found."""
        self.query_one(CardList).focus()

    def action_toggle_details(self) -> None:
        """Give the details the list's place, or give it back."""
        self._enlarge_details(not self.has_class("-enlarged"))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a search is typed, every other key is a letter of it, and the footer names none."""
        if isinstance(self.focused, Input) or action == "leave_search":
            return action == "leave_search" and isinstance(self.focused, Input)
        return super().check_action(action, parameters)

    def action_leave_search(self) -> None:
        """Out of the search."""
        self.action_back()

    def action_back(self) -> None:
        """Out of the search, whose words are cleared, or out of the details."""
        box = self.query_one("#search", Input)
        box.value, box.display = "", False
        self._enlarge_details(False)

    def _list(self, listing: Listing) -> None:
        self.go(replace(self.session.state, listing=listing))

    def instead(self) -> Text | None:
        """Also where no card is left to list."""
        found = super().instead()
        document = self.session.document
        if found is None and document is not None and not self.session.rows:
            return header.nothing_listed(self.session.state, document)
        return found

    def draw_answer(self) -> None:
        """The list, and the selected card's details."""
        session = self.session
        row = session.selected_row
        if session.document is None or row is None:
            return
        cards = self.query_one(CardList)
        self.query_one("#legend", Words).update(legend(self.size.width - 2), layout=False)
        cards.show(session.document, session.rows, session.state.selected, session.settled)
        self._head()
        self.query_one(Details).show(session.document, row, session.settled)

    def on_list_resized(self, message: ListResized) -> None:
        """The columns may be others now."""
        self._head()

    def _head(self) -> None:
        self.query_one("#heading", Words).update(heading(self.query_one(CardList).columns), layout=False)

    def _enlarge_details(self, large: bool) -> None:
        self.set_class(large, "-enlarged")
        self.query_one("#details" if large else "#cards").focus()
