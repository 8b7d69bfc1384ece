"""Press random keys, click, drag, paste and resize, thousands of times: `tui_soak.py [COUNT [SEED...]]`.

Ends with 0 when the interface is alive at the end of every seed, else with the traceback that ended it. Runs that it
starts are recorded ones; it works in a folder of its own, and whatever reaches out of that is refused.
"""

from __future__ import annotations

import asyncio
import collections
import datetime
import os
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path += [str(REPOSITORY / "tests"), str(REPOSITORY / "scripts")]
os.environ["HF_HUB_OFFLINE"] = "1"

from recordings import Recorded  # noqa: E402
from soak_guard import GUARD  # noqa: E402
from textual.events import MouseScrollDown, MouseScrollUp, Paste  # noqa: E402
from textual.pilot import Pilot  # noqa: E402

from gpufit.tui.app import GpufitApp  # noqa: E402
from gpufit.tui.kept import load_kept, save_kept  # noqa: E402
from gpufit.tui.keys import EVERYWHERE, OF_VIEWS, OVER_VIEWS, QUESTION  # noqa: E402
from gpufit.tui.run import load_session  # noqa: E402
from gpufit.tui.runner import Runner  # noqa: E402

PROFILES = sorted((REPOSITORY / "tests" / "facts" / "profiles").glob("*.json"))
TODAY = datetime.date(2026, 11, 30)
SIZES = ((80, 24), (120, 40), (160, 48), (200, 60), (40, 12), (20, 5), (250, 20))
TYPED = ["enter", "escape", "escape", "tab", "shift+tab", "space", "backspace", "delete", "ctrl+a", *"abc078x+,./"]
PASTES = (
    "8kx16+256", "4k", "0", "-1", "99999999999999999999", "1e9", "64,128", "100M", "3 days", "EUR",
    "view.csv", "view.xlsx", "folder/view.html", "order.md", ".json", "x" * 300 + ".csv", "profiles/one.json",
    "/outside.csv", "~/outside.json", "~nobody/outside.md", "../outside.svg", "/dev/null", "profiles", "nul\0.csv",
    "h100", "b200", "one/two", "no such thing", "[bold]mark[/] [/nothing] [", "\x1b[31mred\x07", "über 模型 🙂 e\u0301",
    "two\nlines", "\ttab", "\u202eright to left", "", " ", "a" * 5000,
)  # fmt: skip
"""What people have in their clipboards, and what they should not."""
MUST_BE_SEEN = {
    *(f"{view}Screen" for view in ("Profiles", "Cards", "Curve", "Growth", "Precision", "Time", "Order", "Run")),
    *(f"{over}Screen" for over in ("Compare", "OrderFile", "Export", "Help", "Ask", "Quit")),
    "CommandPalette",
}
"""Screens that a soak of a few thousand steps comes to."""
WAYS = (
    ("escape", "escape", "8", "tab", "tab", "m", "ctrl+s"),
    ("escape", "escape", "7", "enter"),
    ("escape", "escape", "1", "j", "equals_sign"),
    ("escape", "escape", "8", "tab", "tab", "m", "ctrl+s", "q"),
    ("escape", "q"),
)
"""Where chance alone comes too seldom: a run, an order file, a comparison, the way out."""
LONGEST_PAUSE_SECONDS = 1.5
"""Before what a recorded run says next."""


def keys() -> list[str]:
    """Every key of every screen."""
    of_screens = (key for found in (*OF_VIEWS.values(), *OVER_VIEWS.values()) for key in found)
    return [name for one in (*EVERYWHERE, *QUESTION, *of_screens) for name in one.keys.split(",")]


