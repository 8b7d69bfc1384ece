"""Real runs of a tiny model through the run screen, from the form to the cards that answer for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from run_screens import MEDIUM, state_of, text_of, until
from run_scripts import bare_config
from textual.pilot import Pilot
from tui_builders import CATALOG, OFFERS, screen_text

from gpufit.profile.evidence import Evidence
from gpufit.profile.store import load_profile
from gpufit.report.run_text import summary_lines
from gpufit.tui.app import GpufitApp
from gpufit.tui.run_state import Stage
from gpufit.tui.screens.cards import CardsScreen
from gpufit.tui.session import Session

pytestmark = pytest.mark.model


async def type_fields(pilot: Pilot[None], *texts: str) -> None:
    """One text after another, from the field that has the keys."""
    for text in texts:
        await pilot.press(*text, "tab")


@pytest.fixture
def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GpufitApp:
    """In an empty folder, without any profile."""
    monkeypatch.chdir(tmp_path)
    return GpufitApp(Session((), CATALOG, OFFERS))


async def run_to_its_end(app: GpufitApp, pilot: Pilot[None]) -> None:
    await pilot.press("ctrl+s")
    await until(pilot, lambda: not state_of(app).alive, 400)
    await app.workers.wait_for_complete()
    await until(pilot, lambda: bool(app.session.profiles))


async def test_a_profile_run(app: GpufitApp, tmp_path: Path) -> None:
    from model_files import save_llama

    save_llama(tmp_path / "tiny")
    async with app.run_test(size=MEDIUM) as pilot:
        await pilot.press("8", "tab", "tab")
        await type_fields(pilot, "tiny", "32,64,128", "1,2", "4")
        assert "$ gpufit profile tiny --context 32,64,128 --concurrency 1,2 --new-tokens 4" in text_of(app, "#form")
        await run_to_its_end(app, pilot)
        assert state_of(app).stage is Stage.FINISHED
        path = Path("profiles/tiny.json")
        profile = load_profile(path)
        assert (profile.evidence, profile.complete, len(profile.measured_cells)) == (Evidence.MEASURED, True, 6)
        text = text_of(app, "#progress")
        assert "6 of 6 cells" in text
        assert "What came of it" in text
        assert summary_lines(profile, path)[0] in text.replace("· ", "")
        await pilot.press("o")
        assert isinstance(app.screen, CardsScreen)
        assert "context 128 + 4 new x 2 at once: fits" in screen_text(app)


async def test_a_simulation(app: GpufitApp, tmp_path: Path) -> None:
    bare_config(tmp_path / "tiny", max_position_embeddings=4096)
    async with app.run_test(size=MEDIUM) as pilot:
        await pilot.press("8", "tab", "right")
        await pilot.pause()
        await pilot.press("tab")
        await type_fields(pilot, "tiny", "64,128", "1,2")
        await run_to_its_end(app, pilot)
        assert state_of(app).stage is Stage.FINISHED
        assert load_profile(Path("profiles/tiny.json")).evidence is Evidence.SIMULATED
        assert "◐ simulated" in text_of(app, "#progress")
        assert app.session.document is not None
