"""The application: takes what is already loaded, and opens the right screen."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.theme import Theme

from gpufit.catalog.offers import Offers
from gpufit.catalog.record import Catalog
from gpufit.datadir import profiles_dir
from gpufit.tui.loaded import LoadedProfile
from gpufit.tui.screens.cards import CardsScreen
from gpufit.tui.screens.empty import EmptyScreen

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


class GpufitApp(App[None]):
    """All catalog cards against one profile at a time. Does no reading of its own."""

    TITLE = "gpufit"
    CSS_PATH = Path(__file__).with_name("gpufit.tcss")
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [  # type: ignore[misc]
        (0, "-narrow"),
        (124, "-medium"),
        (150, "-wide"),
    ]
    VERTICAL_BREAKPOINTS: ClassVar[list[tuple[int, str]] | None] = [(0, "-short"), (44, "-tall")]  # type: ignore[misc]
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "quit"),
        Binding("ctrl+c", "quit", "quit", show=False, priority=True),
    ]

    def __init__(
        self, profiles: Sequence[LoadedProfile], catalog: Catalog, offers: Offers, problems: Sequence[str] = ()
    ) -> None:
        super().__init__()
        self._profiles = tuple(profiles)
        self._catalog = catalog
        self._offers = offers
        self._problems = tuple(problems)

    def on_mount(self) -> None:
        """Open the cards, or what to do when there is nothing to show."""
        self.register_theme(THEME)
        self.theme = THEME.name
        if self._profiles:
            self.push_screen(CardsScreen(self._profiles, self._catalog, self._offers, self._problems))
        else:
            self.push_screen(EmptyScreen(f"{profiles_dir()}/", self._problems))
