"""The three switches: a click on a position chooses it."""

from __future__ import annotations

from textual.events import Click

from gpufit.memory.held import Held
from gpufit.report.precision import PrecisionDocument
from gpufit.tui.messages import HeldChosen
from gpufit.tui.renderables.precision import switches
from gpufit.tui.widgets.words import Words


class Switches(Words):
    """Draws the switches of a document."""

    def __init__(self, id: str, classes: str) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id, classes=classes)
        self._rows: tuple[Held | None, ...] = ()

    def show(self, document: PrecisionDocument, width: int) -> None:
        """Draw them in so many columns."""
        text, self._rows = switches(document, width)
        self.update(text)

    def on_click(self, event: Click) -> None:
        """Ask the screen for the position under the pointer."""
        held = self._rows[event.y] if 0 <= event.y < len(self._rows) else None
        if held is not None:
            self.post_message(HeldChosen(held))
