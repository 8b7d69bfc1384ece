"""Writing the view that is on show: which format, which file."""

from __future__ import annotations

import io
from pathlib import PurePath
from typing import ClassVar

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from gpufit.errors import GpufitError, UsageError
from gpufit.tui import export
from gpufit.tui.export import Exportable
from gpufit.tui.messages import Exported
from gpufit.tui.renderables.cards import POINTER
from gpufit.tui.widgets.key_footer import KeyFooter
from gpufit.tui.widgets.words import Words

HINT = "up, down: format · tab: file name · enter writes · escape leaves"


class ExportScreen(ModalScreen[str | None]):
    """Ends with what was done, in words, or with nothing; a file that is there is replaced only when asked twice."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss(None)", "leave", key_display="esc")]
    DEFAULT_CSS = """
    ExportScreen { align: center middle; background: $background 60%; }
    ExportScreen Vertical {
        width: 76;
        max-width: 100%;
        height: auto;
        max-height: 100%;
        padding: 1 2;
        background: $panel;
        border: round $primary;
    }
    ExportScreen OptionList { height: auto; max-height: 10; border: none; padding: 0; background: $panel; }
    ExportScreen Input { margin: 1 0; }
    """

    def __init__(self, made: Exportable) -> None:
        super().__init__()
        self._made = made
        self._twice = ""
        """The file that is there, and that the next time replaces."""

    def compose(self) -> ComposeResult:
        """Formats, the file, and what is to be said."""
        first = next(iter(self._made.formats))
        with Vertical() as box:
            box.border_title = "write this view"
            yield OptionList(
                *(Option(self._line(ending, first), id=ending) for ending in self._made.formats),
                markup=False,
                compact=True,
            )
            yield Input(f"{self._made.name}{first}", id="file", compact=True)
            yield Words(HINT, id="said")
        yield KeyFooter()

    def on_option_list_option_highlighted(self, message: OptionList.OptionHighlighted) -> None:
        """The pointer goes there, and the file gets that ending."""
        for ending in self._made.formats:
            message.option_list.replace_option_prompt(ending, self._line(ending, str(message.option_id)))
        file = self.query_one("#file", Input)
        file.value = export.with_ending(file.value, str(message.option_id))

    def _line(self, ending: str, chosen: str) -> str:
        """A format; the chosen one has a pointer besides its colour."""
        return f"{POINTER if ending == chosen else ' '} {ending:6}{self._made.formats[ending]}"

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        """Write it."""
        self._begin()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Write it."""
        self._begin()

    def _begin(self) -> None:
        """Ask first where that would replace a file; a browser's downloads never do."""
        named = self.query_one("#file", Input).value
        try:
            there = not self.app.is_web and export.is_there(named)
        except UsageError as error:
            self._say(f"! {error}")
            return
        if there and self._twice != named:
            self._twice = named
            self._say(f"! {named} is there already: enter again replaces it")
            return
        self._say("writing …")
        self._write(named)

    @work(thread=True, exclusive=True, group="export")
    def _write(self, named: str) -> None:
        """A workbook takes longer than a frame."""
        try:
            if self.app.is_web:
                content = self._made.render(export.ending_of(self._made, named))
                self.post_message(Exported(f"{PurePath(named).name} goes to the browser", named, content))
            else:
                self.post_message(Exported(export.write(self._made, named), named))
        except GpufitError as error:
            self.post_message(Exported("", named, problem=str(error)))

    def on_exported(self, message: Exported) -> None:
        """Close; or say what went wrong, to be mended."""
        if message.problem:
            self._say(f"! {message.problem}")
            return
        if message.content is not None:
            self.app.deliver_binary(io.BytesIO(message.content), save_filename=PurePath(message.named).name)
        self.dismiss(message.done)

    def _say(self, words: str) -> None:
        self.query_one("#said", Words).update(words)
