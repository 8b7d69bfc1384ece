"""What the screens have in common that are pages of blocks: side by side where there is room, scrolled where not."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Container, VerticalScroll
from textual.events import Resize
from textual.widget import Widget

from gpufit.tui.keys import PAGE, bindings
from gpufit.tui.screens.base import QuestionScreen

SIDE_BY_SIDE = 118
"""Columns from which blocks stand beside one another."""


class PageScreen(QuestionScreen):
    """A page of blocks; subclasses yield them and draw."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(PAGE)]
    DEFAULT_CSS = """
    PageScreen #page { height: 1fr; padding: 1 2 0 2; scrollbar-size-vertical: 1; }
    PageScreen .block { height: auto; width: 1fr; margin: 0 0 1 0; }
    PageScreen #sides { height: auto; layout: vertical; }
    PageScreen.-side #sides { layout: horizontal; }
    PageScreen.-side #sides > * { margin: 0 3 1 0; }
    PageScreen.-instead #page { display: none; }
    """

    def compose_view(self) -> Iterable[Widget]:
        """The blocks in a page that scrolls by the screen's keys."""
        yield VerticalScroll(Container(*self.sides(), id="sides"), *self.below(), id="page", can_focus=False)

    @abstractmethod
    def sides(self) -> Iterable[Widget]:
        """What stands side by side where there is room."""

    def below(self) -> Iterable[Widget]:
        """What stands below, as wide as the page."""
        return ()

    def on_mount(self) -> None:
        """Find room."""
        self._lay_out()

    def on_resize(self, event: Resize) -> None:
        """Find room again."""
        self._lay_out()
        super().on_resize(event)

    def _lay_out(self) -> None:
        self.set_class(self.side_by_side, "-side")

    @property
    def side_by_side(self) -> bool:
        """Whether two blocks have room beside one another."""
        return self.app.size.width >= SIDE_BY_SIDE

    def action_scroll_page(self, to: str) -> None:
        """Scroll by a line, a page, or to an end."""
        page = self.query_one("#page", VerticalScroll)
        lines = {"up": -1, "down": 1, "page up": -page.size.height, "page down": page.size.height}
        if to in lines:
            page.scroll_relative(y=lines[to], animate=False)
        elif to == "top":
            page.scroll_home(animate=False)
        else:
            page.scroll_end(animate=False)
