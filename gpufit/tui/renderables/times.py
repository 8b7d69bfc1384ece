"""The time screen: a line for each cell that ran, and that no speed goes to another card."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from gpufit.report.times import NEVER_CARRIED, TimeRow, TimesDocument
from gpufit.report.times_text import inputs_rate_text, seconds_text, tokens_rate_text
from gpufit.tui.renderables.cards import POINTER
from gpufit.tui.renderables.evidence import evidence_mark
from gpufit.tui.renderables.palette import DIM, PLAIN, SELECTED_BACKGROUND, STRONG, TITLE
from gpufit.units import format_tokens

HEADERS = ("context", "new", "at once", "first token", "whole run", "inputs/s", "generated tokens/s", "prompt tokens/s")
"""Of the table; a wide screen has them all, a narrow one leaves out the last."""


def times_head(document: TimesDocument) -> Text:
    """On which device, and the sentence that always stands there."""
    text = Text()
    if document.timed:
        text.append("times on ", TITLE).append(f"{document.device} ", STRONG)
        text.append_text(evidence_mark(document.evidence))
    else:
        text.append("no times", TITLE)
    text.append(f"\n{document.model.name} · {document.engine.name} {document.engine.version}", DIM)
    text.append(f" ({document.engine.attention})\n{NEVER_CARRIED}", DIM)
    return text.append(f"\n\n{document.why_none}", PLAIN) if document.why_none else text


def times_table(document: TimesDocument, shape: tuple[int, int, int], width: int) -> Text:
    """A line a cell, the one at the scenario marked."""
    rows = [time_cells(row) for row in document.rows]
    shown = [HEADERS, *rows]
    widths = [max(len(line[at]) for line in shown) for at in range(len(HEADERS))]
    kept = list(range(len(HEADERS)))
    while sum(widths[at] + 2 for at in kept) + 14 > width and len(kept) > 5:
        kept.pop()
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append("  " + "  ".join(HEADERS[at].rjust(widths[at]) for at in kept) + "  evidence\n", DIM)
    for row, cells in zip(document.rows, rows, strict=True):
        here = (row.context_tokens, row.new_tokens, row.concurrency) == shape
        line = Text().append(f"{POINTER if here else ' '} ", STRONG)
        line.append("  ".join(cells[at].rjust(widths[at]) for at in kept), PLAIN).append("  ")
        line.append_text(Text(row.outcome, DIM) if row.evidence is None else evidence_mark(row.evidence))
        if here:
            line.stylize(f"bold on {SELECTED_BACKGROUND}")
        text.append_text(line).append("\n")
    return text


def time_cells(row: TimeRow) -> tuple[str, ...]:
    """A cell's figures under HEADERS; blank where nothing was timed."""
    return (
        format_tokens(row.context_tokens),
        f"{row.new_tokens:,}",
        f"{row.concurrency:,}",
        _shown(row.time_to_first_token_seconds, seconds_text),
        _shown(row.wall_seconds, seconds_text),
        _shown(row.inputs_per_second, inputs_rate_text),
        _shown(row.generated_tokens_per_second, tokens_rate_text),
        _shown(row.prompt_tokens_per_second, tokens_rate_text),
    )


def _shown(value: float | None, text: Callable[[float], str]) -> str:
    return "" if value is None else text(value)
