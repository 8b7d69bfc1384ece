"""A run as `profile` and `simulate` start it alike: what is asked for, and how it is told. Imported when one starts."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from gpufit.cli.diagnostics import ProgressBar
from gpufit.cli.output import say_made
from gpufit.profile.workload import Workload
from gpufit.report.run_text import cell_line
from gpufit.sources.measure.listener import Listener
from gpufit.sources.measure.request import ProfileRequest


def asked_run(arguments: argparse.Namespace) -> ProfileRequest:
    """What the options say that both have."""
    return ProfileRequest(
        model=arguments.model,
        output=arguments.output,
        contexts=arguments.context,
        concurrencies=arguments.concurrency,
        new_tokens=arguments.new_tokens,
        dtype=arguments.dtype,
        seed=arguments.seed,
        logits_kept=arguments.keep_logits,
        revision=arguments.revision,
        trust_remote_code=arguments.trust_remote_code,
        images=arguments.images,
        image_size=arguments.image_size,
        cell_seconds=arguments.cell_timeout,
        force=arguments.force,
    )


def told_by(bar: ProgressBar, grid_line: Callable[[Workload], str]) -> Listener:
    """A run told by a progress bar of its cells; `grid_line` says what was asked for, once the model is loaded."""

    def started(workload: Workload, done: int, total: int) -> None:
        bar.say(grid_line(workload))
        bar.start(done, total)

    def next_round(purpose: str, total: int) -> None:
        bar.say(f"adaptive: {purpose}")
        bar.grow(total)

    return Listener(
        folder=say_made,
        started=started,
        round=next_round,
        progress=bar.now,
        cell=lambda cell: bar.step(cell_line(cell)),
    )
