"""The precision screen: stored, held, computed and cached in which dtype, and the switches with what each comes to."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from gpufit.flows_curve import precision
from gpufit.report.precision import PrecisionDocument
from gpufit.report.precision_table import precision_report
from gpufit.tui import state
from gpufit.tui.export import Exportable, of_tables
from gpufit.tui.messages import HeldChosen
from gpufit.tui.renderables.precision import columns, reasons
from gpufit.tui.screens.page import PageScreen
from gpufit.tui.state import View
from gpufit.tui.widgets.block import Block
from gpufit.tui.widgets.switches import Switches

_SWITCHES_WIDTH = 64
"""Beside the columns, as the style sheet has it."""


class PrecisionScreen(PageScreen):
    """Four columns, three switches."""

    VIEW = View.PRECISION
    SEARCHES = False
    DEFAULT_CSS = """
    PrecisionScreen.-side #switches { width: 64; }
    """

    def sides(self) -> Iterable[Widget]:
        """The switches first: they are what keys change."""
        yield Switches(id="switches", classes="block")
        yield Block(id="columns", classes="block")

    def below(self) -> Iterable[Widget]:
        """What cannot be switched."""
        yield Block(id="reasons", classes="block")

    def on_held_chosen(self, message: HeldChosen) -> None:
        """Switch as was clicked."""
        self.go(state.with_held(self.session.state, message.held))

    def _precision(self) -> PrecisionDocument | None:
        session = self.session
        if session.document is None or session.loaded is None:
            return None
        return precision(session.loaded.profile, session.document, session.state.held)

    def exportable(self) -> Exportable | None:
        """The same columns and switches."""
        found = self._precision()
        return None if found is None else of_tables(precision_report(found), found.model.name, (found.profile,))

    def draw_answer(self) -> None:
        """What the answer stands on."""
        found = self._precision()
        if found is None:
            return
        self.query_one(Switches).show(found, _SWITCHES_WIDTH if self.side_by_side else self.app.size.width - 5)
        self.query_one("#columns", Block).show(columns(found))
        self.query_one("#reasons", Block).show(reasons(found))
