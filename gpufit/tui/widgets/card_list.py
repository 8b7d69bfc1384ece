"""The scrolling list of cards: one line a card, drawn by `renderables.cards`."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from textual.events import Click
from textual.geometry import Region, Size, Spacing
from textual.scroll_view import ScrollView
from textual.strip import Strip

from gpufit.report.document import CardRow, FitDocument
from gpufit.tui.messages import CardPressed, ListResized
from gpufit.tui.renderables.cards import Layout, card_line, layout_for

_NEIGHBOURS = 2
"""Cards kept in view above and below the selected one."""


class CardList(ScrollView, can_focus=True, inherit_bindings=False):
    """Draws the rows it is given. Which card is selected, and every key, belongs to the screen."""

    def __init__(self, id: str) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self._document: FitDocument | None = None
        self._rows: tuple[CardRow, ...] = ()
        self._selected = 0
        self._settled = True
        self._layout = Layout((), 0)

    def show(self, document: FitDocument, rows: Sequence[CardRow], selected: int, settled: bool = True) -> None:
        """Draw these rows, with the selected one in view."""
        self._document, self._rows, self._selected, self._settled = document, tuple(rows), selected, settled
        self._lay_out()
        self.refresh()

    @property
    def columns(self) -> Layout:
        """The columns that there is room for; the heading above uses the same."""
        return self._layout

    @property
    def page(self) -> int:
        """Cards in view at once."""
        return max(self.size.height, 1)

    def render_line(self, y: int) -> Strip:
        """One line of the list, in Textual's terms."""
        index, width = y + round(self.scroll_y), self.scrollable_content_region.width
        background = self.rich_style
        if self._document is None or index >= len(self._rows):
            return Strip.blank(width, background)
        line = card_line(self._document, self._rows[index], self._layout, index == self._selected, self._settled)
        line.truncate(width, overflow="ellipsis", pad=True)
        segments = line.render(self.app.console)
        return Strip(list(segments)).apply_style(Style(bgcolor=background.bgcolor))

    def on_resize(self) -> None:
        """Choose the columns again, and keep the selected card in view when the list gets shorter."""
        self._lay_out()
        self.post_message(ListResized())

    def _lay_out(self) -> None:
        if self._document is not None:
            before = None if self._settled else self._layout
            self._layout = layout_for(self.scrollable_content_region.width, self._document, before)
        self.virtual_size = Size(self.size.width, len(self._rows))
        self._show_selected()

    def _show_selected(self) -> None:
        """Scroll no further than needed, and keep the neighbours above and below in view too."""
        row = Region(0, self._selected, 1, 1)
        around = Spacing.vertical(_NEIGHBOURS if self.size.height > 4 * _NEIGHBOURS else 0)
        self.scroll_to_region(row, spacing=around, animate=False, force=True, immediate=True, x_axis=False)

    def on_click(self, event: Click) -> None:
        """Ask the screen to select the card under the pointer."""
        index = event.y + round(self.scroll_y)
        if index < len(self._rows):
            self.post_message(CardPressed(index))
