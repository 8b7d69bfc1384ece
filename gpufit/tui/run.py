"""The TUI's entry: reads everything it shows, runs it, and says how it ended."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

from gpufit.catalog.store import load_catalog
from gpufit.datadir import profiles_dir
from gpufit.flows import choose_offers
from gpufit.profile.store import find_profiles
from gpufit.tui.app import GpufitApp
from gpufit.tui.loaded import read_profiles
from gpufit.tui.session import Session


def run_tui(paths: Sequence[Path], catalog_dir: Path | None = None, offers: Sequence[str] = ()) -> int:
    """Show profiles until the user quits; the exit status is 0. Raises what `build_app` raises."""
    build_app(paths, catalog_dir, offers).run()
    return 0


def build_app(paths: Sequence[Path], catalog_dir: Path | None = None, offers: Sequence[str] = ()) -> GpufitApp:
    """The app over profiles (those of the profiles folder when none is named, newest first), not yet running.

    `offers` names books as `flows.choose_offers` takes them. Raises UnreadableInputError for a catalog that cannot be
    read, UsageError for a book that is not there; a profile that cannot be read is a line on the screen instead.
    """
    catalog = load_catalog(catalog_dir)
    found = read_profiles(paths or find_profiles(profiles_dir()))
    chosen = choose_offers(catalog, offers, datetime.date.today())
    return GpufitApp(Session(found.profiles, catalog, chosen, found.problems, found.unfinished))
