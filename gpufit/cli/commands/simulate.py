"""Run a model on fake tensors and write its profile: no card, no weights, any size.

Builds the model from its config alone, runs prefill and decode as `gpufit profile` does, and follows every tensor. A
few layers of each kind are run and extended to all of them, to the byte.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import count, counts, pixels, reader, seconds, seed, whole
from gpufit.cli.diagnostics import ExitCode, ProgressBar, ended_as_interrupted, say
from gpufit.cli.output import say_made

if TYPE_CHECKING:
    from gpufit.profile.workload import Workload
    from gpufit.sources.measure.request import ProfileRequest


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit simulate`."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a model directory (weights are not needed), a config.json, a .gguf file or a hub id (only its config is "
        "fetched)",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: profiles/<model>.json")
    parser.add_argument(
        "--context",
        "--max-model-len",
        type=counts("--context"),
        metavar="N[,N]",
        help="prompt lengths in tokens, 8k = 8192 (default: 1k,2k,4k,8k,16k, as far as the model's positions go)",
    )
    parser.add_argument(
        "--concurrency",
        "--batch-size",
        type=counts("--concurrency"),
        metavar="N[,N]",
        help="sequences at once (default: 1,4,16)",
    )
    parser.add_argument(
        "--new-tokens",
        type=count("--new-tokens"),
        metavar="N",
        default=8,
        help="tokens to generate for each sequence, prefill's included; many take no longer than few (default: 8)",
    )
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
    parser.add_argument(
        "--images",
        type=whole("--images"),
        metavar="N",
        help="images in each sequence, for a model that takes images (default: 1); 0 is text alone",
    )
    parser.add_argument(
        "--image-size",
        type=pixels("--image-size"),
        metavar="WxH",
        help="their size in pixels, for a model that takes any size (default: 448x448)",
    )
    parser.add_argument(
        "--keep-logits",
        choices=("last", "all"),
        default="last",
        help="logits kept by prefill: of the last position, as generate() does, or of all (default: last)",
    )
    parser.add_argument("--seed", type=seed, default=0, help="seed of the random token ids (default: 0)")
    parser.add_argument("--revision", help="branch, tag or commit of a hub id")
    parser.add_argument("--trust-remote-code", action="store_true", help="let a directory's model run code of its own")
    parser.add_argument(
        "--cell-timeout",
        type=seconds("--cell-timeout"),
        metavar="SECONDS",
        default=900,
        help="give a cell up that takes longer, and skip larger ones (default: 900)",
    )
    parser.add_argument("--force", action="store_true", help="replace the profile that is there")


def run(arguments: argparse.Namespace) -> int:
    """Simulate, with a progress bar on standard error, and tell where the profile is."""
    from gpufit.flows import simulate
    from gpufit.report.run_text import cell_line, simulated_grid_line, summary_lines
    from gpufit.sources.measure.listener import Listener

    bar = ProgressBar()

    def started(workload: Workload, done: int, total: int) -> None:
        bar.say(simulated_grid_line(workload, arguments.attn_implementation))
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
    from gpufit.errors import UsageError
    from gpufit.sources.measure.protocol import Simulation
    from gpufit.sources.measure.request import ProfileRequest

    if arguments.enable_expert_parallel and arguments.tensor_parallel_size == 1:
        raise UsageError("--enable-expert-parallel spreads experts over cards: say over how many (--tp N)")
    return ProfileRequest(
        model=arguments.model,
        output=arguments.output,
        contexts=arguments.context,
        concurrencies=arguments.concurrency,
        new_tokens=arguments.new_tokens,
        dtype=arguments.dtype,
        device="cpu",
        seed=arguments.seed,
        logits_kept=arguments.keep_logits,
        revision=arguments.revision,
        trust_remote_code=arguments.trust_remote_code,
        images=arguments.images,
        image_size=arguments.image_size,
        cell_seconds=arguments.cell_timeout,
        force=arguments.force,
        simulation=Simulation(
            kernel=arguments.attn_implementation,
            tensor_parallel_size=arguments.tensor_parallel_size,
            expert_parallel=arguments.enable_expert_parallel,
            full_depth=arguments.full_depth,
        ),
    )
