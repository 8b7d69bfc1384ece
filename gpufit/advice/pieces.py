"""Whose inputs are whose: the part of a job that each worker takes, and the pieces it is written in. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

PIECE_INPUTS = 1_000
"""Inputs in a piece: what an interruption loses at most of a worker's results (assumed)."""


@dataclass(frozen=True)
class Span:
    """Inputs in a row, counted from 1, both ends included; `last` is `first - 1` where there are none."""

    first: int
    last: int

    @property
    def inputs(self) -> int:
        """How many."""
        return self.last - self.first + 1


def parts(inputs: int, workers: int) -> tuple[Span, ...]:
    """The part of each worker: disjoint, in order, covering every input once, none larger than another by over one.

    Worker k of W takes from (k - 1) x inputs // W + 1 to k x inputs // W. Raises ValueError for fewer inputs than none
    or below one worker.
    """
    if inputs < 0 or workers < 1:
        raise ValueError(f"inputs must not be negative and workers at least 1, not {inputs} and {workers}")
    return tuple(
        Span((number - 1) * inputs // workers + 1, number * inputs // workers) for number in range(1, workers + 1)
    )


def pieces(part: Span, size: int) -> Iterator[Span]:
    """A part in pieces of at most `size` inputs, in order."""
    for first in range(part.first, part.last + 1, size):
        yield Span(first, min(first + size - 1, part.last))


def count_pieces(part: Span, size: int) -> int:
    """How many pieces that is."""
    return -(-part.inputs // size)


def piece_name(piece: Span, worker: int, inputs: int) -> str:
    """The file of a piece, by its range and worker: numbers as wide as the last input's, so that names sort."""
    width = len(str(inputs))
    return f"out-{piece.first:0{width}d}-{piece.last:0{width}d}.w{worker}.jsonl"
