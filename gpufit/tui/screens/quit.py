"""The question before the interface closes over a run that goes on."""

from __future__ import annotations

import enum
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Button

from gpufit.tui.widgets.key_footer import KeyFooter
from gpufit.tui.widgets.words import Words


class Quit(enum.Enum):
    """What is to become of the run."""

    STOP = enum.auto()
    """End it with its worker, then close."""
    LOOK = enum.auto()
    """Let it go on, and look at it."""


class QuitScreen(ModalScreen[Quit | None]):
    """Ends with what was chosen, or with nothing: everything stays as it is."""

    AUTO_FOCUS = "#look"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("s", "choose('STOP')", "stop and quit"),
        Binding("l", "choose('LOOK')", "look at it"),
        Binding("escape,c", "dismiss(None)", "cancel", key_display="esc"),
        Binding("right,down", "app.focus_next", show=False),
        Binding("left,up", "app.focus_previous", show=False),
    ]
    DEFAULT_CSS = """
    QuitScreen {
        align: center middle;
        background: $background 60%;
    }
    QuitScreen Vertical {
        width: 64;
        max-width: 100%;
        height: auto;
        padding: 1 2;
        background: $panel;
        border: round $primary;
    }
    QuitScreen Words {
        margin: 0 0 1 0;
    }
    QuitScreen Button {
        width: 1fr;
        text-align: left;
        content-align: left middle;
    }
    """

    def __init__(self, stage: str) -> None:
        super().__init__()
        self._stage = stage

    def compose(self) -> ComposeResult:
        """What goes on, and a line for each answer."""
        with Vertical() as box:
            box.border_title = "a run goes on"
            yield Words(f"Still {self._stage}: finished cells are kept, whatever you choose.")
            yield Button("s    stop it and quit", id="stop", compact=True)
            yield Button("l    let it go on, and look at it", id="look", compact=True)
            yield Button("esc  cancel", id="cancel", compact=True)
        yield KeyFooter()

    def on_button_pressed(self, message: Button.Pressed) -> None:
        """By mouse, or by enter."""
        self.dismiss({"stop": Quit.STOP, "look": Quit.LOOK}.get(message.button.id or ""))

    def action_choose(self, answer: str) -> None:
        """By a key."""
        self.dismiss(Quit[answer])
