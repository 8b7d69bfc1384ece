"""Every figure of a document beside the evidence for it, and what the words for evidence mean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpufit.profile.evidence import Evidence
from gpufit.report.document import FitDocument
from gpufit.report.start_text import TITLES
from gpufit.report.summary import growth_sentence

MEANINGS: dict[Evidence, str] = {
    Evidence.MEASURED: "read from the device in runs, or of a shape between theirs by the model fitted to them",
    Evidence.IMPORTED: "printed by a serving engine in its own log",
    Evidence.SIMULATED: "from the same run on fake tensors",
    Evidence.COMPUTED: "arithmetic over a config and file headers",
    Evidence.SCALED: "a measured figure carried beyond where it was seen, by a stated rule",
    Evidence.ASSUMED: "a default or a figure of the catalog",
}
"""Strongest first; a total has the weakest evidence of its parts."""


@dataclass(frozen=True)
class Figure:
    """One figure."""

    what: str
    where: str
    """The phase or the card it holds for; empty for the whole document."""
    size_bytes: int | None
    """The most likely size; None where the figure is not one size."""
    lower_bytes: int | None
    upper_bytes: int | None
    evidence: Evidence
    words: str
    """How it came about; empty where the assumptions say so."""


def figures_of(document: FitDocument) -> tuple[Figure, ...]:
    """What each phase allocates, how the cache grows, what each card needs, and of what a server's start is made."""
    return (*_phases(document), *_growth(document), *_needs(document), *_start_parts(document))


def used_evidence(document: FitDocument) -> tuple[Evidence, ...]:
    """The kinds of evidence that a document's figures have, strongest first."""
    used = {figure.evidence for figure in figures_of(document)} | {document.evidence}
    return tuple(kind for kind in MEANINGS if kind in used)


def _phases(document: FitDocument) -> Iterator[Figure]:
    for name, one in document.phases.items():
        bounds = (one.allocated_bytes, one.allocated_lower_bytes, one.allocated_upper_bytes)
        yield Figure("allocated", name, *bounds, one.evidence, f"peak in {one.site}" if one.site else "")


def _growth(document: FitDocument) -> Iterator[Figure]:
    growth = document.kv_cache_growth
    if growth is not None:
        yield Figure("growth", f"after {growth.phase}", None, None, None, growth.evidence, growth_sentence(growth))


def _needs(document: FitDocument) -> Iterator[Figure]:
    for row in document.cards:
        bounds = (row.need_bytes, row.need_lower_bytes, row.need_upper_bytes)
        yield Figure("need", row.card, *bounds, row.evidence, "")


def _start_parts(document: FitDocument) -> Iterator[Figure]:
    for row in document.cards:
        for part in () if row.start is None else row.start.parts:
            bounds = (part.size_bytes, part.lower_bytes, part.upper_bytes)
            yield Figure(TITLES.get(part.name, part.name), row.card, *bounds, part.evidence, "; ".join(part.words))
