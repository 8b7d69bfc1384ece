"""A verification as text for a terminal: the question, predicted against measured by phase and part, the answer."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tabulate import tabulate

from gpufit.advice.verification import ContextPair, PhasePair
from gpufit.profile.evidence import Evidence
from gpufit.report.cells import PART_TITLES, printable
from gpufit.report.conclusion import signed_size
from gpufit.report.verify_document import VerifyDocument
from gpufit.units import format_size, format_tokens

BINARY = False

WIDTH = 110
HEADERS = ("phase", "part", "predicted", "between", "measured", "difference", "")
_ALIGN = ("left", "left", "right", "right", "right", "right", "left")


def render_verify(document: VerifyDocument) -> bytes:
    """Profile and run, the cell and its ceiling, the parts of every phase, the conclusion and what differs."""
    rows = [row for one in document.phases for row in phase_rows(one)]
    rows += [] if document.context is None else [context_row(document.context)]
    blocks = [
        "\n".join(map(_wrapped, head_lines(document))),
        tabulate(rows, headers=HEADERS, colalign=_ALIGN, disable_numparse=True),
        "\n".join(map(_wrapped, (document.conclusion, *further_lines(document)))),
    ]
    return printable("\n\n".join(blocks) + "\n").encode()


def head_lines(document: VerifyDocument) -> Iterator[str]:
    """What was predicted, what ran, at which shape, within which memory."""
    before, here, scenario = document.predicted, document.here, document.scenario
    engine = f"{before.engine.name} {before.engine.version} ({before.engine.attention})"
    yield f"predicted: {before.model} · {engine} · {before.evidence}, {before.measured_on} · {before.profile}"
    if here is None:
        yield "measured: the model could not be loaded"
    else:
        engine = f"{here.engine.name} {here.engine.version} ({here.engine.attention})"
        torch = here.environment.versions.get("torch", "unknown")
        yield f"measured: {here.source} · {engine} · torch {torch}, {here.environment.device.name}"
    new = f" + {scenario.new_tokens} new" if scenario.new_tokens > 1 else ""
    ran = (
        "" if before.ran_this_cell or before.evidence is Evidence.COMPUTED else ", which the profile did not run itself"
    )
    yield f"context {format_tokens(scenario.context_tokens)}{new} x {scenario.concurrency} at once{ran}"
    if document.ceiling is not None:
        one = document.ceiling
        yield (
            f"as {one.card}: within {format_size(one.limit_bytes)}, the {format_size(one.capacity_bytes)} that torch "
            f"sees there less {format_size(one.context_bytes)} of driver context and loaded kernels; the kernels that "
            "run are this device's"
        )
    elif document.memory_limit_bytes is not None:
        yield f"within {format_size(document.memory_limit_bytes)}, the profile's own memory limit"


def phase_rows(phase: PhasePair) -> Iterator[list[str]]:
    """The parts that either has, then the sum with its interval, then what was reserved where that is known."""
    name = str(phase.phase)
    for one in phase.parts:
        if one.predicted_bytes or one.measured_bytes:
            figures = (one.predicted_bytes, one.measured_bytes, one.difference_bytes)
            yield _row(name, PART_TITLES[one.part], *figures)
            name = ""
    between = f"{format_size(phase.predicted_lower_bytes)} to {format_size(phase.predicted_upper_bytes)}"
    inside = "" if phase.inside is None else "✓ inside" if phase.inside else "✗ outside"
    figures = (phase.predicted_bytes, phase.measured_bytes, phase.difference_bytes)
    yield _row(name, "allocated", *figures, between=between, inside=inside)
    before, after = phase.reserved_predicted_bytes, phase.reserved_measured_bytes
    if before is not None or after is not None:
        yield _row("", "reserved", before, after, None if before is None or after is None else after - before)


def context_row(context: ContextPair) -> list[str]:
    """Driver context and loaded kernels."""
    between = f"{format_size(context.predicted_upper_bytes)} at most"
    figures = (context.predicted_bytes, context.measured_bytes, context.measured_bytes - context.predicted_bytes)
    return _row("context", "", *figures, between=between, inside="✓ inside" if context.inside else "✗ outside")


def _row(
    phase: str,
    part: str,
    predicted: int | None,
    measured: int | None,
    difference: int | None,
    between: str = "",
    inside: str = "",
) -> list[str]:
    sizes = ["" if size is None else format_size(size) for size in (predicted, measured)]
    apart = "" if difference is None else "same" if not difference else signed_size(difference)
    return [phase, part, sizes[0], between, sizes[1], apart, inside]


def further_lines(document: VerifyDocument) -> Iterator[str]:
    """The library's own words on running out, the times, what is otherwise here, and the run's flags."""
    if document.out_of_memory is not None:
        yield f"out of memory: {document.out_of_memory.message}"
    here = document.here
    before, after = document.predicted.wall_seconds, None if here is None else here.wall_seconds
    if before is not None and after is not None and document.memory_limit_bytes is None:  # a limit costs time
        yield f"the cell took {after:.2f} s; {before:.2f} s when it was profiled"
    for one in document.differences:
        yield f"otherwise here: {one.what}: {one.a} in the profile, {one.b} here"
    for flag in () if here is None else here.environment.flags:
        yield f"flag: {flag}"


def _wrapped(line: str) -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent="    ", break_on_hyphens=False)
