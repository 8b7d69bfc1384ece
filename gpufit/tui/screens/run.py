"""The run screen: a form that starts a run, how far it has come, and what its cells came to."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from textual import work
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Button

from gpufit.flows import default_shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.record import Profile
from gpufit.report.run_text import estimate_line, summary_lines
from gpufit.sources.measure.events import LAST_EVENTS, CellDone, Refused, RunRequest
from gpufit.tui import run_state, state
from gpufit.tui.export import Exportable, of_run
from gpufit.tui.keys import RUN, bindings
from gpufit.tui.loaded import read_profiles
from gpufit.tui.messages import FieldChanged, RunNews, RunRead
from gpufit.tui.renderables import run as drawn
from gpufit.tui.run_asked import asks_for, in_form_words, of_request
from gpufit.tui.run_form import Form, Kind, WrongFieldError, filled, of_kind, request_of
from gpufit.tui.run_state import Stage
from gpufit.tui.runner import Runner
from gpufit.tui.screens.base import SessionScreen
from gpufit.tui.session import Session
from gpufit.tui.state import View
from gpufit.tui.widgets.run_form import KIND, RunForm
from gpufit.tui.widgets.words import Words

TWO_COLUMNS, THREE_COLUMNS = 110, 180
"""From so many columns on, form and progress stand side by side; then the parts beside the cells, too."""


class RunScreen(SessionScreen):
    """Starts runs, one at a time, and shows the last one; it goes on while another screen is looked at."""

    VIEW = View.RUN
    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(RUN)]
    DEFAULT_CSS = """
    RunScreen #run {
        height: 1fr;
    }
    RunScreen #progress {
        width: 1fr;
        padding: 0 1;
        scrollbar-size-vertical: 1;
        scrollbar-gutter: stable;
    }
    RunScreen #progress Words {
        margin: 0 0 1 0;
    }
    RunScreen #left, RunScreen #right {
        height: auto;
    }
    RunScreen.-three #progress {
        layout: horizontal;
    }
    RunScreen.-two #form, RunScreen.-three #form {
        width: 58;
        border-right: solid $primary 50%;
    }
    RunScreen.-three #form {
        width: 62;
    }
    RunScreen.-three #left, RunScreen.-three #right {
        width: 1fr;
        margin: 0 2 0 0;
    }
    RunScreen.-one #progress, RunScreen.-one.-shows-progress #form {
        display: none;
    }
    RunScreen.-one.-shows-progress #progress {
        display: block;
    }
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._form = Form()
        self._lines: tuple[str, ...] = ()
        self._came_from: Widget | None = None
        """The line of the form that had the keys when the run began; None where none had."""
        self._reads = False
        self._reads_again = False

    @property
    def runner(self) -> Runner:
        """Who holds the run; one for the whole app."""
        if self.gpufit_app.runner is None:
            self.gpufit_app.runner = Runner()
        return self.gpufit_app.runner

    def compose_view(self) -> Iterable[Widget]:
        """Form and progress."""
        with Horizontal(id="run"):
            yield RunForm(self._form, id="form")
            with VerticalScroll(id="progress"):
                with Vertical(id="left"):
                    yield Words(id="status")
                    yield Words(id="summary")
                    yield Words(id="cells")
                    yield Words(id="outcomes")
                with Vertical(id="right"):
                    yield Words(id="parts")

    def on_mount(self) -> None:
        """While a run goes on, its clock is drawn every second."""
        self.set_interval(1.0, self._tick)

    def draw(self) -> None:
        """The run, as far as it has come."""
        width = self.size.width
        columns = "-three" if width >= THREE_COLUMNS else "-two" if width >= TWO_COLUMNS else "-one"
        for name in ("-one", "-two", "-three"):
            self.set_class(name == columns, name)
        run = self.runner.state
        room = self.query_one("#left").size.width or width
        self._draw_status()
        known = run.started is not None
        for name, shown in (
            ("cells", drawn.cells_section(run, room) if known else None),
            ("outcomes", drawn.outcome_lines(run, room) if run.cells else None),
            ("parts", drawn.parts_section(run) if run.peaks else None),
            ("summary", drawn.summary(self._lines) if self._lines else None),
        ):
            part = self.query_one(f"#{name}", Words)
            part.display = shown is not None
            part.update(shown or "")
        self.refresh_bindings()

    def _draw_status(self) -> None:
        room = self.query_one("#left").size.width or self.size.width
        self.query_one("#status", Words).update(drawn.status(self.runner.state, self.runner.clock(), room))

    def _tick(self) -> None:
        if self.is_current and self.runner.state.alive:
            self._draw_status()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A key only shows where it does something."""
        run = self.runner.state
        works = {
            "start": not run.alive,
            "stop": run.may_stop,
            "again": run_state.again(run) is not None,
            "open": self._place() is not None,
            "form": self.has_class("-one"),
        }
        return works.get(action, True)

    def on_field_changed(self, message: FieldChanged) -> None:
        """Take what was typed or chosen."""
        if message.name == KIND:
            self._form = of_kind(self._form, Kind(message.value))
        else:
            self._form = filled(self._form, message.name, message.value)
        self.query_one(RunForm).show(self._form)
        if run_state.refused_at_once(self.runner.state):
            # What was refused is not asked for any more.
            self.runner.forget()
            self.draw()

    def action_more(self) -> None:
        """All settings, or the usual ones."""
        self._form = Form(self._form.kind, self._form.values, not self._form.more)
        self.query_one(RunForm).show(self._form)

    def action_leave(self) -> None:
        """Out of the form."""
        self.set_focus(None)

    def action_form(self) -> None:
        """Form or progress."""
        self.toggle_class("-shows-progress")

    def on_button_pressed(self, message: Button.Pressed) -> None:
        """The form's own button."""
        if not self.runner.state.alive:
            self.action_start()

    def action_start(self) -> None:
        """Start what the form asks for, or say what is wrong with it."""
        form = self.query_one(RunForm)
        self._form = form.read()
        try:
            request = request_of(self._form)
        except WrongFieldError as error:
            self.remove_class("-shows-progress")
            form.show(self._form, error.name, str(error))
            form.go_to(error.name)
            return
        form.show(self._form)
        self._begin(request)

    def action_again(self) -> None:
        """Go on with the run, or start it again."""
        request = run_state.again(self.runner.state)
        asked = self.runner.state.request
        if request is None or asked is None:
            return
        if asks_for(self._form, asked):
            # What ctrl+s would start is what goes on here, so the form must not say that it replaces the file.
            self._form = of_request(self._form, request)
            self.query_one(RunForm).fill(self._form)
        self._begin(request)

    def _begin(self, request: RunRequest) -> None:
        self._lines = ()
        self._came_from = self.focused if self.query_one(RunForm).holds(self.focused) else None
        self.runner.begin(request, lambda: self.post_message(RunNews()))
        self.add_class("-shows-progress")
        self.query_one("#progress").focus()
        self.draw()

    def action_stop(self) -> None:
        """Ask the run to end."""
        self.runner.stop()
        self.draw()

    def exportable(self) -> Exportable | None:
        """The run's profile; None before it is written for the first time."""
        output = self.runner.state.output
        return of_run(output) if output and Path(output).is_file() else None

    def action_open(self) -> None:
        """The cards for the run's profile, at its own scenario."""
        place = self._place()
        if place is not None:
            to = state.with_profile(self.session.state, place)
            self.session.go(state.press(to, state.Event.RESET))
            self.gpufit_app.look_at(View.CARDS)

    def _place(self) -> int | None:
        """The run's profile among those of the session."""
        output = self.runner.state.output
        return self.session.place_of(output) if output else None

    def on_run_news(self, message: RunNews) -> None:
        """Take what the run has told, and read its profile again where that has changed."""
        taken = self.runner.take()
        if any(isinstance(event, (CellDone, *LAST_EVENTS)) for event in taken):
            self._read_profile()
        if any(isinstance(event, Refused) for event in taken) and run_state.refused_at_once(self.runner.state):
            self._back_to_the_form()
        self.gpufit_app.run_moved()

    def _back_to_the_form(self) -> None:
        """What was asked for has to be asked otherwise: the keys go back, unless they have moved since."""
        run, form = self.runner.state, self.query_one(RunForm)
        moved = not self.is_current or self.focused is not self.query_one("#progress")
        if self._came_from is None or run.request is None or moved:
            return
        self.remove_class("-shows-progress")
        form.show(self._form, "existing" if run.there else "", in_form_words(run.request, run.reason, run.there))
        if run.there:
            form.go_to("existing")
        else:
            self.set_focus(self._came_from)

    def _read_profile(self) -> None:
        """One at a time: what changes meanwhile is read after it."""
        if self._reads:
            self._reads_again = True
        elif self.runner.state.output:
            self._reads = True
            self._read(self.runner.state.output, self.runner.state.stage is Stage.FINISHED)

    @work(thread=True, exclusive=True, group="profile")
    def _read(self, output: str, finished: bool) -> None:
        """Off the screen's own thread: a profile of many cells takes its time."""
        found = read_profiles([Path(output)]).profiles
        loaded = found[0] if found else None
        lines = _what_came_of_it(loaded.profile, output) if loaded is not None and finished else ()
        self.post_message(RunRead(loaded, lines))

    def on_run_read(self, message: RunRead) -> None:
        """Let every screen answer for it."""
        self._reads = False
        self._lines = message.lines
        if message.loaded is not None:
            self.session.take(message.loaded)
        if self._reads_again:
            self._reads_again = False
            self._read_profile()
        self.gpufit_app.draw_again()


def _what_came_of_it(profile: Profile, output: str) -> tuple[str, ...]:
    """A finished run in the command's own words."""
    if profile.evidence is Evidence.COMPUTED:
        return (estimate_line(profile, default_shape(profile)), f"wrote {output}; next: gpufit fit {output}")
    return tuple(summary_lines(profile, Path(output)))
