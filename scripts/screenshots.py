"""Draw every screen of the terminal interface over real profiles into docs/screens: `screenshots.py [PROFILE...]`.

Paths on the screens are as they are given; the demo's stand as from the folder that holds `profiles/`.
"""

from __future__ import annotations

import asyncio
import datetime
import os
import sys
from pathlib import Path

from textual.widgets import Input

from gpufit.tui.app import SCREENS, GpufitApp
from gpufit.tui.run import load_session
from gpufit.tui.state import View

REPOSITORY = Path(__file__).resolve().parent.parent
DOCS = REPOSITORY / "docs" / "screens"
FACTS = REPOSITORY / "tests" / "facts"
REAL = (Path("profiles/SmolLM2-135M-Instruct.Q4_1.json"), Path("profiles/all-MiniLM-L6-v2.json"))
"""Real runs of the demo's models."""
OFFERS = ("public-indicative",)
SIZE = (150, 44)
TODAY = datetime.date(2026, 11, 30)
"""Prices age from it."""

QUESTION = ("g", "ctrl+a", "ctrl+k", *"4096x128+8", "enter")
"""More than small cards hold, so that every verdict is there."""

SCREENS_OF: dict[str, tuple[str, ...]] = {
    **{str(view).lower(): ("2", *QUESTION, str(place)) for place, view in enumerate(View, 1) if view in SCREENS},
    "search": ("2", *QUESTION, "slash", *"rtx"),
    "compare": ("1", "space", "down", "space", "equals_sign"),
    "order-file": ("2", *QUESTION, "7", "enter"),
    "help": ("2", "question_mark"),
    "light": ("2", *QUESTION, "T"),
}
"""File name -> the keys that lead there."""


async def draw(profiles: list[Path], name: str, keys: tuple[str, ...]) -> None:
    """One screen as SVG."""
    Input.cursor_blink = False  # type: ignore[assignment]
    app = GpufitApp(load_session(profiles, None, OFFERS, TODAY))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        DOCS.mkdir(parents=True, exist_ok=True)
        (DOCS / f"{name}.svg").write_text(app.export_screenshot(title="gpufit"), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Draw every screen, or over other profiles than the demo's."""
    profiles = [Path(one) for one in arguments]
    if not profiles:
        os.chdir(FACTS)
        profiles = list(REAL)
    for name, keys in SCREENS_OF.items():
        asyncio.run(draw(profiles, name, keys))
        print(f"docs/screens/{name}.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
