"""Press random keys, click and resize, a few thousand times: `tui_soak.py [COUNT [SEED [PROFILE...]]]`.

Ends with 0 when the interface is alive at the end, else with the traceback that ended it; a seed repeats it.
"""

from __future__ import annotations

import asyncio
import datetime
import random
import sys
from pathlib import Path

from gpufit.tui.app import SCREENS, GpufitApp
from gpufit.tui.keys import EVERYWHERE, OF_VIEWS, QUESTION
from gpufit.tui.run import load_session

REPOSITORY = Path(__file__).resolve().parent.parent
PROFILES = sorted((REPOSITORY / "tests" / "facts" / "profiles").glob("*.json"))
TODAY = datetime.date(2026, 11, 30)
SIZES = ((80, 24), (120, 40), (160, 48), (200, 60), (40, 12), (20, 5), (250, 20))


class Soaked(GpufitApp):
    """Does not quit when it is asked to, by whichever way."""

    async def action_quit(self) -> None:
        """Goes on."""


def keys() -> list[str]:
    """Every key of every screen, and what people type."""
    of_screens = (key for view in SCREENS for key in OF_VIEWS.get(view, ()))
    found = [name for one in (*EVERYWHERE, *QUESTION, *of_screens) for name in one.keys.split(",")]
    return [*found, "enter", "escape", "escape", "tab", "shift+tab", "space", "backspace", *"abc078x+"]


async def soak(paths: list[Path], count: int, seed: int, say: bool = False) -> None:
    """Raises whatever ends the interface."""
    chance, names = random.Random(seed), keys()
    app = Soaked(load_session(paths, None, (), TODAY))
    async with app.run_test(size=SIZES[0]) as pilot:
        for step in range(count):
            match chance.random():
                case luck if luck < 0.02:
                    await pilot.resize_terminal(*chance.choice(SIZES))
                case luck if luck < 0.06:
                    size = app.size
                    await pilot.click(offset=(chance.randrange(size.width), chance.randrange(size.height)))
                case _:
                    await pilot.press(chance.choice(names))
            if not app.is_running:
                raise RuntimeError(f"ended by step {step} of seed {seed}")
            if say and step % 500 == 499:
                print(f"{step + 1} of {count}", file=sys.stderr)
        await pilot.pause()


def main(arguments: list[str]) -> int:
    """Soak, and say with what."""
    count = int(arguments[0]) if arguments else 3000
    seed = int(arguments[1]) if len(arguments) > 1 else 1
    paths = [Path(one) for one in arguments[2:]] or PROFILES
    asyncio.run(soak(paths, count, seed, say=True))
    print(f"{count} steps of seed {seed} over {len(paths)} profiles, and it is alive")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
