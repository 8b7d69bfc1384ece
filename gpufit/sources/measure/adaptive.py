"""Which cells of a grid to run next, so that few of them make a memory model that is seen to hold. Pure.

The first round spans the grid, both sides of every step in the context that the model's config announces included. The
fit holds cells out by its own rule; where it misses them, more cells are run, those farthest
from all that were run before them, until it holds or the grid is done.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from gpufit.memory.fit import FEWEST_CELLS_TO_HOLD_OUT, GOOD_ENOUGH
from gpufit.profile.cells import Cell
from gpufit.profile.workload import Workload
from gpufit.sources.measure.protocol import CellKey
from gpufit.sources.measure.sweep import grid, remaining

FEWEST_FIRST_CELLS = 8
"""Cells of the first round: six to pin the growth (constant, with sequences, with tokens, with their square and what is
shared by sequences), two to test it."""

FEWEST_CONTEXTS_TO_TEST = 5
"""From here on two contexts can be kept for the test alone: three are left, which tell a curve from a line."""

MORE_CELLS = 3
"""Cells added at a time."""


@dataclass(frozen=True)
class Round:
    """Cells to run, and what for."""

    cells: tuple[CellKey, ...]
    """Those without an outcome, smallest first; empty when nothing is left to do."""
    purpose: str
    """In words."""


def next_round(workload: Workload, steps: Collection[int], done: Sequence[Cell], error: float | None) -> Round:
    """What to run next: `error` is the worst held-out error of the model that the cells done make, None without one.

    Errors are shares of what grows: beside heavy weights a model of the growth may be bad and hardly miss.
    `steps`: contexts at which memory may begin to grow otherwise (a sliding window, a chunk).
    """
    cells = grid(workload)
    left = remaining(cells, done)
    first = first_cells(workload, steps)
    unfinished = remaining(first, done)
    if unfinished:
        return Round(unfinished, _first_purpose(len(first)))
    if not left:
        return Round((), "every cell of the grid is done")
    if error is None:
        return Round(left, f"no cell could be held out: {_cells(len(left), 'more ')}, the rest of the grid")
    if error <= GOOD_ENOUGH:
        return Round((), f"held out {error:.2%} of what grows: no need of the grid's other {_cells(len(left))}")
    more = _in_order(cells, _spread(cells, _keys(cells, left), MORE_CELLS))
    return Round(more, f"held out {error:.2%} of what grows, more than {GOOD_ENOUGH:.2%}: {_cells(len(more), 'more ')}")


def first_cells(workload: Workload, steps: Collection[int]) -> tuple[CellKey, ...]:
    """The cells of the first round, smallest first: at least as many as a fit needs in order to hold any out.

    With five contexts or more, two of them are left to the test, one between the others and the longest, each in a
    single cell; the others pin the growth, each at the fewest and the most sequences. With less, the corners of the
    grid and its middle do both. So do both sides of each step.
    """
    cells = grid(workload)
    contexts, many = sorted(set(workload.contexts_tokens)), sorted(set(workload.concurrencies))
    few, some, most = many[0], many[len(many) // 2], many[-1]
    if len(contexts) >= FEWEST_CONTEXTS_TO_TEST:
        tested = (_between(contexts, steps), contexts[-1])
        chosen = {(tested[0], some), (tested[1], most)}
        chosen |= {(context, count) for context in contexts if context not in tested for count in (few, most)}
    else:
        short, middle, long = contexts[0], contexts[len(contexts) // 2], contexts[-1]
        chosen = {(short, few), (short, most), (middle, some), (long, few), (long, some), (long, most)}
        chosen |= {(side, count) for step in steps for side in _sides(contexts, step) for count in (few, most)}
    picked = {cell for cell in cells if (cell.context_tokens, cell.concurrency) in chosen}
    lacking = FEWEST_FIRST_CELLS - len(picked)
    return _in_order(cells, picked | _spread(cells, picked, lacking))


def _between(contexts: Sequence[int], steps: Collection[int]) -> int:
    """The context to test interpolation with: nearest to the middle, and no pin of a step.

    For every step a context below and two that reach it have to be left; where none leaves them, the middle is taken.
    """
    middle = len(contexts) // 2
    inner = sorted(contexts[1:-1], key=lambda context: abs(contexts.index(context) - middle))

    def pinned(tested: int) -> bool:
        pins = [context for context in contexts[:-1] if context != tested]
        return all(min(pins) < step and sum(pin >= step for pin in pins) >= 2 for step in steps)

    return next((context for context in inner if pinned(context)), contexts[middle])


def _sides(contexts: Sequence[int], step: int) -> Iterable[int]:
    """The contexts next to a step: the last below it, and the first two that reach it."""
    below = [context for context in contexts if context < step]
    beyond = [context for context in contexts if context >= step]
    return (*below[-1:], *beyond[:2])


def _spread(cells: Sequence[CellKey], taken: Iterable[CellKey], count: int) -> set[CellKey]:
    """`count` cells that are not taken, each the farthest from all taken before it; of equals, the smaller one.

    Distances are between logarithms: from 128 to 512 is as far as from 1 to 4.
    """
    near, added = list(taken), set[CellKey]()
    while len(added) < count:
        free = [cell for cell in cells if cell not in near]
        if not free:
            break
        farthest = max(free, key=lambda cell: min((_distance(cell, one) for one in near), default=0.0))
        near.append(farthest)
        added.add(farthest)
    return added


def _distance(one: CellKey, other: CellKey) -> float:
    return math.hypot(
        math.log(one.context_tokens / other.context_tokens), math.log(one.concurrency / other.concurrency)
    )


def _keys(cells: Sequence[CellKey], left: Collection[CellKey]) -> list[CellKey]:
    return [cell for cell in cells if cell not in left]


def _in_order(cells: Sequence[CellKey], chosen: Collection[CellKey]) -> tuple[CellKey, ...]:
    return tuple(cell for cell in cells if cell in chosen)


def _first_purpose(count: int) -> str:
    if count < FEWEST_CELLS_TO_HOLD_OUT:
        return f"{_cells(count)} in the grid: none to spare for a test"
    return f"{count - 2} cells pin the growth, 2 test it"


def _cells(count: int, which: str = "") -> str:
    return f"{count} {which}{'cell' if count == 1 else 'cells'}"
