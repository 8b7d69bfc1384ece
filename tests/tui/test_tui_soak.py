"""Random keys, clicks, pastes and sizes never end the interface; `scripts/tui_soak.py` does it for thousands."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
from model_files import REPOSITORY
from recordings import NAMES, left, said

from gpufit.profile.cells import Skipped
from gpufit.sources.measure.events import LAST_EVENTS, CellDone, Started

SPEC = importlib.util.spec_from_file_location("tui_soak", REPOSITORY / "scripts" / "tui_soak.py")
assert SPEC is not None
assert SPEC.loader is not None
tui_soak = importlib.util.module_from_spec(SPEC)
sys.modules["tui_soak"] = tui_soak
SPEC.loader.exec_module(tui_soak)


async def test_the_interface_is_alive_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = await tui_soak.soak(tmp_path, 80, seed=3)
    assert found.step == 80
    assert {"key", "click"} <= found.done.keys()


def test_all_keys_are_pressed() -> None:
    assert {"left", "slash", "question_mark", "T", "1", "q", "ctrl+s", "space"} <= set(tui_soak.keys())


class TestGuard:
    """What a soak may not do, so that its user's files and machine stay as they are."""

    def test_nothing_is_written_outside_its_folder(self, tmp_path: Path) -> None:
        inside, outside = tmp_path / "inside", tmp_path / "outside.txt"
        inside.mkdir()
        guard = tui_soak.GUARD
        with guard.around(inside):
            (inside / "a.txt").write_text("kept")
            (inside / "a.txt").rename(inside / "b.txt")
            with pytest.raises(PermissionError):
                outside.write_text("lost")
            with pytest.raises(PermissionError):
                (inside / "b.txt").rename(outside)
            with pytest.raises(PermissionError):
                (tmp_path / "folder").mkdir()
        assert guard.refused == [str(outside), str(outside), str(tmp_path / "folder")]
        guard.refused.clear()
        outside.write_text("free again")

    def test_no_process_is_started(self, tmp_path: Path) -> None:
        guard = tui_soak.GUARD
        with guard.around(tmp_path), pytest.raises(PermissionError, match="starts no process"):
            subprocess.run([sys.executable, "-c", ""], check=False)
        assert guard.started
        guard.started.clear()


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_whole(name: str) -> None:
    events = said(name)
    assert [isinstance(event, LAST_EVENTS) for event in events].index(True) == len(events) - 1
    begun = next((event for event in events if isinstance(event, Started)), None)
    if begun is not None:
        told = [*begun.cells, *(event.cell for event in events if isinstance(event, CellDone))]
        cells = left(name).cells
        assert [cell.key for cell in cells[: len(told)]] == [cell.key for cell in told]
        assert all(isinstance(cell.outcome, Skipped) for cell in cells[len(told) :]), (
            "an adaptive run had no need of them"
        )
