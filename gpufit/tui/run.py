"""The TUI's entry: reads everything it shows, runs it, and keeps what is to be remembered."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from gpufit.catalog.store import load_catalog
from gpufit.datadir import profiles_dir, state_path
from gpufit.flows import choose_offers
from gpufit.profile.store import find_profiles
from gpufit.tui.app import GpufitApp
from gpufit.tui.kept import Kept, load_kept, save_kept
from gpufit.tui.loaded import read_profiles
from gpufit.tui.session import Session


def run_tui(paths: Sequence[Path], catalog_dir: Path | None = None, offers: Sequence[str] = ()) -> str | None:
    """Show profiles until the user quits; in words what could not be kept of the view. Raises what `load_session`
    raises."""
    kept, problem = load_kept(state_path())
    session = load_session(
        paths, catalog_dir, offers, datetime.date.today(), kept, [problem] if problem else [], verdicts_first=True
    )
    GpufitApp(session).run()
    return save_kept(session.keep(kept), state_path())


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
