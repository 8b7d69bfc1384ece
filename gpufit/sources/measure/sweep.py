"""Which cells of the grid are still to be run, and which a limit already answers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpufit.profile.cells import Cell, Failed, Measured, Outcome, OutOfMemory, Skipped
from gpufit.profile.workload import Workload
from gpufit.sources.measure.protocol import CellKey

MOST_FAILURES = 3
"""Cells in a row that may fail before the rest is not tried."""


def grid(workload: Workload) -> tuple[CellKey, ...]:
    """All cells of a workload, smallest first, so that a limit shows before it is far exceeded."""
    cells = [
        CellKey(context_tokens=context, new_tokens=workload.new_tokens, concurrency=concurrency)
        for context in workload.contexts_tokens
        for concurrency in workload.concurrencies
    ]
    return tuple(sorted(cells, key=lambda cell: (cell.context_tokens * cell.concurrency, cell.context_tokens)))


def remaining(wanted: Iterable[CellKey], done: Sequence[Cell]) -> tuple[CellKey, ...]:
    """The wanted cells without an outcome, in order."""
    finished = {cell.key for cell in done}
    return tuple(cell for cell in wanted if (cell.context_tokens, cell.new_tokens, cell.concurrency) not in finished)


def settled(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """The cells that a resumed run need not repeat: measured, or out of memory by torch's own word.

    What failed, what was skipped for it, and what the system killed may end otherwise this time.
    """
    return tuple(
        cell
        for cell in cells
        if isinstance(cell.outcome, Measured)
        or (isinstance(cell.outcome, OutOfMemory) and cell.outcome.phase is not None)
    )


def skipped_by_limit(key: CellKey, done: Iterable[Cell]) -> Cell | None:
    """The outcome of a cell that is at least as large as one that ran out of memory; None when none was."""
    for cell in done:
        if isinstance(cell.outcome, OutOfMemory) and _at_least_as_large(key, cell):
            why = f"context {cell.context_tokens} x {cell.concurrency} already ran out of memory"
            return ended(key, Skipped(why=why))
    return None


def skipped_by_time(key: CellKey, given_up: Iterable[Cell], bound_seconds: int) -> Cell | None:
    """The outcome of a cell that is at least as large as one given up after `bound_seconds`; None when none was."""
    for cell in given_up:
        if _at_least_as_large(key, cell):
            why = f"context {cell.context_tokens} x {cell.concurrency} already took longer than {bound_seconds} s"
            return ended(key, Skipped(why=why))
    return None


def _at_least_as_large(key: CellKey, cell: Cell) -> bool:
    """Whether a cell asks for no less than another on any axis."""
    return (
        key.context_tokens >= cell.context_tokens
        and key.concurrency >= cell.concurrency
        and key.new_tokens >= cell.new_tokens
    )


def skipped_by_failures(key: CellKey, done: Sequence[Cell]) -> Cell | None:
    """The outcome of a cell after too many failures in a row, which more of the same would not mend."""
    ran = [cell for cell in done if not isinstance(cell.outcome, Skipped)]
    last = ran[-MOST_FAILURES:]
    if len(last) == MOST_FAILURES and all(isinstance(cell.outcome, Failed) for cell in last):
        return ended(key, Skipped(why=f"the {MOST_FAILURES} cells before it failed"))
    return None


def ended(key: CellKey, outcome: Outcome) -> Cell:
    """The cell with its outcome."""
    return Cell(
        context_tokens=key.context_tokens,
        new_tokens=key.new_tokens,
        concurrency=key.concurrency,
        outcome=outcome,
    )
