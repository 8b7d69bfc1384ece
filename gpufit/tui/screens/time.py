"""The time screen: what each cell took on the device that ran it."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from gpufit.flows_curve import times
from gpufit.tui.renderables.times import times_head, times_table
from gpufit.tui.screens.page import PageScreen
from gpufit.tui.state import View
from gpufit.tui.widgets.block import Block


class TimeScreen(PageScreen):
    """A line a cell."""

    VIEW = View.TIME
    SEARCHES = False

    def sides(self) -> Iterable[Widget]:
        """What it ran on."""
        yield Block(id="times-head", classes="block")

    def below(self) -> Iterable[Widget]:
        """The table."""
        yield Block(id="times", classes="block")

    def draw_answer(self) -> None:
        """The profile's cells; the one at the scenario is marked."""
        session, shape = self.session, self.session.state.shape
        if session.loaded is None:
            return
        found = times(session.loaded.profile, session.loaded.where)
        place = (shape.context_tokens, shape.new_tokens, shape.concurrency)
        self.query_one("#times-head", Block).show(times_head(found))
        self.query_one("#times", Block).show(times_table(found, place, self.size.width - 5) if found.rows else "")
