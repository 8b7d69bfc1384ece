"""Light themes: renderables name the colours of a dark screen, and each has a darker one that stands for it here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

LIGHT: Mapping[str, str] = {
    "#d5dae3": "#1f2733",
    "#8b95a7": "#556070",
    "#f2f5fa": "#0b1017",
    "#8fb8ff": "#1d4ea8",
    "#222e43": "#d3e2ff",
    "#c9d1de": "#616c7f",
    "#62d68a": "#0a6b30",
    "#ffcf5c": "#7d5200",
    "#ff7272": "#a81218",
    "#9aa5b8": "#556070",
    "#5b9bf8": "#2a66c4",
    "#c583e8": "#8238ad",
    "#3fe0cc": "#0a756a",
    "#e8915b": "#9c4a12",
    "#dfe4ec": "#3d4759",
}
"""Every colour that a renderable names, and what stands for it on a light screen."""


class LightColours(LineFilter):
    """Puts the light screen's colours in place of those that renderables name."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same segments in the light screen's colours."""
        return [
            Segment(text, style if style is None else light_style(style), control) for text, style, control in segments
        ]


@lru_cache(1024)
def light_style(style: Style) -> Style:
    """A style whose colours are those of the light screen; others stay."""
    return style + Style(color=_light(style.color), bgcolor=_light(style.bgcolor))


def _light(colour: RichColor | None) -> RichColor | None:
    if colour is None or colour.triplet is None:
        return None
    found = LIGHT.get(colour.triplet.hex)
    return None if found is None else RichColor.parse(found)
