"""A forward pass told by arithmetic: which blocks an engine asks for, in order, their sizes as sums of terms.

A size is not a number but a sum such as `24,576 x per_token + 8 x per_sequence`, so one pass gives every moment of a
phase for all shapes at once: the moments that no other covers are the memory model, and nothing has to be fitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from gpufit.profile.memory_model import Coefficient, MomentModel, PartModel, TermName
from gpufit.profile.peaks import Parts


@dataclass(frozen=True, slots=True)
class Size:
    """Bytes as a sum of terms, each with its bytes for one unit. Zero is the empty sum."""

    terms: tuple[tuple[TermName, float], ...] = ()

    @classmethod
    def of(cls, term: TermName, size_bytes: float) -> Size:
        """So many bytes for every unit of one term."""
        return cls(((term, size_bytes),)) if size_bytes else cls()

    def __add__(self, other: Size) -> Size:
        """The sum, term by term."""
        total = dict(self.terms)
        for term, size in other.terms:
            total[term] = total.get(term, 0.0) + size
        return Size(tuple(total.items()))

    def __mul__(self, factor: float) -> Size:
        """Every term so many times."""
        return Size(tuple((term, size * factor) for term, size in self.terms)) if factor else Size()

    __rmul__ = __mul__


@dataclass
class _Block:
    part: str
    size: Size


Composition = dict[str, dict[TermName, float]]
"""Bytes for each unit of each term, by part."""


class Tape:
    """The blocks of one phase as they come and go. A block is the number that `new` gave."""

    def __init__(self) -> None:
        self._blocks: dict[int, _Block] = {}
        self._live: Composition = {name: {} for name in Parts.NAMES}
        self._site = ""
        self._grew = False
        self._moments: list[tuple[str, Composition]] = []

    def new(self, size: Size, part: str = "temporaries_bytes") -> int:
        """A block of this size, counted as this part of `allocated`."""
        block = len(self._blocks)
        self._blocks[block] = _Block(part, size)
        self._change(part, size, 1.0)
        self._grew = True
        return block

    def free(self, *blocks: int) -> None:
        """Blocks that are given back."""
        self._note()
        for block in blocks:
            gone = self._blocks[block]
            self._change(gone.part, gone.size, -1.0)
            gone.size = Size()

    def become(self, block: int, part: str) -> None:
        """A block that counts as another part from here on: a key that the cache adopts."""
        self._note()
        was = self._blocks[block]
        self._change(was.part, was.size, -1.0)
        self._change(part, was.size, 1.0)
        was.part = part

    @contextmanager
    def held(self, *sizes: Size) -> Iterator[None]:
        """Blocks that live as long as the context."""
        blocks = [self.new(size) for size in sizes]
        yield
        self.free(*blocks)

    @contextmanager
    def at(self, site: str) -> Iterator[None]:
        """The place in the model that moments within belong to."""
        self._note()
        outer, self._site = self._site, site
        yield
        self._note()
        self._site = outer

    def moments(self) -> tuple[MomentModel, ...]:
        """The moments that may be the highest at some shape: no other is at least as high in every term."""
        self._note()
        kept: list[tuple[str, Composition, dict[TermName, float]]] = []
        for site, parts in self._moments:
            totals = _totals(parts)
            if any(_covers(other, totals) for _, _, other in kept):
                continue
            kept = [one for one in kept if not _covers(totals, one[2])]
            kept.append((site, parts, totals))
        return tuple(_moment(site, parts) for site, parts, _ in kept)

    def end(self, site: str) -> MomentModel:
        """What is live now."""
        return _moment(site, self._live)

    def _change(self, part: str, size: Size, sign: float) -> None:
        live = self._live[part]
        for term, size_bytes in size.terms:
            live[term] = live.get(term, 0.0) + sign * size_bytes

    def _note(self) -> None:
        """Only where something is about to be given back can it have been high."""
        if self._grew:
            self._moments.append((self._site, {part: dict(terms) for part, terms in self._live.items()}))
            self._grew = False


def _totals(parts: Composition) -> dict[TermName, float]:
    totals: dict[TermName, float] = {}
    for terms in parts.values():
        for term, size in terms.items():
            totals[term] = totals.get(term, 0.0) + size
    return totals


def _covers(one: Mapping[TermName, float], other: Mapping[TermName, float]) -> bool:
    """Whether one total is at least as high as another at every shape."""
    return all(one.get(term, 0.0) >= size for term, size in other.items())


def _moment(site: str, parts: Composition) -> MomentModel:
    return MomentModel(
        site=site,
        parts=tuple(
            PartModel(
                part=part,
                coefficients=tuple(
                    Coefficient(term=term, bytes_per_unit=size) for term, size in terms.items() if size > 0
                ),
            )
            for part, terms in parts.items()
            if any(size > 0 for size in terms.values())
        ),
    )
