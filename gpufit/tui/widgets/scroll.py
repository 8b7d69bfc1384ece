"""A part of the screen that scrolls by itself while it has the focus."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll


class Scroll(VerticalScroll, can_focus=True, inherit_bindings=False):
    """Every other key goes on to the screen."""

    DEFAULT_CSS = """
    Scroll { scrollbar-size-vertical: 1; }
    Scroll > Static { height: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", show=False),
        Binding("down,j", "scroll_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown", "page_down", show=False),
        Binding("home", "scroll_home", show=False),
        Binding("end", "scroll_end", show=False),
    ]
