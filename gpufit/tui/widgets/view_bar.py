"""The screens by name, in one line at the top."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text
from textual.events import Click
from textual.widget import Widget

from gpufit.tui.messages import ViewPressed
from gpufit.tui.renderables.views import view_bar, view_tabs
from gpufit.tui.state import View


class ViewBar(Widget):
    """Marks the screen on show; a click asks for another."""

    def __init__(self, views: Sequence[View], shown: View) -> None:
        super().__init__()
        self._views, self._shown = tuple(views), shown

    def render(self) -> Text:
        """The line."""
        return view_bar(view_tabs(self._views, self.size.width), self._shown)

    def on_click(self, event: Click) -> None:
        """Ask for the screen under the pointer."""
        for tab in view_tabs(self._views, self.size.width):
            if tab.begin <= event.x < tab.end:
                self.post_message(ViewPressed(tab.view))
