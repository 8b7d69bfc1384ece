"""Every message that widgets send up to their screen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from gpufit.memory.held import Held
from gpufit.report.document import FitDocument
from gpufit.report.order_document import OrderDocument
from gpufit.tui.loaded import LoadedProfile, UnfinishedProfile
from gpufit.tui.session import Question
from gpufit.tui.state import Axis, View

if TYPE_CHECKING:
    pass


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
class FieldChanged(Message):
    """Someone typed or chose something in a form."""

    name: str
    """Of the field."""
    value: str


@dataclass
class RunNews(Message):
    """The run has told something, which waits to be taken."""

    def can_replace(self, message: Message) -> bool:
        """However much it told, it is taken once."""
        return isinstance(message, RunNews)


@dataclass
class RunRead(Message):
    """The profile of a run was read again."""

    loaded: LoadedProfile | None
    """None while nothing in it can be shown."""
    lines: tuple[str, ...]
    """What came of the run, in words; empty while it goes on."""


@dataclass
class HeldChosen(Message):
    """Someone clicked a position of a switch."""

    held: Held
    """All three, with that one changed."""


@dataclass
class RowPressed(Message):
    """Someone clicked a line of a list."""

    index: int
    """Its place in the list."""


@dataclass
class ListResized(Message):
    """A list has room for other columns."""


@dataclass
class ProfileRead(Message):
    """What was typed has been read or estimated."""

    named: str
    """As it was typed."""
    found: LoadedProfile | UnfinishedProfile | str
    """The profile, or in words why there is none."""


@dataclass
class OrderMade(Message):
    """What was typed has been planned."""

    texts: Mapping[str, str]
    """What was typed, by field."""
    order: OrderDocument | str
    """The order, or in words why there is none."""
    page: str
    """The order file as Markdown; empty where there is none."""
    field: str | None = None
    """The field of the form that is at fault where there is none; None where it is none of them."""


@dataclass
class Exported(Message):
    """A view was written, or could not be."""

    done: str
    """What was done, in words."""
    named: str
    """The file, as it was typed."""
    content: bytes | None = None
    """What a browser is to save; None where it is on disk already."""
    problem: str = ""
    """Why nothing was done, in words."""


@dataclass
class AnswerFound(Message):
    """The whole answer to a question has been worked out."""

    question: Question
    answer: FitDocument | str | None
    """The document, or in words why there is none; None: it was given up, as something else was asked."""
