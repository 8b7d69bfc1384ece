"""Draw the screens of the terminal interface into `docs/`: `screenshots.py PROFILE`."""

from __future__ import annotations

import asyncio
import datetime
import sys
from pathlib import Path

from gpufit.tui.app import GpufitApp
from gpufit.tui.run import load_session

DOCS = Path(__file__).resolve().parent.parent / "docs"
SIZE = (150, 44)
TODAY = datetime.date(2026, 11, 30)
"""Prices age from it."""

SCREENS: dict[str, tuple[str, ...]] = {
    "cards": ("plus",) * 5 + ("right",) * 3,
}
"""File name -> the keys that lead there."""


async def draw(profile: Path, name: str, keys: tuple[str, ...]) -> None:
    """One screen as SVG."""
    app = GpufitApp(load_session([profile], None, (), TODAY))
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        await pilot.press(*keys)
        await pilot.pause()
        (DOCS / f"{name}.svg").write_text(app.export_screenshot(title="gpufit"), encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Draw every screen over one profile."""
    if len(arguments) != 1:
        print("usage: screenshots.py PROFILE", file=sys.stderr)
        return 2
    for name, keys in SCREENS.items():
        asyncio.run(draw(Path(arguments[0]), name, keys))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
