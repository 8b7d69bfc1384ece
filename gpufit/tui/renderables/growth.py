"""The growth screen: the cache's sentence, what one more costs, and one sequence's cache against its length."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from gpufit.profile.record import Phase
from gpufit.report.growth import GrowthDocument
from gpufit.report.summary import growth_sentence
from gpufit.tui.renderables.curve import HERE, PHASE_COLOURS, Label, Picture, Stroke, size_tick
from gpufit.tui.renderables.evidence import evidence_mark
from gpufit.tui.renderables.palette import DIM, PLAIN, STRONG, TITLE
from gpufit.units import format_size, format_tokens


def words(document: GrowthDocument) -> Group:
    """The sentence and its figures, or why there is none; then what more of each costs."""
    parts: list[Text | Table] = [Text("how the cache grows", TITLE)]
    growth, scenario = document.growth, document.scenario
    if growth is None:
        parts.append(Text(document.why_none, PLAIN))
    else:
        sentence = Text.assemble((f"{growth_sentence(growth)} ", PLAIN), evidence_mark(growth.evidence))
        parts += [sentence, Text(), _figures(document)]
    if document.steps:
        title = f"at context {format_tokens(scenario.context_tokens)} x {scenario.concurrency} at once"
        grid = Table.grid(Column(width=28, style=DIM), Column(ratio=1, style=PLAIN), expand=True)
        for step in document.steps:
            cost = f"{format_size(step.allocated_bytes)}, {format_size(step.kv_cache_bytes)} of it KV cache "
            grid.add_row(Text(step.what), Text.assemble((cost, PLAIN), evidence_mark(step.evidence)))
        parts += [Text(), Text(title, TITLE), grid, Text("more allocated at the highest peak", DIM)]
    return Group(*parts)


def _figures(document: GrowthDocument) -> Table:
    grid = Table.grid(Column(width=28, style=DIM), Column(ratio=1, style=PLAIN), expand=True)
    for title, value in _figure_lines(document):
        grid.add_row(Text(title), Text(value))
    return grid


def _figure_lines(document: GrowthDocument) -> Iterator[tuple[str, str]]:
    growth = document.growth
    if growth is None:
        return
    yield "state of a sequence", _size(growth.state_bytes_per_sequence)
    yield "a token", f"{growth.bytes_per_token:,} B" if growth.bytes_per_token else "nothing"
    if growth.knee_tokens:
        yield "a token up to the knee", f"{growth.bytes_per_token_within_knee:,} B more"
        yield "the knee", f"{growth.knee_tokens:,} tokens: the window that sliding layers see"
    else:
        yield "the knee", "none: every token costs the same"
    if growth.shared_bytes:
        yield "held once", format_size(growth.shared_bytes)
    if document.sequence_bytes is not None and document.all_sequences_bytes is not None:
        cached, count = document.scenario.cached_tokens, document.scenario.concurrency
        yield f"one sequence of {cached:,}", format_size(document.sequence_bytes)
        yield f"all {count:,} of them", format_size(document.all_sequences_bytes)
    yield "seen after", f"{growth.phase}"


def _size(size: int) -> str:
    return format_size(size) if size else "none"


def growth_picture(document: GrowthDocument, width: int, height: int) -> Picture | None:
    """One sequence's cache against its length, both from nothing; None where there is nothing to draw."""
    growth, points = document.growth, document.points
    if growth is None or not points or not (growth.grows or growth.state_bytes_per_sequence):
        return None
    last, most = points[-1].tokens, max(point.cache_bytes for point in points)
    x_range, y_range = (0.0, float(max(last, 1))), (0.0, most * 1.1 or 1.0)
    here = document.scenario.cached_tokens
    labels = []
    strokes = [
        Stroke((here, here), y_range, HERE, STRONG),
        Stroke(
            tuple(float(point.tokens) for point in points),
            tuple(float(point.cache_bytes) for point in points),
            "braille",
            PHASE_COLOURS[Phase.DECODE],
        ),
    ]
    knee = growth.knee_tokens
    if knee is not None and knee <= last:
        at = next(point.cache_bytes for point in points if point.tokens == knee)
        strokes.append(Stroke((knee,), (at,), "◆", STRONG, joined=False))
        labels.append(Label(knee + x_range[1] * 0.04, at, "knee", STRONG, "left"))
    return Picture(
        x_range=x_range,
        y_range=y_range,
        x_ticks=tuple((at, format_tokens(at)) for at in _even(last, max(width // 14, 2))),
        y_ticks=tuple((at, size_tick(at) if at else "0") for at in _even(most, max(height // 4, 2))),
        margin=(),
        strokes=tuple(strokes),
        labels=tuple(labels),
    )


def _even(most: int, wanted: int) -> Iterator[int]:
    """Multiples of a power of two, about as many as wanted, none beyond `most`."""
    step = 1
    while most // step > wanted:
        step *= 2
    yield from range(0, most + 1, step)


def plot_title(document: GrowthDocument) -> Text:
    """What is drawn."""
    if document.growth is None:
        return Text()
    text = Text.assemble(("KV cache of one sequence against its tokens", DIM), (f" · {HERE} ", STRONG), ("here ", DIM))
    if document.growth.knee_tokens:
        text.append("· ◆ ", STRONG).append("knee ", DIM)
    return text.append("· ", DIM).append_text(evidence_mark(document.growth.evidence))
