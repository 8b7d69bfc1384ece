"""Every message that widgets send up to their screen."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message


@dataclass
class CardPressed(Message):
    """Someone clicked a row of the card list."""

    index: int
    """Position in the list as it stands on screen."""
