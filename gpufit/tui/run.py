"""The TUI's entry: reads everything it shows, runs it, and says how it ended."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpufit.catalog.store import load_catalog
from gpufit.datadir import profiles_dir
from gpufit.profile.store import find_profiles
from gpufit.tui.app import GpufitApp
from gpufit.tui.loaded import read_profiles


def run_tui(paths: Sequence[Path], catalog_dir: Path | None = None) -> int:
    """Show profiles (those of the profiles folder when none is named, newest first) until the user quits.

    Returns exit code 0. Raises UnreadableInputError for a catalog that cannot be read; a profile that cannot be
    read is a line on the screen instead.
    """
    catalog = load_catalog(catalog_dir)
    profiles, problems = read_profiles(paths or find_profiles(profiles_dir()))
    GpufitApp(profiles, catalog, catalog.offer_book(), problems).run()
    return 0
