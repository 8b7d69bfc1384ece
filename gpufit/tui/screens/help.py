"""The help: every key, and what each word and sign means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.events import Resize
from textual.screen import ModalScreen

from gpufit.tui.renderables.pages import help_keys, help_words
from gpufit.tui.state import View
from gpufit.tui.widgets.key_footer import KeyFooter
from gpufit.tui.widgets.words import Words

SIDE_BY_SIDE = 150
"""Columns from which words stand beside keys, as the style sheet has it."""


class HelpScreen(ModalScreen[None]):
    """Over any screen until it is closed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark", "dismiss", "close", key_display="esc"),
        Binding("q", "app.quit", "quit"),
        Binding("ctrl+c", "app.quit", show=False, priority=True),
        Binding("down,j", "scroll('down')", show=False),
        Binding("up,k", "scroll('up')", show=False),
    ]

    def __init__(self, views: Sequence[View]) -> None:
        super().__init__()
        self._views = tuple(views)

    def compose(self) -> ComposeResult:
        """One scrolling page."""
        with VerticalScroll(id="help") as page:
            page.border_title = "gpufit: keys and words"
            yield Words(help_keys(self._views))
            yield Words(help_words())
        yield KeyFooter()

    def on_resize(self, event: Resize) -> None:
        """Where the words are, as long as they do not stand beside the keys."""
        page = self.query_one("#help", VerticalScroll)
        page.border_subtitle = "" if self.app.size.width >= SIDE_BY_SIDE else "end: what words and signs mean"

    def action_scroll(self, direction: str) -> None:
        """Scroll by a line whether or not the page has the focus."""
        self.query_one("#help", VerticalScroll).scroll_relative(y=1 if direction == "down" else -1, animate=False)
