"""The cache of one sequence against its tokens as a chart, both from nothing. The terminal draws the same."""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.profile.peaks import Phase
from gpufit.report.chart import Chart, ChartAxis, ChartLine, ChartMark
from gpufit.report.curve_chart import PHASE_COLOURS, size_tick
from gpufit.report.growth import GrowthDocument
from gpufit.units import format_tokens

KNEE = "◆"

_X_TICKS, _Y_TICKS = 8, 6
"""About as many on a page and in a workbook."""


def growth_chart(document: GrowthDocument) -> Chart | None:
    """None where there is nothing to draw."""
    if not draws(document):
        return None
    last, most = extent(document)
    knee = knee_of(document)
    return Chart(
        title="KV cache of one sequence",
        words="What the KV cache of one sequence holds against its tokens.",
        x=ChartAxis("tokens of the sequence", 0, last, tuple((at, format_tokens(at)) for at in even(last, _X_TICKS))),
        y=ChartAxis(
            "KV cache (GiB)", 0, most * 1.1, tuple((at, size_tick(at) if at else "0") for at in even(most, _Y_TICKS))
        ),
        levels=(),
        lines=tuple(
            ChartLine("one sequence", places, PHASE_COLOURS[Phase.DECODE], dotted=beyond)
            for beyond, places in stretches(document)
        ),
        marks=()
        if knee is None
        else (ChartMark(f"the knee: {format_tokens(knee[0])} tokens", *knee, KNEE, "the knee"),),
        here=document.scenario.cached_tokens,
    )


def stretches(document: GrowthDocument) -> list[tuple[bool, tuple[tuple[int, int], ...]]]:
    """The line in pieces that begin where the one before ends: (False, as far as runs or rules reach), (True, what is
    carried beyond that); each place with its bytes."""
    found: list[tuple[bool, list[tuple[int, int]]]] = []
    for point in document.points:
        beyond = document.growth is not None and point.evidence is not document.growth.evidence
        if not found or found[-1][0] is not beyond:
            found.append((beyond, [found[-1][1][-1]] if found else []))
        found[-1][1].append((point.tokens, point.cache_bytes))
    return [(beyond, tuple(places)) for beyond, places in found]


def draws(document: GrowthDocument) -> bool:
    """Whether there is a cache to draw."""
    growth = document.growth
    return growth is not None and bool(document.points) and (growth.grows or bool(growth.state_bytes_per_sequence))


def extent(document: GrowthDocument) -> tuple[int, int]:
    """(tokens, bytes) up to which there is something to draw, each at least 1."""
    return max(document.points[-1].tokens, 1), max(*(point.cache_bytes for point in document.points), 1)


def knee_of(document: GrowthDocument) -> tuple[int, int] | None:
    """(tokens, bytes) where the slope changes; None where that is not among the points."""
    knee = None if document.growth is None else document.growth.knee_tokens
    return next(((point.tokens, point.cache_bytes) for point in document.points if point.tokens == knee), None)


def even(most: int, wanted: int) -> Iterator[int]:
    """Multiples of a power of two, about as many as wanted, none beyond `most`."""
    step = 1
    while most // step > wanted:
        step *= 2
    yield from range(0, most + 1, step)
