"""What stands on screen when there is no profile to show."""

from __future__ import annotations

from collections.abc import Sequence

from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Static

from gpufit.tui.renderables.pages import empty_page


class EmptyScreen(Screen[None]):
    """Says how to make a profile, and stays until the user quits."""

    def __init__(self, folder: str, problems: Sequence[str]) -> None:
        super().__init__()
        self._folder = folder
        self._problems = tuple(problems)

    def compose(self) -> ComposeResult:
        """One page."""
        with VerticalScroll(id="empty"):
            yield Static(empty_page(self._folder, self._problems))
        yield Footer(compact=True)
