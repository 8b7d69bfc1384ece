"""A check as text for a terminal: what ran where, each step with its time, the memory of each phase, the answer."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from tabulate import tabulate

from gpufit.profile.checked import Step, StepState
from gpufit.report.cells import printable
from gpufit.report.check_document import CheckDocument
from gpufit.units import format_size

BINARY = False

WIDTH = 110
SEEN_WIDTH = 76
"""Of what a step saw, so that the table stays within WIDTH."""

MEMORY = {
    "allocated_bytes": "allocated at most",
    "reserved_bytes": "reserved at most",
    "device_used_bytes": "used on the device",
}
"""Field of PhaseMemory: its heading."""


def render_check(document: CheckDocument) -> bytes:
    """The model and the device, the steps, memory by phase, the conclusion and what to know beside it."""
    blocks = ["\n".join(map(_wrapped, head_lines(document))), _steps(document.steps)]
    if document.memory:
        blocks.append(_memory(document))
    blocks.append("\n".join(map(_wrapped, (_conclusion(document), *(f"note: {note}" for note in document.notes)))))
    return printable("\n\n".join(blocks) + "\n").encode()


def head_lines(document: CheckDocument) -> list[str]:
    """Which model, and as far as it was seen in what and on what."""
    parts = [document.model]
    if document.engine is not None:
        parts.append(f"{document.engine.name} {document.engine.version} ({document.engine.attention})")
    if document.environment is not None:
        parts += [f"torch {document.environment.versions.get('torch', 'unknown')}", document.environment.device.name]
    limit = document.memory_limit_bytes
    limits = [] if limit is None else [f"within {format_size(limit)}"]
    return [" · ".join([*parts, *limits])]


def _conclusion(document: CheckDocument) -> str:
    """The document's own; of a step that failed the error stands in its row already."""
    failed = next((step for step in document.steps if step.state is StepState.FAILED), None)
    return document.conclusion if failed is None else f"failed: {failed.step.words}"


def _steps(steps: Sequence[Step]) -> str:
    rows = [
        [
            step.step.words,
            "not reached" if step.state is StepState.NOT_REACHED else str(step.state),
            "" if step.seconds is None else seconds_text(step.seconds),
            textwrap.fill(step.error or step.seen, SEEN_WIDTH),
        ]
        for step in steps
    ]
    return tabulate(
        rows, headers=("step", "", "time", "seen"), colalign=("left", "left", "right", "left"), disable_numparse=True
    )


def seconds_text(seconds: float) -> str:
    """`6.9 s`; `65 ms`, `0.2 ms` below a tenth of a second."""
    if seconds >= 0.1:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.0f} ms" if seconds >= 0.001 else f"{seconds * 1000:.1f} ms"


def _memory(document: CheckDocument) -> str:
    """A row a phase; a column that nothing was read for is left out."""
    known = [name for name in MEMORY if any(getattr(one, name) is not None for one in document.memory)]
    rows = [
        [str(one.phase), *("" if getattr(one, name) is None else format_size(getattr(one, name)) for name in known)]
        for one in document.memory
    ]
    headers = ["memory", *(MEMORY[name] for name in known)]
    return tabulate(rows, headers=headers, colalign=["left", *["right"] * len(known)], disable_numparse=True)


def _wrapped(line: str) -> str:
    return textwrap.fill(line, WIDTH, subsequent_indent="    ", break_on_hyphens=False)
