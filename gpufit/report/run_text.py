"""What a run says of itself, line by line: what it will do, how each cell ended, what came of it."""

from __future__ import annotations

from pathlib import Path

from gpufit.memory.fit import GOOD_ENOUGH
from gpufit.memory.growth import cache_growth
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, Failed, Measured, OutOfMemory
from gpufit.profile.peaks import PhasePeak
from gpufit.profile.record import Profile
from gpufit.profile.workload import Workload
from gpufit.report.summary import growth_sentence
from gpufit.report.workload import workload_words
from gpufit.units import format_size, format_tokens


def measured_grid_line(workload: Workload, device: str, cell_seconds: int) -> str:
    """What will be run, defaults included."""
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


def simulated_grid_line(workload: Workload, kernel: str) -> str:
    """What will be run on fake tensors, defaults included."""
    contexts, concurrencies = (
        ", ".join(format_tokens(one) for one in values) for values in (workload.contexts_tokens, workload.concurrencies)
    )
    generated = f"{workload.new_tokens} new tokens, logits kept: {workload.logits_kept}" if workload.new_tokens else ""
    settings = f"dtype {workload.dtype_requested}, attention {kernel}, seed {workload.seed}"
    parts = [f"contexts {contexts} x {concurrencies} at once", generated, *workload_words(workload), settings]
    return "; ".join(part for part in parts if part)


def estimate_line(profile: Profile, shape: Shape) -> str:
    """What is estimated, defaults included."""
    counted = "1 new token" if shape.new_tokens == 1 else f"{shape.new_tokens} new tokens"
    new = f"{counted}, " if profile.model.generates else ""
    return (
        f"scenario: context {format_tokens(shape.context_tokens)}, {new}{shape.concurrency} at once; computed for "
        f"{profile.engine.name} {profile.engine.version}, {profile.engine.attention} attention, "
        f"{profile.precision.compute[0].dtypes[0]}"
    )


def cell_line(cell: Cell) -> str:
    """How a cell ended, in one line."""
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
    cells = [cell.outcome.phases for cell in profile.cells if isinstance(cell.outcome, Measured)]
    readings = [one for peak in (profile.load, *(peak for phases in cells for peak in phases)) for one in peak.readings]
    own, mapped = (
        max((one.size_bytes for one in readings if one.quantity == quantity), default=None)
        for quantity in ("rss_anon", "rss_file")
    )
    if own is None or mapped is None:
        return []
    return [f"host memory: {format_size(own)} anonymous, {format_size(mapped)} mapped files"]
