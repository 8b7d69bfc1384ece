"""A scrolling list of lines that somebody else draws, one of them selected."""

from __future__ import annotations

from collections.abc import Callable

from rich.style import Style
from rich.text import Text
from textual.events import Click
from textual.geometry import Region, Size, Spacing
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpufit.tui.messages import ListResized, RowPressed

_NEIGHBOURS = 2
"""Lines kept in view above and below the selected one."""


class LineList(ScrollView, can_focus=True, inherit_bindings=False):
    """Asks for a line when it has to stand on screen. Which is selected, and every key, belongs to the screen."""

    DEFAULT_CSS = """
    LineList {
        padding: 0 1;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
        overflow-x: hidden;
    }
    """

    def __init__(self, id: str) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self._line: Callable[[int], Text] = lambda index: Text()
        self._count = 0
        self._selected = 0

    def show(self, count: int, selected: int, line: Callable[[int], Text]) -> None:
        """Draw so many lines, with the selected one in view."""
        self._line, self._count, self._selected = line, count, selected
        self._lay_out()
        self.refresh()

    @property
    def line_width(self) -> int:
        """Cells of a line."""
        return self.scrollable_content_region.width

    @property
    def page(self) -> int:
        """Lines in view at once."""
        return max(self.size.height, 1)

    def render_line(self, y: int) -> Strip:
        """One line, in Textual's terms."""
        index, width = y + round(self.scroll_y), self.line_width
        background = self.rich_style
        if index >= self._count:
            return Strip.blank(width, background)
        line = self._line(index)
        line.truncate(width, overflow="ellipsis", pad=True)
        return Strip(list(line.render(self.app.console))).apply_style(Style(bgcolor=background.bgcolor))

    def on_resize(self) -> None:
        """Keep the selected line in view when the list gets shorter, and have the columns chosen for the width."""
        self._lay_out()
        self.post_message(ListResized())

    def _lay_out(self) -> None:
        self.virtual_size = Size(self.size.width, self._count)
        row = Region(0, self._selected, 1, 1)
        around = Spacing.vertical(_NEIGHBOURS if self.size.height > 4 * _NEIGHBOURS else 0)
        self.scroll_to_region(row, spacing=around, animate=False, force=True, immediate=True, x_axis=False)

    def on_click(self, event: Click) -> None:
        """Tell the screen which line is under the pointer."""
        index = event.y + round(self.scroll_y)
        if index < self._count:
            self.post_message(RowPressed(index))
