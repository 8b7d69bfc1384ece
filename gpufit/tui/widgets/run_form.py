"""The form of a run: a line for each field, what is wrong with them, and the command that asks for the same."""

from __future__ import annotations

from dataclasses import replace

from textual.app import ComposeResult
from textual.containers import Grid, VerticalScroll
from textual.widget import Widget
from textual.widgets import Button, Input

from gpufit.tui.messages import FieldChanged
from gpufit.tui.renderables.form import command_line, field_title
from gpufit.tui.run_form import FIELDS, KIND_WORDS, Field, Form, Kind, command_of
from gpufit.tui.widgets.choice import Choice
from gpufit.tui.widgets.line_input import LineInput
from gpufit.tui.widgets.words import Words

KIND = "kind"
"""The field that chooses what is started."""

_LONGEST_TEXT = 400


class RunForm(VerticalScroll, can_focus=False):
    """Draws a form; what is typed and chosen goes up as messages.

    The lines of every kind are there from the start and only shown or hidden, so that no key is lost between two forms.
    """

    DEFAULT_CSS = """
    RunForm {
        height: 1fr;
        padding: 0 1;
        scrollbar-size-vertical: 1;
    }
    RunForm Grid {
        grid-size: 2;
        grid-columns: 22 1fr;
        grid-rows: 1;
        height: auto;
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
        background: $panel;
    }
    """

    def __init__(self, form: Form, id: str) -> None:  # noqa: A002  (Textual's own name)
        super().__init__(id=id)
        self._form = form
        self._shown: Kind | None = None
        """The kind whose lines hold what the form does; what is typed into them since is theirs to tell."""

    def compose(self) -> ComposeResult:
        """What is started, its fields, then what they come to."""
        with Grid():
            yield Words(field_title("start", False))
            yield Choice(KIND, tuple(Kind), self._form.kind, id=f"field-{KIND}")
        yield Words(id="kind-words")
        for kind in Kind:
            with Grid(id=str(kind)):
                for one in FIELDS[kind]:
                    yield Words(field_title(one.title, False), id=f"title-{kind}-{one.name}")
                    yield _value(kind, one)
        yield Button("start (ctrl+s)", id="start", compact=True)
        yield Words(id="run-command")

    def on_mount(self) -> None:
        """Fill it in."""
        self.show(self._form)

    def show(self, form: Form, wrong: str = "", why_not: str = "") -> None:
        """Draw a form; `wrong` names the field that cannot be understood, `why_not` says it."""
        other, self._form = form.kind is not self._shown, form
        self._shown = form.kind
        self.query_one("#kind-words", Words).update(KIND_WORDS[form.kind])
        self.query_one("#run-command", Words).update(command_line(command_of(form), why_not))
        for kind in Kind:
            self.query_one(f"#{kind}").display = kind is form.kind
        for one in FIELDS[form.kind]:
            title, value = self._line(one.name)
            title.update(field_title(one.title, one.name == wrong))
            title.display = value.display = one in form.shown
            if other and isinstance(value, Choice):
                value.show(form.value(one.name))
            elif other and isinstance(value, Input):
                value.value = form.values.get(one.name, "")

    def fill(self, form: Form) -> None:
        """Draw a form whose values were not typed here."""
        self._shown = None
        self.show(form)

    def holds(self, widget: Widget | None) -> bool:
        """Whether a widget is one of its lines."""
        return widget is not None and self in widget.ancestors

    def read(self) -> Form:
        """What the lines hold at this moment: what was typed last may still be on its way as a message."""
        values = dict(self._form.values)
        for one in FIELDS[self._form.kind]:
            value = self._line(one.name)[1]
            values[one.name] = value.value
        return replace(self._form, values=values)

    def go_to(self, name: str) -> None:
        """Put the keys into a field."""
        self._line(name)[1].focus()

    def _line(self, name: str) -> tuple[Words, Choice | Input]:
        kind = self._form.kind
        value = self.query_one(f"#field-{kind}-{name}")
        assert isinstance(value, Choice | Input)
        return self.query_one(f"#title-{kind}-{name}", Words), value

    def on_input_changed(self, message: Input.Changed) -> None:
        """Say what was typed, and where."""
        message.stop()
        name = message.input.name or ""
        if self._form.values.get(name, "") != message.value:
            self.post_message(FieldChanged(name, message.value))

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Enter goes to the next field."""
        message.stop()
        self.screen.focus_next()


def _value(kind: Kind, one: Field) -> Choice | Input:
    """What holds the value of a field."""
    place = f"field-{kind}-{one.name}"
    if one.choices:
        return Choice(one.name, one.choices, one.choices[0], id=place)
    return LineInput(
        name=one.name,
        placeholder=one.hint,
        id=place,
        compact=True,
        max_length=_LONGEST_TEXT,
        select_on_focus=False,
    )
