"""A line to type in that never passes a part of its text off as the whole."""

from __future__ import annotations

from rich.cells import set_cell_size
from rich.segment import Segment
from textual.strip import Strip
from textual.widgets import Input

CUT = "…"


class LineInput(Input):
    """Shows the head of its text while the keys go elsewhere; wherever the text is cut, a sign says so."""

    def render_line(self, y: int) -> Strip:
        """The text in the room there is."""
        strip, width = super().render_line(y), self.scrollable_content_region.width
        long = self.content_width - 1  # Textual keeps a cell for the cursor
        if y or not self.value or long <= width:
            return strip
        if not self.has_focus:
            head = Segment(f"{set_cell_size(self.value, width - 1)}{CUT}", self.rich_style)
            return Strip([head], width).extend_cell_length(strip.cell_length, self.rich_style)
        first, cursor = self.scroll_offset.x, self.cursor_screen_offset.x - self.content_region.x
        if first > 0 and cursor > 0:
            strip = _marked(strip, 0)
        if first + width < long and cursor < width - 1:
            strip = _marked(strip, width - 1)
        return strip


def _marked(strip: Strip, at: int) -> Strip:
    """The sign in one cell."""
    before, cell, after = strip.divide([at, at + 1, strip.cell_length])
    style = next((segment.style for segment in cell), None)
    return Strip.join([before, Strip([Segment(CUT, style)], 1), after])
