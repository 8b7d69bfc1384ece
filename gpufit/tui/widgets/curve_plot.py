"""A curve drawn on the terminal; what is drawn is worked out by `renderables.curve`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.app import RenderResult
from textual_plotext import PlotextPlot

from gpufit.report.curve import CurveCard, CurveDocument
from gpufit.tui.renderables.curve import paint, picture


class CurvePlot(PlotextPlot):
    """Draws a document with the ceilings of some cards."""

    def __init__(self, id: str) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self._shown: tuple[CurveDocument, tuple[CurveCard, ...], str | None] | None = None

    def show(self, document: CurveDocument, near: Sequence[CurveCard], selected: str | None) -> None:
        """Draw this."""
        self._shown = (document, tuple(near), selected)
        self.refresh()

    def render(self) -> RenderResult:
        """The plot in the widget's own size."""
        width, height = self.size
        if self._shown is None or width < 20 or height < 5:
            return Text("")
        document, near, selected = self._shown
        paint(self.plt, picture(document, near, selected, width, height))
        return super().render()
