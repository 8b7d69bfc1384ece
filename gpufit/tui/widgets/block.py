"""A block of text that is replaced on nearly every key."""

from __future__ import annotations

from rich.console import RenderableType

from gpufit.tui.widgets.words import Words


class Block(Words):
    """Asks for a new layout only when its size changes.

    A layout takes a frame of its own, so a plain `Words.update` on every key shows the list first and the rest a frame
    later.
    """

    def show(self, content: RenderableType, stays: bool = True) -> None:
        """Replace the text. One that soon gives way to another makes do with the room that there is."""
        self.update(content, layout=False)
        height = self.get_content_height(self.size, self.app.size, self.size.width)
        width = self.get_content_width(self.size, self.app.size) if self.styles.is_auto_width else self.size.width
        if (width, height) != self.size and (stays or not self.size):
            self.refresh(layout=True)
