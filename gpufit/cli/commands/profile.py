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
from gpufit.units import format_size, format_tokens

if TYPE_CHECKING:
    from gpufit.profile.record import Cell, PhasePeak, Profile, Workload
    from gpufit.sources.measure.campaign import ProfileRequest


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
    from gpufit.sources.measure.campaign import Listener

    bar = ProgressBar()

    def started(workload: Workload, done: int, total: int) -> None:
        bar.say(grid_line(workload, arguments.device, arguments.cell_timeout))
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
    from gpufit.sources.measure.campaign import ProfileRequest

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


def grid_line(workload: Workload, device: str, cell_seconds: int) -> str:
    """What will be run, defaults included."""
    from gpufit.report.workload import workload_words

    contexts, concurrencies = (
        ", ".join(format_tokens(one) for one in counts) for counts in (workload.contexts_tokens, workload.concurrencies)
    )
    generated = f"{workload.new_tokens} new tokens, logits kept: {workload.logits_kept}" if workload.new_tokens else ""
    precision = [f"dtype {workload.dtype_requested}"]
    precision += [f"quantization {workload.quantization}"] if workload.quantization else []
    precision += [f"compute dtype {workload.compute_dtype}"] if workload.compute_dtype else []
    limit = workload.memory_limit_bytes
    settings = [
        *precision,
        f"device {device}",
        *([] if limit is None else [f"memory limit {format_size(limit)}"]),
        f"seed {workload.seed}",
        f"at most {cell_seconds} s a cell",
    ]
    return "; ".join(
        [
            f"contexts {contexts} x {concurrencies} at once",
            *([generated] if generated else []),
            *workload_words(workload),
            ", ".join(settings),
        ]
    )


def cell_line(cell: Cell) -> str:
    """How a cell ended, in one line."""
    from gpufit.profile.record import Failed, Measured, OutOfMemory

    where = f"context {format_tokens(cell.context_tokens)} x {cell.concurrency}"
    match cell.outcome:
        case Measured(phases=phases, wall_seconds=seconds):
            peaks = ", ".join(f"{one.phase} {format_size(one.allocated_bytes)}" for one in phases)
            return f"{where}: {peaks}" + ("" if seconds is None else f", {seconds:.2f} s")
        case OutOfMemory(phase=phase, message=message):
            return f"{where}: out of memory{f' in {phase}' if phase else ''}: {message[:120]}"
        case Failed(error=error):
            return f"{where}: failed: {error[:160]}"
        case skipped:
            return f"{where}: skipped: {skipped.why}"


def temporaries_lines(profile: Profile) -> list[str]:
    """What the temporaries of each phase are made of, in the cell that took most; nothing where no recorder told."""
    largest: dict[str, tuple[Cell, PhasePeak]] = {}
    for cell in profile.measured_cells:
        for peak in cell.outcome.phases:  # type: ignore[union-attr]
            if peak.phase not in largest or peak.allocated_bytes >= largest[peak.phase][1].allocated_bytes:
                largest[peak.phase] = (cell, peak)
    return [
        f"{peak.phase}: temporaries {format_size(peak.parts.temporaries_bytes)} at the peak of context "
        f"{format_tokens(cell.context_tokens)} x {cell.concurrency}, most of them from "
        + ", ".join(f"{one.name} {format_size(one.size_bytes)}" for one in peak.largest_temporaries)
        for cell, peak in largest.values()
        if peak.largest_temporaries
    ]


def summary_lines(profile: Profile, output: Path) -> list[str]:
    """What was measured, how well it is understood, and what to do next."""
    from gpufit.memory.fit import GOOD_ENOUGH
    from gpufit.memory.growth import cache_growth
    from gpufit.report.summary import growth_sentence

    measured = len(profile.measured_cells)
    lines = [
        f"{profile.model.name} ({profile.model.architecture}) on {profile.environment.device.name}: "
        f"{measured} of {len(profile.cells)} cells {profile.evidence}"
    ]
    lines += [f"finding: {finding}" for finding in profile.precision.findings]
    lines += [f"flag: {flag}" for flag in profile.environment.flags]
    growth = cache_growth(profile)
    if growth is not None:
        lines.append(growth_sentence(growth))
    lines += temporaries_lines(profile)
    lines += host_memory_lines(profile)
    lines += reserved_lines(profile)
    if profile.memory_model is None:
        lines.append("too few cells for a memory model: two contexts and two concurrencies are the least")
    else:
        for one in profile.memory_model.phases:
            held = "none held out" if one.worst_held_out_error is None else f"held out {one.worst_held_out_error:.2%}"
            if one.worst_held_out_growth_error is not None:
                held += f" ({one.worst_held_out_growth_error:.2%} of what grows)"
            lines.append(f"{one.phase}: model error {one.worst_fitted_error:.2%} of allocated at worst, {held}")
            if (one.worst_held_out_growth_error or 0.0) > GOOD_ENOUGH:
                lines.append(
                    f"{one.phase}: the model misses more than {GOOD_ENOUGH:.1%} of what grows: its intervals are wide; "
                    "run more contexts, of 256 tokens and more, near those of the order (--context ...)"
                )
    lines.append(f"wrote {output}; next: gpufit fit {output}")
    return lines


def reserved_lines(profile: Profile) -> list[str]:
    """What an allocator reserved at most, beside what it had handed out at most in the same phase.

    Empty where nothing was read or replayed: a run on the CPU, or a simulation of few layers.
    """
    from gpufit.profile.record import Measured

    cells = [cell.outcome.phases for cell in profile.cells if isinstance(cell.outcome, Measured)]
    read = [({one.quantity: one for one in peak.readings}, peak) for phases in cells for peak in phases]
    both = {"reserved", "allocated"}
    pairs = [(sizes["reserved"], sizes["allocated"], peak) for sizes, peak in read if both <= set(sizes)]
    if not pairs:
        return []
    reserved, allocated, peak = max(pairs, key=lambda pair: pair[0].size_bytes)
    return [
        f"{reserved.source}: {format_size(reserved.size_bytes)} reserved at most, in {peak.phase}, where it hands out "
        f"{format_size(allocated.size_bytes)} at most"
    ]


def host_memory_lines(profile: Profile) -> list[str]:
    """What the measuring process itself held at most when a phase ended: its own pages and those of files apart.

    Pages of a mapped file can be dropped and read again, so they are not in the way of others; the process's own are.
    Empty where the system does not tell.
    """
    from gpufit.profile.record import Measured

    cells = [cell.outcome.phases for cell in profile.cells if isinstance(cell.outcome, Measured)]
    readings = [one for peak in (profile.load, *(peak for phases in cells for peak in phases)) for one in peak.readings]
    own, mapped = (
        max((one.size_bytes for one in readings if one.quantity == quantity), default=None)
        for quantity in ("rss_anon", "rss_file")
    )
    if own is None or mapped is None:
        return []
    return [f"host memory: {format_size(own)} anonymous, {format_size(mapped)} mapped files"]
