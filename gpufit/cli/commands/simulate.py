"""Run a model on fake tensors and write its profile: no card, no weights, any size.

Builds the model from its config alone, runs prefill and decode as `gpufit profile` does, and follows every tensor. A
few layers of each kind are run and extended to all of them, to the byte.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import TYPE_CHECKING

from gpufit.cli.arguments import (
    add_cell_timeout,
    add_force,
    add_grid,
    add_images,
    add_logits_and_seed,
    add_profile_output,
    add_revision,
    add_trust,
    count,
    reader,
)
from gpufit.cli.diagnostics import ExitCode, ProgressBar, ended_as_interrupted, say

if TYPE_CHECKING:
    from gpufit.sources.measure.request import ProfileRequest


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit simulate`."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a model directory (weights are not needed), a config.json, a .gguf file or a hub id (only its config is "
        "fetched)",
    )
    add_profile_output(parser)
    add_grid(parser, ("--context", "--max-model-len"), "1k,2k,4k,8k,16k", "1,4,16", "; many take no longer than few")
    parser.add_argument(
        "--dtype", default="auto", help="dtype of the weights (default: auto, the config's own; bfloat16 for GGUF)"
    )
    parser.add_argument(
        "--attn-implementation",
        type=reader(lambda text, _: _kernel(text), "--attn-implementation"),
        metavar="NAME",
        default="sdpa",
        help="attention kernel to assume: sdpa (what torch runs on a card: flash without a mask, memory-efficient with "
        "one), flash (the FlashAttention-2 package), efficient, eager (all scores are kept), cpu (what torch's CPU "
        "build runs); default: sdpa, or eager for models that have nothing else",
    )
    parser.add_argument(
        "--tensor-parallel-size",
        "--tp",
        type=count("--tensor-parallel-size"),
        metavar="N",
        default=1,
        help="cards that share the model, by transformers' own plan; sizes are those of one of them (default: 1)",
    )
    parser.add_argument(
        "--enable-expert-parallel",
        "--ep",
        action="store_true",
        help="spread experts over these cards whole, instead of splitting each",
    )
    parser.add_argument(
        "--full-depth",
        action="store_true",
        help="run every layer, instead of a few of each kind extended to all: slower, the same bytes",
    )
    add_images(parser, "is text alone")
    add_logits_and_seed(parser)
    add_revision(parser)
    add_trust(parser, "a directory's model")
    add_cell_timeout(parser, "give a cell up that takes longer, and skip larger ones")
    add_force(parser)


def run(arguments: argparse.Namespace) -> int:
    """Simulate, with a progress bar on standard error, and tell where the profile is."""
    from gpufit.cli.runs import told_by
    from gpufit.flows import simulate
    from gpufit.report.run_text import simulated_grid_line, summary_lines

    bar = ProgressBar()
    listener = told_by(bar, lambda workload: simulated_grid_line(workload, arguments.attn_implementation))
    try:
        with ended_as_interrupted():
            profile, output = simulate(_request(arguments), listener)
    finally:
        bar.close()
    for line in summary_lines(profile, output):
        say(line)
    return ExitCode.ANSWERED


def _kernel(text: str) -> str:
    from gpufit.sources.measure.kernels import kernel_named

    return kernel_named(text)


def _request(arguments: argparse.Namespace) -> ProfileRequest:
    from gpufit.cli.runs import asked_run
    from gpufit.errors import UsageError
    from gpufit.sources.measure.protocol import Simulation

    if arguments.enable_expert_parallel and arguments.tensor_parallel_size == 1:
        raise UsageError("--enable-expert-parallel spreads experts over cards: say over how many (--tp N)")
    return replace(
        asked_run(arguments),
        device="cpu",
        simulation=Simulation(
            kernel=arguments.attn_implementation,
            tensor_parallel_size=arguments.tensor_parallel_size,
            expert_parallel=arguments.enable_expert_parallel,
            full_depth=arguments.full_depth,
        ),
    )
