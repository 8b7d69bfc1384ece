"""Check that a model runs here from end to end: load, preprocess, compute, write a result, read it back.

The smallest run through the whole chain, on a text of a few tokens, in a process of its own. Each step says ok or
failed, with its time and what was seen; the first that fails ends it.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import add_cell_timeout, add_model, add_run_options
from gpufit.cli.diagnostics import ExitCode, ProgressBar, ended_as_interrupted, say
from gpufit.cli.output import say_made, write_document
from gpufit.report.registry import CHECK_FORMATS, load_check_format

if TYPE_CHECKING:
    from gpufit.profile.checked import Step
    from gpufit.sources.measure.checking import CheckRequest


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit check`."""
    add_model(parser)
    add_run_options(parser)
    add_cell_timeout(parser, "give up preprocessing and computing after so long; loading has no bound")
    parser.add_argument("--format", choices=tuple(CHECK_FORMATS), default="table", help="default: table")
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="same as --format json")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="DIR",
        help="write the result into this folder and leave it there (default: a temporary folder, removed at the end)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Take the steps, each told on standard error as it ends; status 4 where one failed."""
    from gpufit.flows_verify import check
    from gpufit.profile.checked import StepName
    from gpufit.sources.measure.checking import CheckListener

    form = load_check_format(arguments.format)
    bar = ProgressBar()
    bar.start(0, len(StepName))
    listener = CheckListener(progress=bar.now, ended=lambda step: bar.step(step_line(step)), folder=say_made)
    try:
        with ended_as_interrupted():
            document = check(_request(arguments), listener)
    finally:
        bar.close()
    write_document(form.render_check(document), form.BINARY, None)
    if document.ok:
        return ExitCode.ANSWERED
    say(f"gpufit: {document.conclusion}")
    return ExitCode.MEASUREMENT_FAILED


def _request(arguments: argparse.Namespace) -> CheckRequest:
    from gpufit.sources.measure.checking import CheckRequest
    from gpufit.sources.measure.request import ProfileRequest

    settings = ProfileRequest(
        model=arguments.model,
        dtype=arguments.dtype,
        attention=arguments.attn_implementation,
        device=arguments.device,
        revision=arguments.revision,
        trust_remote_code=arguments.trust_remote_code,
        quantization=arguments.quantization,
        memory_limit_bytes=arguments.memory_limit,
        cell_seconds=arguments.cell_timeout,
    )
    return CheckRequest(settings, arguments.output)


def step_line(step: Step) -> str:
    """How a step ended, in one line."""
    return f"{step.step.words}: {step.state} ({step.seconds or 0.0:.1f} s)"
