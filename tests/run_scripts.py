"""Runs whose process is a few lines of Python: it says what the test wants, and does no measuring."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from builders import make_cell, make_profile
from model_files import LLAMA

from gpufit.flows_run import Run
from gpufit.profile.cells import Cell, Failed, Outcome, OutOfMemory, Skipped
from gpufit.profile.peaks import Phase
from gpufit.sources.measure.events import CellBegan, CellDone, Finished, Now, RunEvent, RunRequest, Started, encode
from gpufit.sources.measure.protocol import CellKey
from gpufit.sources.measure.request import ProfileRequest

REQUEST = RunRequest(profile=ProfileRequest(model="models/tiny-llama"))

WAIT = "sys.stdin.buffer.read()"
"""Goes on until it is stopped."""

SLOW_TO_END = f"{WAIT}; import time; time.sleep(1)"
"""Takes its time over that."""

FLOOD = f"""
for number in range(10_000): say(b'{{"event": "now", "text": "step %d"}}\\n' % number)
say({encode(Finished(output="x"))!r})
"""
"""Ten thousand lines and a last one, as fast as they can be written."""


def scripted_run(events: Sequence[RunEvent], then: str = "", request: RunRequest = REQUEST) -> Run:
    """A process that tells these events, then runs `then` (`sys`, `os` and `say` are at hand)."""
    code = "\n".join(
        [
            "import os, sys",
            "sys.stdin.buffer.readline()",
            "def say(line): sys.stdout.buffer.write(line); sys.stdout.buffer.flush()",
            f"say({b''.join(map(encode, events))!r})",
            then,
        ]
    )
    return Run([sys.executable, "-c", code], encode(request))


def started(output: str | Path = "profiles/tiny-llama.json", **changes: object) -> Started:
    """The default profile's workload, nothing done yet."""
    profile = make_profile()
    given: dict[str, object] = {
        "output": str(output),
        "model": profile.model.name,
        "device": profile.environment.device.name,
        "evidence": profile.evidence,
        "workload": profile.workload,
        "load": profile.load,
        "cells": (),
        "done": 0,
        "total": 6,
    }
    return Started(**(given | changes))  # type: ignore[arg-type]


def began(context: int, concurrency: int) -> CellBegan:
    return CellBegan(key=CellKey(context_tokens=context, new_tokens=4, concurrency=concurrency))


def measured(context: int, concurrency: int) -> CellDone:
    return CellDone(cell=make_cell(context, concurrency))


def ended(context: int, concurrency: int, outcome: Outcome) -> CellDone:
    return CellDone(cell=Cell(context_tokens=context, new_tokens=4, concurrency=concurrency, outcome=outcome))


OUT_OF_MEMORY = OutOfMemory(
    phase=Phase.PREFILL,
    message="CUDA out of memory. Tried to allocate 2.00 GiB",
    asked_bytes=2 * 2**30,
    limit_bytes=6 * 2**30,
)
FAILED = Failed(error="RuntimeError: shapes cannot be multiplied")
SKIPPED = Skipped(why="context 512 x 2 already ran out of memory")

LOADING = Now(text="loading the model")


def bare_config(folder: Path, **changes: object) -> Path:
    """A model of which there is a config alone."""
    settings = LLAMA | {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "dtype": "bfloat16"} | changes
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(settings))
    return folder
