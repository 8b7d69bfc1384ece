"""The speed budgets that a user feels, measured: modules and seconds of a cold start, each beside its budget.

    python benchmarks/startup.py [PROFILE]

Each command runs in a fresh process; the time is the best of several, since the machine may be busy, and stands beside
that of a bare interpreter. Nothing in the test suite depends on a time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPEATS = 7
REPOSITORY = Path(__file__).resolve().parent.parent
DEMO = REPOSITORY / "tests" / "facts" / "profiles" / "SmolLM2-135M-Instruct.Q4_1.json"
"""A real run of the demo's model."""

FIRST_FRAME = """
import asyncio, pathlib, sys, time
begin = time.perf_counter()
import datetime
from gpufit.tui.app import GpufitApp
from gpufit.tui.run import load_session
async def first_frame():
    app = GpufitApp(load_session([pathlib.Path(sys.argv[1])], None, (), datetime.date.today(), verdicts_first=True))
    async with app.run_test(size=(160, 48)) as pilot:
        await pilot.pause()
        shown = time.perf_counter() - begin
        await app.workers.wait_for_complete()
        keys, answers, taken = [], [], []
        drawn, display = [], app._display
        def note_and_display(screen, renderable):
            display(screen, renderable)
            drawn.append(time.perf_counter())
        app._display = note_and_display
        take = app.session.take_answer
        def note_and_take(question, answer):
            taken.append(time.perf_counter())
            take(question, answer)
        app.session.take_answer = note_and_take
        # Each asks what was not asked before.
        for key in ("plus", "plus", "left", "plus", "left", "plus", "left", "plus", "plus", "left", "plus", "left"):
            await asyncio.sleep(0.1)  # what is still to be drawn of the key before
            drawn.clear()
            taken.clear()
            pressed = time.perf_counter()
            await pilot.press(key)
            await pilot.pause()
            await app.workers.wait_for_complete()
            await pilot.pause()
            # All that is drawn before the whole answer is there: the verdicts.
            keys.append(max(one for one in drawn if one < taken[0]) - pressed)
            answers.append(drawn[-1] - pressed)
        middle = len(keys) // 2
        return shown, sorted(keys)[middle], max(keys), sorted(answers)[middle]
print(*asyncio.run(first_frame()))
"""


def best_seconds(arguments: list[str]) -> float:
    """The shortest wall time of a command in a fresh process."""
    times = []
    for _ in range(REPEATS):
        begin = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=False, capture_output=True)
        times.append(time.perf_counter() - begin)
    return min(times)


def modules_of_help() -> int:
    """Modules that `gpufit --help` imports."""
    code = "import sys; from gpufit.cli.main import main; main(['--help']); print(len(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    return int(done.stdout.split()[-1])


def tui_seconds(profile: Path) -> tuple[float, float, float, float]:
    """(imports and first frame, median and slowest key to the verdicts, median key to the whole answer), the best of
    several fresh processes each."""
    found = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", FIRST_FRAME, str(profile)], check=True, capture_output=True, text=True
        )
        found.append([float(one) for one in done.stdout.split()])
    shown, middle, slowest, whole = (min(one) for one in zip(*found, strict=True))
    return shown, middle, slowest, whole


def example_model() -> Path:
    """The config of a public model of 70 billion parameters, in a temporary folder."""
    sys.path.insert(0, str(REPOSITORY / "tests"))
    from public_models import CONFIGS  # type: ignore[import-not-found]

    path = Path(tempfile.mkdtemp(prefix="gpufit-benchmark-")) / "config.json"
    path.write_text(json.dumps(CONFIGS["meta-llama/Meta-Llama-3.1-70B"]))
    return path


def main(arguments: list[str]) -> int:
    """Measure and print."""
    profile = Path(arguments[0]) if arguments else DEMO
    scenario = ["--context", "4k", "--concurrency", "16"]
    bare = best_seconds(["-c", "pass"])
    modules = modules_of_help()
    help_time = best_seconds(["-m", "gpufit", "--help"])
    fit_time = best_seconds(["-m", "gpufit", "fit", str(profile), *scenario, "--json"])
    started = ["--engine", "vllm", "--tp", "2", *scenario, "--json"]
    model = str(example_model())
    start_time = best_seconds(["-m", "gpufit", "estimate", model, *started, "--gpu", "h100-sxm"])
    starts_time = best_seconds(["-m", "gpufit", "fit", model, *started])
    frame, key, slowest, whole = tui_seconds(profile)
    rows: list[tuple[str, float, float, str]] = [
        ("gpufit --help, modules", modules, 150, ""),
        ("gpufit --help, seconds", help_time, 0.15, f"{help_time / bare:.1f} x a bare interpreter"),
        ("gpufit fit against the whole catalog, seconds", fit_time, 0.3, f"{fit_time / bare:.1f} x"),
        ("gpufit estimate, a start of vLLM, seconds", start_time, 0.3, f"{start_time / bare:.1f} x"),
        ("gpufit fit, a start on every card, seconds", starts_time, 0.3, f"{starts_time / bare:.1f} x"),
        ("TUI, imports to first frame, seconds", frame, 1.5, f"{frame / bare:.1f} x"),
        ("TUI, key to every verdict redrawn, seconds", key, 0.05, ""),
        ("TUI, the slowest of 12 keys, seconds", slowest, 0.05, ""),
        ("TUI, key to limits, plans and totals, seconds", whole, 0.5, "worked out beside the screen"),
    ]
    print(f"{os.cpu_count()} CPUs, Python {sys.version.split()[0]}, bare interpreter {bare:.3f} s")
    for name, value, budget, remark in rows:
        mark = "within" if value <= budget else "OVER"
        print(f"{name:48} {value:8.3f}  budget {budget:7.2f}  {mark:6}  {remark}".rstrip())
    return 0 if all(value <= budget for _, value, budget, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
