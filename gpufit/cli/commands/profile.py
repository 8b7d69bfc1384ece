"""Measure a model on this machine's device and write its profile.

Loads the model in a process of its own, runs every context at every concurrency, and saves each cell as it ends.
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
    add_model,
    add_profile_output,
    add_run_options,
)
from gpufit.cli.diagnostics import ExitCode, ProgressBar, ended_as_interrupted, say

if TYPE_CHECKING:
    from gpufit.sources.measure.request import ProfileRequest


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit profile`."""
    add_model(parser)
    add_profile_output(parser)
    add_grid(parser, ("--context",), "256,512,768,1024,1536", "1,2,4")
    add_run_options(parser)
    parser.add_argument(
        "--kv-cache-dtype",
        choices=("auto", "fp8"),
        default="auto",
        help="dtype of the KV cache: the model's own, or a quantised cache (default: auto)",
    )
    parser.add_argument(
        "--cache-implementation",
        choices=("dynamic", "static", "quantized", "offloaded"),
        help="kind of KV cache, in transformers' words (default: dynamic, the one the model builds itself; quantized "
        "with --kv-cache-dtype fp8)",
    )
    add_images(parser, "measures text alone")
    parser.add_argument(
        "--compute-dtype",
        choices=("bfloat16", "float16"),
        help="run under torch.autocast to this dtype, the weights staying as --dtype has them (default: no autocast)",
    )
    add_logits_and_seed(parser)
    add_cell_timeout(parser, "give a cell up that takes longer, and skip larger ones; loading has no bound")
    parser.add_argument(
        "--sweep",
        choices=("adaptive", "full"),
        help="adaptive: few cells, and more only while those held out are missed by over 0.5%% of what grows; full: "
        "every context at every concurrency (default: adaptive without --context and --concurrency, full with either)",
    )
    existing = parser.add_mutually_exclusive_group()
    existing.add_argument(
        "--resume", action="store_true", help="go on with a profile: measured cells stay, failed ones are tried again"
    )
    add_force(existing)


def run(arguments: argparse.Namespace) -> int:
    """Measure, with a progress bar on standard error, and print where the profile is."""
    from gpufit.cli.runs import told_by
    from gpufit.flows import measure
    from gpufit.report.run_text import measured_grid_line, summary_lines

    bar = ProgressBar()
    listener = told_by(bar, lambda workload: measured_grid_line(workload, arguments.device, arguments.cell_timeout))
    try:
        with ended_as_interrupted():
            profile, output = measure(_request(arguments), listener)
    except KeyboardInterrupt:
        bar.close()
        say("finished cells are in the profile; the same command with --resume goes on")
        raise
    finally:
        bar.close()
    for line in summary_lines(profile, output):
        say(line)
    return ExitCode.ANSWERED


def _request(arguments: argparse.Namespace) -> ProfileRequest:
    from gpufit.cli.runs import asked_run

    return replace(
        asked_run(arguments),
        attention=arguments.attn_implementation,
        device=arguments.device,
        cache_implementation=arguments.cache_implementation,
        kv_cache_dtype=arguments.kv_cache_dtype,
        quantization=arguments.quantization,
        compute_dtype=arguments.compute_dtype,
        memory_limit_bytes=arguments.memory_limit,
        adaptive=None if arguments.sweep is None else arguments.sweep == "adaptive",
        resume=arguments.resume,
    )
