"""Every message that widgets send up to their screen."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from gpufit.memory.held import Held
from gpufit.tui.state import Axis, View


@dataclass
class CardPressed(Message):
    """Someone clicked a row of the card list."""

    index: int
    """Position in the list as it stands on screen."""


@dataclass
class ViewPressed(Message):
    """Someone clicked a screen's name in the bar at the top."""

    view: View


@dataclass
class SliderMoved(Message):
    """Someone dragged a slider, or clicked on its rail."""

    axis: Axis
    value: int
    """Tokens or sequences."""

    def can_replace(self, message: Message) -> bool:
        """Only the last of several places matters."""
        return isinstance(message, SliderMoved) and message.axis is self.axis


@dataclass
class HeldChosen(Message):
    """Someone clicked a position of a switch."""

    held: Held
    """All three, with that one changed."""
