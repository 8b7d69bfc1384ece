"""Fitting one part of one moment: as few non-negative terms as meet what was measured."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from gpufit.memory.predict import growth_of
from gpufit.memory.terms import TERMS, Extent, Knees, Shape, base_terms
from gpufit.profile.memory_model import Coefficient, PartModel, TermName
from gpufit.profile.peaks import Parts, Phase

CLOSE_ENOUGH = 1e-5
"""A part is explained when it is met to this share of all that grows in the cell, and no further term is sought. Sizes
are exact, so where the terms are the right ones nothing but the rounding of floats is left (assumed)."""

WORTH_A_TERM = 0.7
"""A further term has to bring the worst miss below this share of what it was, or it explains nothing (assumed)."""


@dataclass(frozen=True)
class Point:
    """One moment at one shape."""

    shape: Shape
    parts: Parts


def fit_parts(
    points: Sequence[Point], phase: Phase, knees: Knees, further: Sequence[tuple[TermName, ...]]
) -> Iterator[PartModel]:
    """Every part that some point has, each by itself.

    `further`: the terms beyond the base ones, those that only occur together as one, likeliest first.
    """
    for name in Parts.NAMES:
        targets = [getattr(point.parts, name) for point in points]
        if not any(targets):
            continue
        if len(set(targets)) == 1:
            yield part_model(name, {"constant": float(targets[0])})
            continue
        yield part_model(name, _simplest_fit(Problem(name, points, targets, phase, knees), further))


def part_model(name: str, sizes: Mapping[TermName, float]) -> PartModel:
    """A part as the sum of terms, those of no size left out."""
    return PartModel(
        part=name,
        coefficients=tuple(Coefficient(term=term, bytes_per_unit=size) for term, size in sizes.items() if size > 0),
    )


@dataclass(frozen=True)
class Problem:
    """One part of one moment: what it was at every point, and how much each point counts.

    A point counts by the inverse of all that grows in it, so that small cells count like large ones, and what one part
    loses to another at a slightly different moment weighs as little as it does in their sum.
    """

    part: str
    points: Sequence[Point]
    targets: Sequence[int]
    phase: Phase
    knees: Knees

    def units(self, term: TermName) -> list[float]:
        """Units of a term at every point, weighted."""
        extents = [Extent.of(point.shape, self.phase, self.knees) for point in self.points]
        return [TERMS[term](extent) * self.weight(point) for extent, point in zip(extents, self.points, strict=True)]

    @staticmethod
    def weight(point: Point) -> float:
        """How much a point counts."""
        return 1.0 / max(growth_of(point.parts), 1)

    def miss(self, part: PartModel) -> float:
        """The worst weighted miss of a part that is fitted already."""
        extents = [Extent.of(point.shape, self.phase, self.knees) for point in self.points]
        return max(
            abs(sum(one.bytes_per_unit * TERMS[one.term](extent) for one in part.coefficients) - target)
            * self.weight(point)
            for extent, point, target in zip(extents, self.points, self.targets, strict=True)
        )

    def solve(self, terms: Sequence[TermName]) -> tuple[dict[TermName, float], float]:
        """(bytes a unit of every term, worst weighted miss), by non-negative least squares."""
        from scipy.optimize import nnls

        columns = [self.units(term) for term in terms]
        scales = [max(column) or 1.0 for column in columns]
        values = [target * self.weight(point) for point, target in zip(self.points, self.targets, strict=True)]
        rows = [
            [column[row] / scale for column, scale in zip(columns, scales, strict=True)] for row in range(len(values))
        ]
        solution, _ = nnls(rows, values)
        misses = [
            abs(sum(a * b for a, b in zip(row, solution, strict=True)) - value)
            for row, value in zip(rows, values, strict=True)
        ]
        sizes = {term: float(size) / scale for term, size, scale in zip(terms, solution, scales, strict=True)}
        return sizes, max(misses)


def _simplest_fit(problem: Problem, further: Sequence[tuple[TermName, ...]]) -> dict[TermName, float]:
    """The base terms, and of the further ones only those without which the part is not explained."""
    lengths = [point.shape.tokens_in(problem.phase) for point in problem.points]
    terms = base_terms(problem.part, problem.phase, problem.knees, lengths)
    sizes, miss = problem.solve(terms)
    while miss > CLOSE_ENOUGH:
        taken = _next_terms(problem, terms, further, miss)
        if taken is None:
            break
        terms, sizes, miss = taken
    return sizes


def _next_terms(
    problem: Problem, terms: tuple[TermName, ...], further: Sequence[tuple[TermName, ...]], miss: float
) -> tuple[tuple[TermName, ...], dict[TermName, float], float] | None:
    """(terms, their sizes, the miss) with one more term, or two where one is not worth it; None where neither is."""
    left = [group for group in further if group[0] not in terms]
    for count in (1, 2):
        trials = []
        for groups in itertools.combinations(left, count):
            more = (*terms, *itertools.chain.from_iterable(groups))
            sizes, missed = problem.solve(more)
            if missed <= CLOSE_ENOUGH:
                return more, sizes, missed  # of fits that explain the part the first is taken, of others the best
            trials.append((more, sizes, missed))
        best = min(trials, key=lambda trial: trial[2], default=None)
        if best is not None and best[2] <= WORTH_A_TERM * miss:
            return best
    return None
