"""One of a few words, chosen by left and right, space, or the mouse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.text import Text
from textual.binding import Binding, BindingType
from textual.events import Click
from textual.widget import Widget

from gpufit.tui.messages import FieldChanged
from gpufit.tui.renderables.form import choice


class Choice(Widget, can_focus=True):
    """Draws the word chosen, and asks for the one beside it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "turn(-1)", show=False),
        Binding("right,space,enter", "turn(1)", show=False),
    ]
    DEFAULT_CSS = """
    Choice {
        width: 1fr;
        height: 1;
    }
    """

    def __init__(self, name: str, choices: Sequence[str], chosen: str, id: str) -> None:  # noqa: A002  (Textual's name)
        super().__init__(id=id)
        self._field, self._choices, self.value = name, tuple(choices), chosen

    def render(self) -> Text:
        """The line."""
        return choice(self.value, self.has_focus)

    def show(self, chosen: str) -> None:
        """Draw another word."""
        if chosen != self.value:
            self.value = chosen
            self.refresh()

    def action_turn(self, steps: int) -> None:
        """The word so many places further, around the end."""
        place = (self._choices.index(self.value) + steps) % len(self._choices)
        self.show(self._choices[place])
        self.post_message(FieldChanged(self._field, self.value))

    def on_click(self, event: Click) -> None:
        """The next word; on the sign at the left, the one before."""
        self.action_turn(-1 if event.x == 0 else 1)
