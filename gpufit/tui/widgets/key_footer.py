"""The keys in the last line: the first ones everywhere, the rest where there is room."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.events import Resize
from textual.widgets import Footer

from gpufit.tui.keys import ROOMY_ACTIONS

ROOM = 118
"""Columns from which all keys that have a word in the footer stand there."""


class KeyFooter(Footer):
    """Leaves out what would push `? help` and `q quit` off a narrow screen."""

    def __init__(self) -> None:
        super().__init__(compact=True, show_command_palette=False)
        self._had_room = True

    def compose(self) -> ComposeResult:
        """As every footer, less the keys that there is no room for."""
        self._had_room = self._has_room
        for child in super().compose():
            if self._had_room or getattr(child, "action", "") not in ROOMY_ACTIONS:
                yield child

    @property
    def _has_room(self) -> bool:
        return self.app.size.width >= ROOM

    def on_resize(self, event: Resize) -> None:
        """Choose again where the room has changed."""
        if self._has_room is not self._had_room:
            self.refresh(recompose=True)
