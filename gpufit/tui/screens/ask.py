"""A question typed out: context, sequences at once, new tokens."""

from __future__ import annotations

import re
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from gpufit.errors import UsageError
from gpufit.memory.terms import Shape
from gpufit.tui.widgets.key_footer import KeyFooter
from gpufit.tui.widgets.words import Words
from gpufit.units import format_tokens, parse_count, parse_shape

FORM = "CONTEXTxCONCURRENCY+NEW, or CONTEXT alone"
_ALONE = re.compile(r"\d[\d,_.]*[km]?", re.IGNORECASE)
Asked = tuple[int, int, int | None]
"""Context tokens, sequences at once, new tokens where they were given."""


def how(shape: Shape) -> str:
    """What can be typed, and what stays as it is where less is."""
    return (
        "8kx16+256: 16 sequences at once, 8k prompt tokens each, 256 new ones; "
        f"8kx16 leaves the new ones at {format_tokens(shape.new_tokens)}, "
        f"8k the sequences at {shape.concurrency:,}, too"
    )


def asked(text: str, shape: Shape) -> Asked | None:
    """What was typed, beside what is asked now; None for anything of another form. Raises UsageError for a bad
    count."""
    if _ALONE.fullmatch(text.strip()):
        return parse_count(text, "the context"), shape.concurrency, None
    return parse_shape(text)


class AskScreen(ModalScreen[Asked | None]):
    """Ends with what was typed, or with nothing; what cannot be read is said and may be mended."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "leave", key_display="esc")]
    DEFAULT_CSS = """
    AskScreen {
        align: center middle;
        background: $background 60%;
    }
    AskScreen Vertical {
        width: 60;
        max-width: 100%;
        height: auto;
        padding: 1 2;
        background: $panel;
        border: round $primary;
    }
    AskScreen Input {
        margin: 1 0;
    }
    """

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self._shape = shape

    def compose(self) -> ComposeResult:
        """One line to type, and one that says how."""
        shape = self._shape
        with Vertical() as box:
            box.border_title = "the question"
            yield Words(how(shape))
            yield Input(f"{format_tokens(shape.context_tokens)}x{shape.concurrency}+{shape.new_tokens}", compact=True)
            yield Words("enter asks · escape leaves it as it was", id="said")
        yield KeyFooter()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Take it, or say what is wrong."""
        try:
            found = asked(message.value, self._shape)
        except UsageError as error:
            self.query_one("#said", Words).update(f"! {error}")
            return
        if found is None:
            self.query_one("#said", Words).update(f"! not of the form {FORM}: {message.value!r}")
            return
        self.dismiss(found)
