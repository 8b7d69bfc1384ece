"""The table of crossings: a click selects a card."""

from __future__ import annotations

from collections.abc import Sequence

from textual.events import Click

from gpufit.report.curve import CurveDocument
from gpufit.tui.messages import CardPressed
from gpufit.tui.renderables.crossings import crossings
from gpufit.tui.widgets.words import Words


class Crossings(Words):
    """As many cards as have room, the selected one among them."""

    def __init__(self, id: str) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self._places: tuple[int, ...] = ()

    def show(self, document: CurveDocument, listed: Sequence[str], selected: int) -> None:
        """Draw the cards around the selected one."""
        rows = max(self.size.height, 2)
        text, self._places = crossings(document, listed, selected, self.size.width, rows)
        self.update(text, layout=False)

    def on_click(self, event: Click) -> None:
        """Ask the screen to select the card under the pointer."""
        if 1 <= event.y <= len(self._places):
            self.post_message(CardPressed(self._places[event.y - 1]))
