"""The profiles screen: what is here, and from it open one, compare two, read another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual import work
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input

from gpufit.datadir import profiles_dir
from gpufit.errors import GpufitError
from gpufit.flows import names_model
from gpufit.report.profiles import Listed, ProfilesDocument, build_profiles_document
from gpufit.report.profiles_table import profiles_report
from gpufit.tui import shelf, state
from gpufit.tui.export import Exportable, of_tables
from gpufit.tui.keys import PROFILES, bindings
from gpufit.tui.loaded import LoadedProfile, UnfinishedProfile, profile_named
from gpufit.tui.messages import ListResized, ProfileRead, RowPressed
from gpufit.tui.renderables import listed, profiles
from gpufit.tui.renderables.header import problem_lines
from gpufit.tui.renderables.pages import empty_page
from gpufit.tui.screens.base import SessionScreen
from gpufit.tui.screens.compare import CompareScreen
from gpufit.tui.session import Session
from gpufit.tui.shelf import Shelf
from gpufit.tui.state import Event, View
from gpufit.tui.widgets.line_list import LineList
from gpufit.tui.widgets.scroll import Scroll
from gpufit.tui.widgets.words import Words

PROMPT = "a profile's file, or a model to estimate (directory, .gguf, hub id); enter"


class ProfilesScreen(SessionScreen):
    """Every profile with its evidence, device and date."""

    VIEW = View.PROFILES
    AUTO_FOCUS = "LineList"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(PROFILES)]
    DEFAULT_CSS = """
    ProfilesScreen #title { height: 1; padding: 0 1; background: $panel; }
    ProfilesScreen #problems { display: none; }
    ProfilesScreen #prompt { display: none; height: 1; margin: 0 1; }
    ProfilesScreen #said { display: none; height: auto; max-height: 3; padding: 0 1; background: $panel; }
    ProfilesScreen #columns { height: 1; padding: 0 1; }
    ProfilesScreen #halves { height: 1fr; layout: vertical; }
    ProfilesScreen.-wide #halves { layout: horizontal; }
    ProfilesScreen #profiles { height: 1fr; width: 1fr; }
    ProfilesScreen #profile { height: 1fr; width: 1fr; padding: 0 1; border-top: solid $primary 50%; }
    ProfilesScreen.-wide #profile { width: 2fr; border-top: none; border-left: solid $primary 50%; }
    ProfilesScreen.-wide #profiles { width: 3fr; height: 1fr; }
    ProfilesScreen #profile:focus { border-top: heavy $accent; }
    ProfilesScreen #instead { display: none; height: 1fr; padding: 1 2; }
    """

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._shelf = Shelf(cursor=session.state.profile)
        self._says = False
        """Whether something is said that escape takes away."""

    def compose_view(self) -> Iterable[Widget]:
        """Top to bottom, as they stand on screen."""
        yield Words(id="title")
        yield Words(id="problems")
        yield Input(placeholder=PROMPT, id="prompt", compact=True)
        yield Words(id="said")
        yield Words(id="columns")
        with Horizontal(id="halves"):
            yield LineList(id="profiles")
            with Scroll(id="profile"):
                yield Words(id="about")
        yield Words(id="instead")

    @property
    def listed(self) -> tuple[LoadedProfile | UnfinishedProfile, ...]:
        """All that is here; those that can be asked come first, as the other screens count them."""
        return (*self.session.profiles, *self.session.unfinished)

    def _document(self) -> ProfilesDocument:
        return build_profiles_document(
            Listed(one.profile, one.where, one.start)
            if isinstance(one, LoadedProfile)
            else Listed(one.profile, one.where, None, one.why)
            for one in self.listed
        )

    def exportable(self) -> Exportable | None:
        """The list; None while it is empty."""
        return (
            of_tables(profiles_report(self._document()), "gpufit", tuple(one.where for one in self.listed))
            if self.listed
            else None
        )

    def draw(self) -> None:
        """The list, and the profile under the cursor."""
        session, found = self.session, self.listed
        self._shelf = shelf.put(self._shelf, self._shelf.cursor, len(found))
        opened = session.state.profile if session.profiles else -1
        rows = profiles.entries(self._document(), self._shelf.marked, opened)
        problems = self.query_one("#problems", Words)
        problems.update(problem_lines(session.problems))
        problems.display = bool(session.problems and found)
        for name in ("#columns", "#halves"):
            self.query_one(name).display = bool(found)
        instead = self.query_one("#instead", Words)
        instead.display = not found
        self.query_one("#title", Words).update(
            profiles.title(len(found), len(session.unfinished), len(self._shelf.marked)), layout=False
        )
        if not found:
            instead.update(empty_page(f"{profiles_dir()}/", session.problems, here_imports=True))
            return
        lines = self.query_one(LineList)
        placed = listed.place(profiles.COLUMNS, rows, lines.line_width)
        self.query_one("#columns", Words).update(listed.heading(placed), layout=False)
        at = self._shelf.cursor
        lines.show(len(rows), at, lambda index: listed.line(placed, rows[index], index == at))
        self.query_one("#about", Words).update(profiles.details(rows[at], kept=not names_model(found[at].where)))

    def action_move(self, event: str) -> None:
        """The cursor elsewhere."""
        page = self.query_one(LineList).page
        self._put(shelf.move(self._shelf, Event(event), page, len(self.listed)))

    def on_list_resized(self, message: ListResized) -> None:
        """Choose the columns anew."""
        self.draw()

    def on_row_pressed(self, message: RowPressed) -> None:
        """The cursor to the line that was clicked; a click on the line under it opens."""
        if message.index == self._shelf.cursor:
            self.action_open()
        else:
            self._put(shelf.put(self._shelf, message.index, len(self.listed)))

    def action_open(self) -> None:
        """Ask the profile under the cursor, on the cards screen."""
        at = self._shelf.cursor
        if at < len(self.session.profiles):
            self.session.go(state.with_profile(self.session.state, at))
            self.gpufit_app.look_at(View.CARDS)
        elif self.listed:
            self._say(self.session.unfinished[at - len(self.session.profiles)].why)

    def action_mark(self) -> None:
        """Mark the profile under the cursor, or take its mark away."""
        if self.listed:
            self._put(shelf.mark(self._shelf, self.listed[self._shelf.cursor].where))

    def action_compare(self) -> None:
        """Two profiles side by side."""
        found = self.listed
        chosen = shelf.pair(self._shelf, [one.where for one in found], self.session.state.profile)
        if chosen is None:
            self._say("a comparison is of two: mark one with space, then put the cursor on the other")
            return
        a, b = chosen
        self.app.push_screen(CompareScreen(found[a], found[b]))

    def action_import(self) -> None:
        """Ask for a file or a model; what is typed next is already in the prompt."""
        prompt = self.query_one("#prompt", Input)
        prompt.display = True
        self.set_focus(prompt)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a name is typed, every other key is a letter of it; the way back shows where there is one."""
        typing = isinstance(self.focused, Input)
        return typing or self._says if action == "back" else not typing

    def action_back(self) -> None:
        """Away with the prompt, and with what was said."""
        self.query_one("#prompt", Input).display = False
        self._say("")
        self.query_one(LineList).focus()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Read or estimate what was typed."""
        named = message.value.strip()
        if named:
            self._say(f"reading {named} …")
            self._read(named)

    @work(thread=True, exclusive=True, group="read", exit_on_error=True)
    def _read(self, named: str) -> None:
        """A hub's files may take their time."""
        try:
            self.post_message(ProfileRead(named, profile_named(named)))
        except GpufitError as error:
            self.post_message(ProfileRead(named, str(error)))

    def on_profile_read(self, message: ProfileRead) -> None:
        """Take what was read, with the cursor on it; or say why there is nothing."""
        if isinstance(message.found, str):
            self._say(message.found)
            return
        self.session.open(message.found)
        self.query_one("#prompt", Input).value = ""
        self.action_back()
        where = [one.where for one in self.listed]
        self._put(shelf.put(self._shelf, where.index(message.found.where), len(where)))

    def _put(self, to: Shelf) -> None:
        self._shelf = to
        self.draw()

    def _say(self, words: str) -> None:
        said = self.query_one("#said", Words)
        said.update(words)
        said.display = self._says = bool(words)
        self.refresh_bindings()
