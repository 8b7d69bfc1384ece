"""The time screen: what each cell took on the device that ran it."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from gpufit.flows_curve import times
from gpufit.report.times import TimesDocument
from gpufit.report.times_table import times_report
from gpufit.tui.export import Exportable, of_tables
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

    def _times(self) -> TimesDocument | None:
        loaded = self.session.loaded
        return None if loaded is None else times(loaded.profile, loaded.where)

    def exportable(self) -> Exportable | None:
        """The same times."""
        found = self._times()
        return None if found is None else of_tables(times_report(found), found.model.name, (found.profile,))

    def draw_answer(self) -> None:
        """The profile's cells; the one at the scenario is marked."""
        found, shape = self._times(), self.session.state.shape
        if found is None:
            return
        place = (shape.context_tokens, shape.new_tokens, shape.concurrency)
        self.query_one("#times-head", Block).show(times_head(found))
        self.query_one("#times", Block).show(times_table(found, place, self.size.width - 5) if found.rows else "")
