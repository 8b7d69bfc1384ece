"""The application: one session, and a screen for each way to look at it."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import BindingType
from textual.screen import ModalScreen
from textual.theme import Theme

from gpufit.tui import state
from gpufit.tui.keys import EVERYWHERE, bindings
from gpufit.tui.screens.base import SessionScreen
from gpufit.tui.screens.help import HelpScreen
from gpufit.tui.session import Session
from gpufit.tui.state import View

THEME = Theme(
    name="gpufit",
    primary="#5b9bf8",
    secondary="#c583e8",
    accent="#8fb8ff",
    foreground="#d5dae3",
    background="#0f131a",
    surface="#0f131a",
    panel="#1a212d",
    dark=True,
)

SCREENS: Mapping[View, str] = {
    View.PROFILES: "profiles:ProfilesScreen",
    View.CARDS: "cards:CardsScreen",
}
"""Module in `tui.screens` and class of each screen, imported when it is first looked at: some bring libraries."""


class GpufitApp(App[None]):
    """Does no reading of its own: the session is loaded before it starts."""

    TITLE = "gpufit"
    CSS_PATH = Path(__file__).with_name("gpufit.tcss")
    COMMAND_PALETTE_BINDING = "ctrl+p"
    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [  # type: ignore[misc]
        (0, "-narrow"),
        (124, "-medium"),
        (150, "-wide"),
    ]
    VERTICAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [(0, "-short"), (44, "-tall")]  # type: ignore[misc]
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(EVERYWHERE)]

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session
        self.views = tuple(view for view in View if view in SCREENS)
        """The screens, in the order of their keys."""

    def on_mount(self) -> None:
        """Open the screen that the state looks at."""
        self.register_theme(THEME)
        self.theme = THEME.name
        for view in SCREENS:
            self.add_mode(view, lambda view=view: self._open(view))  # type: ignore[misc]
        self.look_at(self.session.state.view)

    def _open(self, view: View) -> SessionScreen:
        module, _, name = SCREENS[view].partition(":")
        screen: SessionScreen = getattr(importlib.import_module(f"gpufit.tui.screens.{module}"), name)(self.session)
        return screen

    def look_at(self, view: View) -> None:
        """Show another screen over the same state."""
        if view in SCREENS:
            self.session.go(state.look_at(self.session.state, view))
            self.switch_mode(view)

    def action_look_at(self, view: str) -> None:
        """The same, by a key."""
        self.look_at(View(view))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """A key for a screen only works where there is one, and not under an open dialog."""
        if action == "look_at":
            return View(str(parameters[0])) in SCREENS and not isinstance(self.screen, ModalScreen)
        return True

    def action_help(self) -> None:
        """Show the help over any screen."""
        if not isinstance(self.screen, ModalScreen):
            self.push_screen(HelpScreen(self.views))
