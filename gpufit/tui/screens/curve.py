"""The curve screen: memory against context or concurrency, each card's ceiling, and where they cross."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import msgspec
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Resize
from textual.widget import Widget

from gpufit.flows_curve import curve
from gpufit.report.curve import CurveDocument
from gpufit.report.curve_table import curve_report
from gpufit.report.document import FitDocument
from gpufit.tui import state
from gpufit.tui.export import Exportable, of_tables
from gpufit.tui.keys import CURVE, bindings
from gpufit.tui.messages import CardPressed
from gpufit.tui.renderables.crossings import legend, waiting
from gpufit.tui.renderables.curve import picture, shown_cards
from gpufit.tui.screens.base import QuestionScreen
from gpufit.tui.session import Session
from gpufit.tui.state import View
from gpufit.tui.widgets.block import Block
from gpufit.tui.widgets.crossings import Crossings
from gpufit.tui.widgets.picture_plot import PicturePlot

_SIDE_BY_SIDE, _SPACIOUS = 150, 190
_TABLE_BELOW = 32
"""Columns from which the table has room beside the plot, and in full; rows from which it has room below, where it then
stands rather than take half of the width."""


class CurveScreen(QuestionScreen):
    """One line a phase."""

    VIEW = View.CURVE
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(CURVE)]
    DEFAULT_CSS = """
    CurveScreen #curve { height: 1fr; padding: 0 1; layout: vertical; }
    CurveScreen #plot { height: 1fr; }
    CurveScreen #curve-legend { height: auto; max-height: 5; padding: 0 1; }
    CurveScreen #crossings { height: 10; margin: 1 0 0 0; display: none; }
    CurveScreen.-table #crossings { display: block; }
    CurveScreen.-side #curve { layout: horizontal; }
    CurveScreen.-side #crossings { height: 1fr; width: 92; margin: 0 0 0 1; }
    CurveScreen.-spacious #crossings { width: 104; }
    CurveScreen.-instead #curve, CurveScreen.-instead #curve-legend { display: none; }
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._drawn: tuple[FitDocument, CurveDocument] | None = None

    def compose_view(self) -> Iterable[Widget]:
        """The plot with the table, and the words under both."""
        yield Container(PicturePlot(id="plot"), Crossings(id="crossings"), id="curve")
        yield Block(id="curve-legend")

    def on_mount(self) -> None:
        """Find room for the table."""
        self._lay_out()

    def on_resize(self, event: Resize) -> None:
        """Find room for the table again."""
        self._lay_out()
        super().on_resize(event)

    def _lay_out(self) -> None:
        width, below = self.app.size.width, self.app.size.height >= _TABLE_BELOW
        side = width >= (_SPACIOUS if below else _SIDE_BY_SIDE)
        self.set_class(side, "-side")
        self.set_class(width >= _SPACIOUS, "-spacious")
        self.set_class(side or below, "-table")

    def on_card_pressed(self, message: CardPressed) -> None:
        """Select the card that was clicked."""
        self.go(state.select(self.session.state, message.index))

    def draw_answer(self) -> None:
        """The plot, the table, and what the selected card holds."""
        session = self.session
        self.fade(not session.settled, "#plot", "#crossings")
        if not session.settled:
            self.query_one("#curve-legend", Block).show(waiting(), stays=False)
            return
        found = self._curve()
        if found is None:
            return
        listed, selected = session.state.cards, session.state.selected_card
        card = next((one for one in found.cards if one.card == selected), None)
        near = shown_cards(found, listed, session.state.selected)
        only = _only(found, listed)
        self.query_one(PicturePlot).show(lambda width, height: picture(only, near, selected, width, height))
        self.query_one("#curve-legend", Block).show(legend(found, card))
        self.query_one(Crossings).show(found, listed, session.state.selected)

    def exportable(self) -> Exportable | None:
        """The curve for the cards that are listed, with the ceilings that are drawn."""
        self.session.settle()
        found, now = self._curve(), self.session.state
        if found is None:
            return None
        near = shown_cards(found, now.cards, now.selected)
        return of_tables(
            curve_report(_only(found, now.cards), near, now.selected_card), found.model.name, (found.profile,)
        )

    def _curve(self) -> CurveDocument | None:
        """The curve through the answer, worked out once for each answer and axis."""
        session = self.session
        answer, loaded = session.document, session.loaded
        if answer is None or loaded is None:
            return None
        known = self._drawn
        if known is None or known[0] is not answer or known[1].axis is not session.state.axis:
            now = session.state
            found = curve(loaded.profile, answer, now.axis, session.catalog, now.held)
            known = self._drawn = (answer, found)
        return known[1]


def _only(document: CurveDocument, listed: Sequence[str]) -> CurveDocument:
    """The curve for the cards that are listed, in their order."""
    cards = {card.card: card for card in document.cards}
    return msgspec.structs.replace(document, cards=tuple(cards[one] for one in listed))
