"""The TUI's entry: reads everything it shows, runs it, and keeps what is to be remembered."""

from __future__ import annotations

import asyncio
import datetime
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from gpufit.catalog.store import load_catalog
from gpufit.datadir import profiles_dir, state_path
from gpufit.flows import choose_offers
from gpufit.profile.store import find_profiles
from gpufit.tui.app import GpufitApp
from gpufit.tui.endings import Ending
from gpufit.tui.kept import Kept, load_kept, save_kept
from gpufit.tui.loaded import read_profiles
from gpufit.tui.session import Session


class Left(NamedTuple):
    """How the interface was left."""

    signal_number: int | None = None
    """The signal that ended it; None where none did."""
    failed: bool = False
    """A fault of its own ended it; the traceback has been printed."""
    not_kept: str | None = None
    """In words what could not be kept of the view."""


def run_tui(paths: Sequence[Path], catalog_dir: Path | None = None, offers: Sequence[str] = ()) -> Left:
    """Show profiles until the user quits, or a signal ends it; a run that goes on then ends with it.

    Raises what `load_session` raises.
    """
    kept, problem = load_kept(state_path())
    session = load_session(
        paths, catalog_dir, offers, datetime.date.today(), kept, [problem] if problem else [], verdicts_first=True
    )
    app = GpufitApp(session)
    terminal = sys.__stdin__.fileno() if sys.__stdin__ is not None and sys.__stdin__.isatty() else None

    def leave() -> str | None:
        not_kept = save_kept(session.keep(kept), state_path())
        if app.runner is not None:
            app.runner.end()
        return not_kept

    ending = Ending(leave, terminal)
    try:
        with ending.heard():
            asyncio.run(_show(app, ending))
    except OSError:  # a terminal that is gone takes no last word
        if ending.number is None:
            raise
    return Left(ending.number, bool(app.return_code), not_kept=leave())


async def _show(app: GpufitApp, ending: Ending) -> None:
    loop = asyncio.get_running_loop()
    with ending.closes(lambda: loop.call_soon_threadsafe(app.exit)):
        await app.run_async()


def load_session(
    paths: Sequence[Path],
    catalog_dir: Path | None,
    offers: Sequence[str],
    today: datetime.date,
    kept: Kept | None = None,
    problems: Sequence[str] = (),
    *,
    verdicts_first: bool = False,
) -> Session:
    """Everything that the app shows: profiles (those of the profiles folder when none is named, newest first).

    `offers` names books as `flows.choose_offers` takes them, whose prices age by `today`; with
    `verdicts_first` the session answers in two steps, for somebody who waits. Raises UnreadableInputError
    for a catalog that cannot be read, UsageError for a book that is not there; a profile that cannot be read is a line
    on the screen instead.
    """
    catalog = load_catalog(catalog_dir)
    found = read_profiles(paths or find_profiles(profiles_dir()))
    chosen = choose_offers(catalog, offers, today)
    session = Session(
        found.profiles, catalog, chosen, [*problems, *found.problems], found.unfinished, verdicts_first=verdicts_first
    )
    if kept is not None:
        session.restore(kept)
    return session
