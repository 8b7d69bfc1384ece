"""The entry: what it reads, from where, and what it does with what cannot be read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from builders import make_profile

from gpufit.datadir import state_path
from gpufit.errors import UnreadableInputError, UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.store import save_profile
from gpufit.tui import run
from gpufit.tui.loaded import LoadedProfile, read_profiles
from gpufit.tui.session import Session
from gpufit.tui.state import Axis, ViewState, with_shape

CLOSED = run.Left()


class ShownApp:
    """Stands where the app would run, and keeps what it was given."""

    shown: ShownApp | None = None
    changes: Sequence[Callable[[ViewState], ViewState]] = ()
    """What the user does before quitting."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.profiles, self.offers, self.problems = session.profiles, session.offers, session.problems
        self.runner, self.return_code = None, 0

    async def run_async(self) -> None:
        ShownApp.shown = self
        for change in self.changes:
            self.session.go(change(self.session.state))


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> type[ShownApp]:
    """No terminal: the app keeps what it would show. The working directory is empty."""
    monkeypatch.setattr(run, "GpufitApp", ShownApp)
    monkeypatch.setattr(ShownApp, "changes", ())
    monkeypatch.chdir(tmp_path)
    return ShownApp


def names(profiles: Sequence[LoadedProfile]) -> list[str]:
    return [Path(one.where).name for one in profiles]


def test_without_paths_the_folder_is_read_newest_first(shown: type[ShownApp]) -> None:
    for age, name in ((30, "old"), (10, "new"), (20, "middle")):
        path = Path("profiles") / f"{name}.json"
        save_profile(make_profile(), path)
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    assert run.run_tui([]) == CLOSED
    assert shown.shown is not None
    assert names(shown.shown.profiles) == ["new.json", "middle.json", "old.json"]


def test_without_any_profile_it_still_runs(shown: type[ShownApp]) -> None:
    assert run.run_tui([]) == CLOSED
    assert shown.shown is not None
    assert not shown.shown.profiles


def test_named_paths_keep_their_order(shown: type[ShownApp], tmp_path: Path) -> None:
    for name in ("b", "a"):
        save_profile(make_profile(), tmp_path / f"{name}.json")
    assert run.run_tui([tmp_path / "b.json", tmp_path / "a.json"]) == CLOSED
    assert shown.shown is not None
    assert names(shown.shown.profiles) == ["b.json", "a.json"]


def test_books_are_the_default_ones_or_those_named(shown: type[ShownApp]) -> None:
    for named, expected in (([], "blank"), (["public-indicative"], "public-indicative")):
        assert run.run_tui([], offers=named) == CLOSED
        assert shown.shown is not None
        assert shown.shown.offers.names == expected
    with pytest.raises(UsageError, match="no offer book 'acme'"):
        run.run_tui([], offers=["acme"])


def test_a_catalog_that_cannot_be_read_is_the_callers(shown: type[ShownApp], tmp_path: Path) -> None:
    with pytest.raises(UnreadableInputError):
        run.run_tui([], tmp_path / "missing")


def test_what_cannot_be_shown_is_a_line_and_the_rest_is_read(tmp_path: Path) -> None:
    broken, unmeasured, good = tmp_path / "broken.json", tmp_path / "unmeasured.json", tmp_path / "good.json"
    broken.write_text('{"schema_version": 1, "gp')
    save_profile(make_profile(cells=(), memory_model=None), unmeasured)
    save_profile(make_profile(), good)
    found = read_profiles([broken, tmp_path / "missing.json", tmp_path, unmeasured, good])
    assert names(found.profiles) == ["good.json"]
    assert len(found.problems) == 3
    assert all(str(tmp_path) in problem and "\n" not in problem for problem in found.problems)
    assert [one.where for one in found.unfinished] == [str(unmeasured)]
    assert "no measured cell" in found.unfinished[0].why


def test_only_the_tui_imports_textual() -> None:
    code = "import sys, gpufit.flows, gpufit.report.document, gpufit.catalog.store; sys.exit('textual' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


class TestKept:
    def ask(self, state: ViewState) -> ViewState:
        listing = replace(state.listing, vendor="AMD", search="mi")
        return with_shape(replace(state, axis=Axis.CONCURRENCY, listing=listing), 700, 9, 3)

    def test_the_next_run_begins_where_this_one_ended(self, shown: type[ShownApp], tmp_path: Path) -> None:
        save_profile(make_profile(), tmp_path / "a.json")
        save_profile(make_profile(), tmp_path / "b.json")
        shown.changes = (self.ask,)
        assert run.run_tui([tmp_path / "a.json"]) == CLOSED
        shown.changes = ()
        assert run.run_tui([Path("a.json")]) == CLOSED  # the same file by another name
        assert shown.shown is not None
        state = shown.shown.session.state
        assert (state.shape, state.axis, state.listing.vendor) == (Shape(700, 3, 9), Axis.CONCURRENCY, "AMD")
        assert not state.listing.search, "a search box that is closed hides no card"
        assert run.run_tui([tmp_path / "b.json"]) == CLOSED
        assert shown.shown.session.state.shape == Shape(512, 4, 4), "another profile has a scenario of its own"

    @pytest.mark.parametrize("content", [b"{", b"[]", b'{"view": "Nothing"}', b"\xff"])
    def test_damage_is_said_and_loses_nothing(self, content: bytes, shown: type[ShownApp]) -> None:
        state_path().parent.mkdir(parents=True)
        state_path().write_bytes(content)
        assert run.run_tui([]) == CLOSED
        assert shown.shown is not None
        (problem,) = shown.shown.problems
        assert "what was kept of the last run is damaged" in problem
        assert run.run_tui([]) == CLOSED
        assert not shown.shown.problems, "what was written at the end is whole"

    def test_that_nothing_can_be_kept_is_the_callers_to_say(self, shown: type[ShownApp]) -> None:
        state_path().parent.parent.mkdir(parents=True, exist_ok=True)
        state_path().parent.write_text("a file in its place")
        problem = run.run_tui([]).not_kept
        assert problem is not None
        assert str(state_path()) in problem