class Soak:
    """A hand that knows no rest; every time that it quits, the interface is opened anew where it was left."""

    def __init__(self, folder: Path, seed: int) -> None:
        """`folder` is the current one, and holds the profiles."""
        self._state, self._seed = folder / "state.json", seed
        self._chance = random.Random(seed)
        self._runs = Recorded(self._chance, LONGEST_PAUSE_SECONDS)
        self._keys = keys()
        self.step = 0
        self.lives = 0
        """How often the interface was opened."""
        self.seen: collections.Counter[str] = collections.Counter()
        """Steps on each screen."""
        self.done: collections.Counter[str] = collections.Counter()
        """Steps of each kind."""

    @property
    def runs(self) -> int:
        """Recorded runs that were begun."""
        return len(self._runs.begun)

    async def go_on(self, count: int) -> None:
        """So many steps. Raises whatever ends the interface."""
        while self.step < count:
            kept, problem = load_kept(self._state)
            session = load_session((), None, (), TODAY, kept, [problem] if problem else [], verdicts_first=True)
            app = GpufitApp(session, Runner(self._runs))
            async with app.run_test(size=SIZES[0], tooltips=True, notifications=True) as pilot:
                self.lives += 1
                while self.step < count and app.is_running and app.return_code is None:
                    self.step += 1
                    if self.step % 500 == 0:
                        print(f"seed {self._seed}: step {self.step}", file=sys.stderr, flush=True)
                    self.seen[type(app.screen).__name__] += 1
                    await self._do_something(pilot)
                assert app.runner is not None
                app.runner.stop()
            assert app.return_code == 0 or self.step >= count, f"step {self.step} of seed {self._seed}"
            problem = save_kept(session.keep(kept), self._state)
            assert problem is None, problem

    async def _do_something(self, pilot: Pilot[None]) -> None:
        app, chance, luck = pilot.app, self._chance, self._chance.random()
        where = (chance.randrange(app.size.width), chance.randrange(app.size.height))
        if luck < 0.02:
            self.done["resize"] += 1
            await pilot.resize_terminal(*chance.choice(SIZES))
        elif luck < 0.06:
            self.done["click"] += 1
            await pilot.click(offset=where, times=chance.choice((1, 1, 1, 2)))
        elif luck < 0.08:
            self.done["drag"] += 1
            await pilot.mouse_down(offset=where)
            await pilot.hover(offset=(chance.randrange(app.size.width), where[1]))
            await pilot.mouse_up(offset=(chance.randrange(app.size.width), chance.randrange(app.size.height)))
        elif luck < 0.09:
            self.done["wheel"] += 1
            kind = chance.choice((MouseScrollDown, MouseScrollUp))
            app.post_message(kind(None, *where, 0, 1, 0, False, False, False, *where))
            await pilot.pause()
        elif luck < 0.13:
            self.done["paste"] += 1
            app.post_message(Paste(chance.choice(PASTES)))
            await pilot.pause()
        elif luck < 0.15:
            for key in chance.choice(WAYS):
                self.done["key"] += 1
                await pilot.press(key)
        else:
            self.done["key"] += 1
            await pilot.press(self._key(app))

    def _key(self, app: GpufitApp) -> str:
        """Half of them work on the screen that is on show; quitting comes seldom."""
        chance = self._chance
        while True:
            bound = [name for name in app.screen.active_bindings if not name.startswith("<")]
            key = chance.choice(chance.choice((bound, bound, self._keys, TYPED)) or TYPED)
            if key not in ("q", "ctrl+q", "ctrl+c") or chance.random() < 0.1:
                return key


async def soak(folder: Path, count: int, seed: int) -> Soak:
    """Raises whatever ends the interface, and what should not have been done."""
    (folder / "profiles").mkdir()
    for path in PROFILES:
        shutil.copy(path, folder / "profiles")
    found = Soak(folder, seed)
    with GUARD.around(folder):
        try:
            await found.go_on(count)
        except BaseException:
            print(f"ended by step {found.step} of seed {seed}", file=sys.stderr)
            raise
    assert not GUARD.started, GUARD.started
    return found


def main(arguments: list[str]) -> int:
    """Soak with each seed, and say what was done."""
    count, *seeds = [int(one) for one in arguments] or [3000]
    unseen = set(MUST_BE_SEEN)
    for seed in seeds or [1]:
        began = time.monotonic()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            os.chdir(folder)
            for variable in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "HF_HOME"):
                os.environ[variable] = str(folder)
            found = asyncio.run(soak(folder, count, seed))
            written = sorted({path.suffix for path in folder.rglob("*") if path.is_file() and path.suffix})
            os.chdir(REPOSITORY)
        unseen -= found.seen.keys()
        kinds = ", ".join(f"{number} {kind}" for kind, number in found.done.most_common())
        print(
            f"seed {seed}: {found.step} steps ({kinds}) in {time.monotonic() - began:.0f} s, and it is alive; opened "
            f"{found.lives} times, {found.runs} recorded runs, wrote {' '.join(written)}"
        )
        print("  " + ", ".join(f"{screen} {number}" for screen, number in found.seen.most_common()), flush=True)
    if GUARD.refused:
        print(f"refused to write outside the folder: {' '.join(sorted(set(GUARD.refused)))}")
    if count >= 1000 and unseen:
        print(f"never came to {', '.join(sorted(unseen))}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
