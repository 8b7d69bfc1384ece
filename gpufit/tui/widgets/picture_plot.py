"""A picture drawn on the terminal; what is drawn is worked out by `renderables`."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text
from textual.app import RenderResult
from textual_plotext import PlotextPlot

from gpufit.tui.renderables.curve import Picture, paint

_SMALLEST = (20, 5)
"""Columns and rows below which a plot says nothing."""


class PicturePlot(PlotextPlot):
    """Draws what is made for its size."""

    def __init__(self, id: str) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self._made: Callable[[int, int], Picture | None] = lambda width, height: None

    def show(self, made: Callable[[int, int], Picture | None]) -> None:
        """Draw what `made` gives for columns and rows; nothing where it gives none."""
        self._made = made
        self.refresh()

    def render(self) -> RenderResult:
        """The plot in the widget's own size."""
        width, height = self.size
        found = self._made(width, height) if width >= _SMALLEST[0] and height >= _SMALLEST[1] else None
        if found is None:
            return Text("")
        paint(self.plt, found)
        return super().render()
