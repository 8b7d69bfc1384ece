"""The form of a run: a line for each field, what is wrong with them, and the command that asks for the same."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from gpufit.tui.messages import FieldChanged
from gpufit.tui.renderables.form import command_line, field_title
from gpufit.tui.run_form import KIND_WORDS, Field, Form, Kind, command_of
from gpufit.tui.widgets.choice import Choice

KIND = "kind"
"""The field that chooses what is started."""

_LONGEST_TEXT = 400


class RunForm(VerticalScroll, can_focus=False):
    """Draws a form; what is typed and chosen goes up as messages."""

    DEFAULT_CSS = """
    RunForm {
        height: 1fr;
        padding: 0 1;
        scrollbar-size-vertical: 1;
    }
    RunForm .line {
        height: 1;
    }
    RunForm .title {
        width: 22;
    }
    RunForm Input {
        width: 1fr;
        background: $panel;
    }
    RunForm #kind-words {
        margin: 0 0 1 22;
    }
    RunForm Button {
        margin: 1 0 1 22;
        min-width: 9;
    }
    """

    def __init__(self, form: Form, id: str) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self._form = form
        self._wrong = ""
        self._lines: tuple[Field, ...] = ()

    def compose(self) -> ComposeResult:
        """What is started, its fields, then what they come to."""
        with Horizontal(classes="line"):
            yield Static(field_title("start", False), classes="title")
            yield Choice(KIND, tuple(Kind), self._form.kind, id=f"field-{KIND}")
        yield Static(id="kind-words")
        with Widget(id="run-fields") as fields:
            fields.styles.height = "auto"
        yield Button("start (ctrl+s)", id="start", compact=True)
        yield Static(id="run-command")

    async def show(self, form: Form, wrong: str = "", why_not: str = "") -> None:
        """Draw a form; `wrong` names the field that cannot be understood, `why_not` says it."""
        again = (form.kind, form.shown) != (self._form.kind, self._lines)
        self._form = form
        self.query_one("#kind-words", Static).update(KIND_WORDS[form.kind])
        self.query_one("#run-command", Static).update(command_line(command_of(form), why_not))
        if again:
            await self._rebuild(form)
        if again or wrong != self._wrong:
            self._wrong = wrong
            for one in self._lines:
                self.query_one(f"#title-{one.name}", Static).update(field_title(one.title, one.name == wrong))

    def go_to(self, name: str) -> None:
        """Put the keys into a field."""
        self.query_one(f"#field-{name}").focus()

    async def _rebuild(self, form: Form) -> None:
        """The lines of another kind, or more of them; the keys stay in the field of the same name."""
        focused = self.screen.focused
        held = focused.id if focused is not None and focused in self.query(".value") else None
        fields = self.query_one("#run-fields")
        self._lines = form.shown
        await fields.remove_children()
        await fields.mount_all(self._line(form, one) for one in self._lines)
        found = self.query(f"#{held}") if held is not None else None
        if found:
            found.first().focus()

    def _line(self, form: Form, one: Field) -> Widget:
        held = form.value(one.name)
        value: Widget
        if one.choices:
            value = Choice(one.name, one.choices, held, id=f"field-{one.name}")
        else:
            text = form.values.get(one.name, "")
            value = Input(
                text, placeholder=one.hint, id=f"field-{one.name}", compact=True, max_length=_LONGEST_TEXT,
                select_on_focus=False,
            )  # fmt: skip
        value.add_class("value")
        title = Static(field_title(one.title, False), id=f"title-{one.name}", classes="title")
        return Horizontal(title, value, classes="line")

    def on_input_changed(self, message: Input.Changed) -> None:
        """Say what was typed, and where."""
        message.stop()
        name = (message.input.id or "").removeprefix("field-")
        if self._form.values.get(name, "") != message.value:
            self.post_message(FieldChanged(name, message.value))

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Enter goes to the next field."""
        message.stop()
        self.screen.focus_next()
