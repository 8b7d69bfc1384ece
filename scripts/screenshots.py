"""Draw every screen of the terminal interface over real profiles into docs/screens: `screenshots.py [PROFILE...]`.

`screenshots.py --check` draws without writing, and ends with 1 naming the pictures whose text differs from what is
committed, and those with a figure that is cut. Paths on the screens are as they are given; the demo's stand as from the
folder that holds `profiles/`. The run is a recorded one, told again as far as its fortieth second.
"""

from __future__ import annotations

import asyncio
import datetime
import html
import os
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from gpufit.tui.app import SCREENS, GpufitApp
from gpufit.tui.run import load_session
from gpufit.tui.runner import Runner
from gpufit.tui.state import View

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "tests" / "tui"))
from recorded_run import MODEL, RecordedRun  # noqa: E402  (found in the folder above)

DOCS = REPOSITORY / "docs" / "screens"
FACTS = REPOSITORY / "tests" / "facts"
REAL = (Path("profiles/SmolLM2-135M-Instruct.Q4_1.json"), Path("profiles/all-MiniLM-L6-v2.json"))
"""Real runs of the demo's models."""
OFFERS = ("public-indicative",)
SIZE = (150, 44)
TODAY = datetime.date(2026, 11, 30)
"""Prices age from it."""
MOMENT = 40.0
"""Seconds into the recorded run."""

QUESTION = ("g", "ctrl+a", "ctrl+k", *"4096x128+8", "enter")
"""More than small cards hold, so that every verdict is there."""
RUN = ("8", "tab", "tab", *MODEL)

SCREENS_OF: dict[str, tuple[str, ...]] = {
    **{str(view).lower(): ("2", *QUESTION, str(place)) for place, view in enumerate(View, 1) if view in SCREENS},
    "run": RUN,
    "run-live": (*RUN, "ctrl+s"),
    "quit": (*RUN, "ctrl+s", "q"),
    "search": ("2", *QUESTION, "slash", *"rtx"),
    "question": ("2", *QUESTION, "g"),
    "compare": ("1", "space", "down", "space", "equals_sign"),
    "order-file": ("2", *QUESTION, "7", "enter"),
    "export": ("2", *QUESTION, "e"),
    "help": ("2", "question_mark"),
    "light": ("2", *QUESTION, "T"),
}
"""File name -> the keys that lead there."""


async def drawn(profiles: Sequence[Path], keys: Sequence[str]) -> str:
    """The screen that keys lead to, as SVG."""
    Input.cursor_blink = False  # type: ignore[assignment]
    app = GpufitApp(load_session(profiles, None, OFFERS, TODAY))
    run = RecordedRun(MOMENT)
    app.runner = Runner(run, clock=run.clock)
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        for key in keys:
            await pilot.press(key)
            if key == "ctrl+s":
                await told(app, run, pilot)
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        return app.export_screenshot(title="gpufit")


async def told(app: GpufitApp, run: RecordedRun, pilot: Pilot[None]) -> None:
    """Wait for all that the run has to tell to stand on the screen."""
    while not run.told.is_set() or app.runner is None or app.runner.state.done < run.cells_done:
        await pilot.pause(0.02)
    await app.workers.wait_for_complete()
    await pilot.pause()


_TEXT = re.compile(r'<text class="[^"]*" x="([\d.]+)" y="([\d.]+)"[^>]*clip-path="[^"]*line-(\d+)[^>]*>([^<]*)</text>')
_CELL_WIDTH = 12.2
"""Of a letter, in the units of Rich's pictures: 0.61 of the 20 that it is high."""


def lines_of(svg: str) -> list[str]:
    """The text of a picture, a string a line, every word in its column."""
    lines: dict[int, str] = {}
    for x, _, line, words in _TEXT.findall(svg):
        column, before = round(float(x) / _CELL_WIDTH), lines.get(int(line), "")
        lines[int(line)] = before.ljust(column) + html.unescape(words).replace("\u00a0", " ")
    return [lines.get(at, "").rstrip() for at in range(max(lines, default=-1) + 1)]


_CUT = (
    (re.compile(r"\d\s?…|…\s?\d"), "a figure ends in dots"),
    (re.compile(r"\d [KMGT]i?(?=\s|$)"), "a unit is cut"),
    (re.compile(r"\d[│▕]"), "a figure touches the edge of its pane"),
)


def cut_figures(lines: Sequence[str], width: int) -> Iterator[str]:
    """Each line on which a figure is cut, as far as its text tells, after how that shows."""
    for line in lines:
        for sign, how in _CUT:
            if sign.search(line):
                yield f"{how}: {line.strip()}"
        if len(line) >= width and line[-1].isdigit():
            yield f"a figure touches the edge: {line.strip()}"


def check(name: str, svg: str) -> Iterator[str]:
    """What is wrong with a picture as it would be drawn now, or with the committed one."""
    path, now = DOCS / f"{name}.svg", lines_of(svg)
    then = lines_of(path.read_text(encoding="utf-8")) if path.is_file() else []
    if now != then:
        first = next(at for at in range(max(len(now), len(then)) + 1) if now[at : at + 1] != then[at : at + 1])
        yield f"docs/screens/{name}.svg differs from line {first + 1} on: {' '.join(now[first : first + 1]).strip()}"
    yield from (f"docs/screens/{name}.svg: {one}" for one in cut_figures(now, SIZE[0]))


def main(arguments: list[str]) -> int:
    """Draw every screen, over other profiles than the demo's if they are named; or check those there are."""
    checks = "--check" in arguments
    profiles = [Path(one).resolve() for one in arguments if one != "--check"] or list(REAL)
    os.chdir(FACTS)
    DOCS.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    for name, keys in SCREENS_OF.items():
        svg = asyncio.run(drawn(profiles, keys))
        if checks:
            wrong += check(name, svg)
            continue
        (DOCS / f"{name}.svg").write_text(svg, encoding="utf-8")
        print(f"docs/screens/{name}.svg")
        wrong += (f"docs/screens/{name}.svg: {one}" for one in cut_figures(lines_of(svg), SIZE[0]))
    for one in wrong:
        print(one, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
