"""Measure a model on this machine's device and write its profile.

Loads the model in a process of its own, runs every context at every concurrency, and saves each cell as it ends.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import add_run_options, count, counts, pixels, seconds, seed, whole
from gpufit.cli.diagnostics import ExitCode, ProgressBar, ended_as_interrupted, say
from gpufit.cli.output import say_made

if TYPE_CHECKING:
    from gpufit.profile.workload import Workload
    from gpufit.sources.measure.request import ProfileRequest


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit profile`."""
    parser.add_argument("model", metavar="MODEL", help="a model directory, a .gguf file or a hub id")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: profiles/<model>.json")
    parser.add_argument(
        "--context",
        type=counts("--context"),
        metavar="N[,N]",
        help="prompt lengths in tokens, 8k = 8192 (default: 256,512,768,1024,1536, as far as the model's positions go)",
    )
    parser.add_argument(
        "--concurrency",
        "--batch-size",
        type=counts("--concurrency"),
        metavar="N[,N]",
        help="sequences at once (default: 1,2,4)",
    )
    parser.add_argument(
        "--new-tokens",
        type=count("--new-tokens"),
        metavar="N",
        default=8,
        help="tokens to generate for each sequence, prefill's included (default: 8)",
    )
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
    parser.add_argument(
        "--images",
        type=whole("--images"),
        metavar="N",
        help="images in each sequence, for a model that takes images (default: 1); 0 measures text alone",
    )
    parser.add_argument(
        "--image-size",
        type=pixels("--image-size"),
        metavar="WxH",
        help="their size in pixels, for a model that takes any size (default: 448x448)",
    )
    parser.add_argument(
        "--compute-dtype",
        choices=("bfloat16", "float16"),
        help="run under torch.autocast to this dtype, the weights staying as --dtype has them (default: no autocast)",
    )
    parser.add_argument(
        "--keep-logits",
        choices=("last", "all"),
        default="last",
        help="logits kept by prefill: of the last position, as generate() does, or of all (default: last)",
    )
    parser.add_argument("--seed", type=seed, default=0, help="seed of the random token ids (default: 0)")
    parser.add_argument(
        "--cell-timeout",
        type=seconds("--cell-timeout"),
        metavar="SECONDS",
        default=900,
        help="give a cell up that takes longer, and skip larger ones; loading has no bound (default: 900)",
    )
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
    existing.add_argument("--force", action="store_true", help="replace the profile that is there")


def run(arguments: argparse.Namespace) -> int:
    """Measure, with a progress bar on standard error, and print where the profile is."""
    from gpufit.flows import measure
    from gpufit.report.run_text import cell_line, measured_grid_line, summary_lines
    from gpufit.sources.measure.listener import Listener

    bar = ProgressBar()

    def started(workload: Workload, done: int, total: int) -> None:
        bar.say(measured_grid_line(workload, arguments.device, arguments.cell_timeout))
        bar.start(done, total)

    def next_round(purpose: str, total: int) -> None:
        bar.say(f"adaptive: {purpose}")
        bar.grow(total)

    listener = Listener(
        folder=say_made,
        started=started,
        round=next_round,
        progress=bar.now,
        cell=lambda cell: bar.step(cell_line(cell)),
    )
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
    from gpufit.sources.measure.request import ProfileRequest

    return ProfileRequest(
        model=arguments.model,
        output=arguments.output,
        contexts=arguments.context,
        concurrencies=arguments.concurrency,
        new_tokens=arguments.new_tokens,
        dtype=arguments.dtype,
        attention=arguments.attn_implementation,
        device=arguments.device,
        seed=arguments.seed,
        logits_kept=arguments.keep_logits,
        revision=arguments.revision,
        trust_remote_code=arguments.trust_remote_code,
        images=arguments.images,
        image_size=arguments.image_size,
        cache_implementation=arguments.cache_implementation,
        kv_cache_dtype=arguments.kv_cache_dtype,
        quantization=arguments.quantization,
        compute_dtype=arguments.compute_dtype,
        memory_limit_bytes=arguments.memory_limit,
        cell_seconds=arguments.cell_timeout,
        adaptive=None if arguments.sweep is None else arguments.sweep == "adaptive",
        resume=arguments.resume,
        force=arguments.force,
    )
