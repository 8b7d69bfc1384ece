"""The growth screen: what a token, a sequence and a longer context cost, and where the slope changes."""

from __future__ import annotations

from collections.abc import Iterable

from textual.widget import Widget

from gpufit.flows_curve import growth
from gpufit.report.growth import GrowthDocument
from gpufit.report.growth_table import growth_report
from gpufit.tui.export import Exportable, of_tables
from gpufit.tui.renderables.growth import growth_picture, plot_title, words
from gpufit.tui.screens.page import PageScreen
from gpufit.tui.state import View
from gpufit.tui.widgets.block import Block
from gpufit.tui.widgets.picture_plot import PicturePlot


class GrowthScreen(PageScreen):
    """A sentence, its figures, a plot."""

    VIEW = View.GROWTH
    SEARCHES = False
    DEFAULT_CSS = """
    GrowthScreen #growth-plot { height: 16; }
    GrowthScreen.-side #growth-plot { height: 24; }
    GrowthScreen.-side.-tall #growth-plot { height: 34; }
    GrowthScreen.-none #growth-plot, GrowthScreen.-none #growth-title { display: none; }
    """

    def sides(self) -> Iterable[Widget]:
        """Words beside the plot."""
        yield Block(id="growth-words", classes="block")
        yield PicturePlot(id="growth-plot")

    def below(self) -> Iterable[Widget]:
        """What is drawn."""
        yield Block(id="growth-title", classes="block")

    def _growth(self) -> GrowthDocument | None:
        session = self.session
        if session.document is None or session.loaded is None:
            return None
        return growth(session.loaded.profile, session.document, session.state.held)

    def exportable(self) -> Exportable | None:
        """The same growth."""
        found = self._growth()
        return None if found is None else of_tables(growth_report(found), found.model.name, (found.profile,))

    def draw_answer(self) -> None:
        """The growth at the scenario."""
        found = self._growth()
        if found is None:
            return
        self.set_class(growth_picture(found, 40, 16) is None, "-none")
        self.query_one("#growth-words", Block).show(words(found))
        self.query_one(PicturePlot).show(lambda width, height: growth_picture(found, width, height))
        self.query_one("#growth-title", Block).show(plot_title(found))
