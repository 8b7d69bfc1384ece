"""The growth screen: the cache's sentence, what one more costs, and one sequence's cache against its length."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from gpufit.profile.peaks import Phase
from gpufit.report.curve_chart import PHASE_COLOURS, size_tick
from gpufit.report.growth import GrowthDocument
from gpufit.report.growth_chart import KNEE, draws, even, extent, knee_of, stretches
from gpufit.report.summary import growth_sentence
from gpufit.tui.renderables.curve import HERE, Label, Picture, Stroke
from gpufit.tui.renderables.evidence import evidence_mark, evidence_text
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
        other = document.sequence_evidence
        mark = "" if other is None or other is growth.evidence else f" {evidence_text(other)}"
        yield f"one sequence of {cached:,}", f"{format_size(document.sequence_bytes)}{mark}"
        yield f"all {count:,} of them", f"{format_size(document.all_sequences_bytes)}{mark}"
    yield "seen after", f"{growth.phase}"


def _size(size: int) -> str:
    return format_size(size) if size else "none"


def growth_picture(document: GrowthDocument, width: int, height: int) -> Picture | None:
    """One sequence's cache against its length, both from nothing; None where there is nothing to draw."""
    if not draws(document):
        return None
    last, most = extent(document)
    x_range, y_range = (0.0, float(last)), (0.0, most * 1.1)
    here, knee = document.scenario.cached_tokens, knee_of(document)
    labels = []
    strokes = [
        Stroke((here, here), y_range, HERE, STRONG),
        *(
            Stroke(
                tuple(float(tokens) for tokens, _ in places),
                tuple(float(size) for _, size in places),
                "braille",
                PHASE_COLOURS[Phase.DECODE],
                joined=not beyond,
            )
            for beyond, places in stretches(document)
        ),
    ]
    if knee is not None:
        strokes.append(Stroke((knee[0],), (knee[1],), KNEE, STRONG, joined=False))
        labels.append(Label(knee[0] + x_range[1] * 0.04, knee[1], "knee", STRONG, "left"))
    return Picture(
        x_range=x_range,
        y_range=y_range,
        x_ticks=tuple((at, format_tokens(at)) for at in even(last, max(width // 14, 2))),
        y_ticks=tuple((at, size_tick(at) if at else "0") for at in even(most, max(height // 4, 2))),
        margin=(),
        strokes=tuple(strokes),
        labels=tuple(labels),
    )


def plot_title(document: GrowthDocument) -> Text:
    """What is drawn."""
    if document.growth is None:
        return Text()
    text = Text.assemble(("KV cache of one sequence against its tokens", DIM), (f" · {HERE} ", STRONG), ("here ", DIM))
    if document.growth.knee_tokens:
        text.append(f"· {KNEE} ", STRONG).append("knee ", DIM)
    text.append("· ", DIM).append_text(evidence_mark(document.growth.evidence))
    if any(beyond for beyond, _ in stretches(document)):
        text.append(", beyond ", DIM).append_text(evidence_mark(document.points[-1].evidence)).append(" (dotted)", DIM)
    return text
