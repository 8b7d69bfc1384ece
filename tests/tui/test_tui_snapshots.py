"""Every screen over real profiles, as text, at two sizes; the day is fixed, and no cursor blinks.

`UPDATE_GOLDEN=1 pytest tests/tui/test_tui_snapshots.py` writes them anew.
"""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pytest
from model_files import REPOSITORY
from recorded_run import MODEL, RecordedRun
from run_screens import state_of, until
from textual.pilot import Pilot
from textual.widgets import Input
from tui_builders import screen_lines

from gpufit.sources.measure.protocol import CellKey
from gpufit.tui.app import SCREENS, GpufitApp
from gpufit.tui.run import load_session
from gpufit.tui.runner import Runner
from gpufit.tui.state import View

GOLDEN = Path(__file__).with_name("golden")
FACTS = REPOSITORY / "tests" / "facts" / "profiles"
TODAY = datetime.date(2026, 11, 30)

SHOTS: dict[str, tuple[str, ...]] = {
    **{str(view).lower(): (str(place),) for place, view in enumerate(View, 1) if view in SCREENS},
    "search": ("2", "slash", *"h100"),
    "details": ("2", "d"),
    "question": ("2", "g"),
    "help": ("2", "question_mark"),
    "compare": ("1", "down", "equals_sign"),
    "order-file": ("7", "home", "enter"),
    "export": ("2", "e"),
    "prompt": ("1", "i", *"models/tiny"),
    "palette": ("2", "ctrl+p"),
    "help-end": ("2", "question_mark", "end"),
    "axis": ("3", "x"),
    "switched": ("5", "v"),
    "run-live": (),
    "quit": ("q",),
}
"""Name -> the keys that lead there."""

LIVE = {"run-live", "quit"}
"""Those over a run that goes on."""
MOMENT = 40.0
"""Seconds into the recorded run: six cells are done, and the seventh has taken 11 of its 16 seconds."""


async def look_at_the_run(app: GpufitApp, pilot: Pilot[None]) -> None:
    """Onto the run screen, with the recorded run as far as that moment."""
    run = RecordedRun(MOMENT)
    app.runner = Runner(run, clock=run.clock)
    await pilot.press("8", "tab", "tab", *MODEL, "ctrl+s")
    await until(pilot, run.told.is_set)
    await until(pilot, lambda: state_of(app).current == CellKey(context_tokens=1024, new_tokens=8, concurrency=4))
    await app.workers.wait_for_complete()


@pytest.mark.parametrize("size", [(80, 24), (160, 48)], ids=lambda size: f"{size[0]}x{size[1]}")
@pytest.mark.parametrize("name", SHOTS)
async def test_a_screen_looks_as_it_did(
    name: str, size: tuple[int, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "profiles").mkdir()
    paths = []
    for source in sorted(FACTS.glob("*.json")):
        path = Path("profiles") / source.name
        path.write_bytes(source.read_bytes())
        paths.append(path)
    monkeypatch.setattr(Input, "cursor_blink", False)
    app = GpufitApp(load_session(paths, None, (), TODAY))
    async with app.run_test(size=size) as pilot:
        if name in LIVE:
            await look_at_the_run(app, pilot)
        await pilot.press(*SHOTS[name])
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        shown = "\n".join(line.rstrip() for line in screen_lines(app)) + "\n"
    golden = GOLDEN / f"{name}-{size[0]}x{size[1]}.txt"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden.parent.mkdir(exist_ok=True)
        golden.write_text(shown, encoding="utf-8")
    assert shown == golden.read_text(encoding="utf-8")
