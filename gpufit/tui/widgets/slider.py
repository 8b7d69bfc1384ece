"""A slider for the mouse; the keys that move it belong to the screen."""

from __future__ import annotations

from rich.text import Text
from textual.events import MouseDown, MouseMove, MouseUp
from textual.widget import Widget

from gpufit.tui.messages import SliderMoved
from gpufit.tui.renderables.slider import rail_width, slider, value_at
from gpufit.tui.state import Axis


class Slider(Widget):
    """Draws a value on its rail, and asks for another where it is clicked or dragged to."""

    def __init__(self, axis: Axis, title: str) -> None:
        super().__init__(id=f"slider-{axis}")
        self._axis, self._title = axis, title
        self._value, self._limit, self._said = 1, 1, ""
        self._held = False

    def show(self, value: int, limit: int, said: str) -> None:
        """Draw a value, in the words `said`."""
        if (value, limit, said) != (self._value, self._limit, self._said):
            self._value, self._limit, self._said = value, limit, said
            self.refresh()

    def render(self) -> Text:
        """The line."""
        return slider(self._title, self._value, self._limit, self._said, self.size.width)

    def on_mouse_down(self, event: MouseDown) -> None:
        """Take hold of the knob."""
        self._held = True
        self.capture_mouse()
        self._ask(event.x)

    def on_mouse_move(self, event: MouseMove) -> None:
        """Follow the pointer while held."""
        if self._held:
            self._ask(event.x)

    def on_mouse_up(self, event: MouseUp) -> None:
        """Let go."""
        self._held = False
        self.release_mouse()

    def _ask(self, x: int) -> None:
        place, rail = x - len(self._title) - 1, rail_width(self._title, self._said, self.size.width)
        value = value_at(place, self._limit, rail)
        if value != self._value:
            self.post_message(SliderMoved(self._axis, value))
