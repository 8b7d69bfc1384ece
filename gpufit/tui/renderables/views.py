"""The bar at the top: every screen with its key, the one on show marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.text import Text

from gpufit.tui.renderables.palette import DIM, STRONG
from gpufit.tui.state import View

_PLACES = {view: place for place, view in enumerate(View, 1)}


@dataclass(frozen=True)
class ViewTab:
    """A screen's name as it stands in the bar."""

    view: View
    text: str
    begin: int
    """Its first cell."""

    @property
    def end(self) -> int:
        """The cell after its last."""
        return self.begin + len(self.text)


def view_tabs(views: Sequence[View], width: int) -> tuple[ViewTab, ...]:
    """The names side by side: with keys while all have room, else the keys alone."""
    for texts in ([f" {_PLACES[one]} {one} " for one in views], [f" {_PLACES[one]} " for one in views]):
        if sum(map(len, texts)) <= width:
            break
    tabs, begin = [], 0
    for view, text in zip(views, texts, strict=True):
        tabs.append(ViewTab(view, text, begin))
        begin += len(text)
    return tuple(tabs)


def view_bar(tabs: Sequence[ViewTab], shown: View) -> Text:
    """The bar; the screen on show stands in brackets, so that it reads without colour."""
    text = Text(no_wrap=True, overflow="crop")
    for tab in tabs:
        if tab.view is shown:
            text.append(f"[{tab.text[1:-1]}]", f"{STRONG} reverse")
        else:
            text.append(tab.text, DIM)
    return text
