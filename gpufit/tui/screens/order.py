"""The order screen: card by card, each way to take it, from each seller, with lots, term and cost."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import ClassVar

from rich.text import Text
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widget import Widget

from gpufit.tui import ordering, state
from gpufit.tui.export import Exportable, of_fit
from gpufit.tui.keys import ORDER, bindings
from gpufit.tui.messages import ListResized, RowPressed
from gpufit.tui.ordering import Ordering, OrderLine
from gpufit.tui.renderables import header, listed, order
from gpufit.tui.screens.base import QuestionScreen
from gpufit.tui.screens.order_file import OrderFileScreen
from gpufit.tui.session import Session
from gpufit.tui.state import Event, View
from gpufit.tui.widgets.block import Block
from gpufit.tui.widgets.line_list import LineList
from gpufit.tui.widgets.scroll import Scroll
from gpufit.tui.widgets.words import Words


class OrderScreen(QuestionScreen):
    """Its cursor is on the card that is selected on every screen."""

    VIEW = View.ORDER
    AUTO_FOCUS = "LineList"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(ORDER)]
    DEFAULT_CSS = """
    OrderScreen #summary { height: auto; max-height: 5; padding: 0 1; }
    OrderScreen #columns { height: 1; padding: 0 1; }
    OrderScreen #halves { height: 1fr; layout: vertical; }
    OrderScreen #orders { height: 3fr; width: 1fr; }
    OrderScreen #order { height: 2fr; width: 1fr; padding: 0 1; border-top: solid $primary 50%; }
    OrderScreen #order:focus { border-top: heavy $accent; }
    OrderScreen.-wide.-tall #order { height: 18; }
    OrderScreen.-instead #summary, OrderScreen.-instead #columns, OrderScreen.-instead #halves { display: none; }
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._ordering = Ordering()
        self._lines: tuple[OrderLine, ...] = ()

    def compose_view(self) -> Iterable[Widget]:
        """Top to bottom, as they stand on screen."""
        yield Block(id="summary")
        yield Words(id="columns")
        with Horizontal(id="halves"):
            yield LineList(id="orders")
            with Scroll(id="order"):
                yield Words(id="line")

    def instead(self) -> Text | None:
        """Also where no card is left to list."""
        found = super().instead()
        document = self.session.document
        if found is None and document is not None and not self.session.rows:
            return header.nothing_listed(self.session.state, document)
        return found

    def exportable(self) -> Exportable | None:
        """The answer for the cards that are listed, under a name of its own."""
        document = self.session.listed()
        return None if document is None else of_fit(document, "orders")

    def draw(self) -> None:
        """As every screen with an answer; without one there are no lines to move over."""
        if not self.session.rows:
            self._lines = ()
        super().draw()

    def draw_answer(self) -> None:
        """The list, with the cursor on the selected card; and everything about its line."""
        document, selected = self.session.document, self.session.state.selected_card
        if document is None or not self.session.rows:
            return
        self.fade(not self.session.settled, "#columns", "#orders", "#order")
        if not self.session.settled:
            self.query_one("#summary", Block).show(order.waiting(document), stays=False)
            return
        # The list goes on drawing these, also when there are none any more.
        rows = self._lines = ordering.order_lines(document, self.session.rows, self._ordering)
        found = ordering.put(self._ordering, self._ordering.cursor, len(self._lines))
        if self._lines[found.cursor].row.card != selected:
            found = replace(found, cursor=ordering.place_of(self._lines, selected))
        self._ordering = found
        self.query_one("#summary", Block).show(order.summary(document, self._lines, found))
        lines = self.query_one(LineList)
        placed = listed.place(order.columns(self._lines, found), self._lines, lines.line_width)
        self.query_one("#columns", Words).update(listed.heading(placed), layout=False)
        lines.show(
            len(self._lines),
            found.cursor,
            lambda index: listed.line(placed, rows[index], index == found.cursor),
        )
        self.query_one("#line", Words).update(order.details(document, self._lines[found.cursor]))

    def action_move(self, event: str) -> None:
        """The cursor elsewhere."""
        self._settle()
        page = self.query_one(LineList).page
        self._put(ordering.move(self._ordering, Event(event), page, len(self._lines)))

    def on_list_resized(self, message: ListResized) -> None:
        """Choose the columns anew."""
        self.draw()

    def on_row_pressed(self, message: RowPressed) -> None:
        """The cursor to the line that was clicked; a click on the line under it opens."""
        if not self.session.settled:  # the line is of the question before
            self._settle()
        elif message.index == self._ordering.cursor:
            self.action_open()
        else:
            self._put(ordering.put(self._ordering, message.index, len(self._lines)))

    def action_next_term(self) -> None:
        """Another term's totals, with the cursor on the same line."""
        self._sorted(ordering.next_term(self._ordering), stay=True)

    def action_next_sort(self) -> None:
        """Another order, from its first line."""
        self._sorted(ordering.next_sort(self._ordering), stay=False)

    def action_open(self) -> None:
        """The order file of the card under the cursor."""
        self._settle()
        if self._lines and self.session.document is not None:
            line = self._lines[self._ordering.cursor]
            self.app.push_screen(OrderFileScreen(self.session, line, self._ordering.term_days))

    def _settle(self) -> None:
        """Have the lines that the question asks for: those that are drawn may still be of the one before."""
        if not self.session.settled:
            self.session.settle()
            self.draw()

    def _sorted(self, to: Ordering, stay: bool) -> None:
        self._settle()
        document = self.session.document
        if document is None or not self._lines:
            return
        before = self._lines[self._ordering.cursor]
        self._lines = ordering.order_lines(document, self.session.rows, to)
        self._put(replace(to, cursor=self._lines.index(before)) if stay else to)

    def _put(self, to: Ordering) -> None:
        """The cursor there, and the card under it selected on every screen."""
        self._ordering = to
        cards = self.session.state.cards
        if self._lines:
            self.go(state.select(self.session.state, cards.index(self._lines[to.cursor].row.card)))
