"""Beside a curve: what its signs say, and the table of where it crosses each card."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from gpufit.report.curve import CurveCard, CurveDocument
from gpufit.report.curve_chart import ESTIMATE, FULL, POSSIBLY, RAN, SURELY
from gpufit.report.curve_text import CROSSING_HEADERS, UNITS, crossing_cells, crossing_sentence, domain_sentence
from gpufit.tui.renderables.cards import POINTER
from gpufit.tui.renderables.curve import HERE, SELECTED_RAIL
from gpufit.tui.renderables.evidence import STYLES as EVIDENCE_STYLES
from gpufit.tui.renderables.evidence import evidence_mark, evidence_text
from gpufit.tui.renderables.palette import DIM, PLAIN, SELECTED_BACKGROUND, STRONG, VERDICT_STYLES, WAIT

_FIRST_FIGURE = "surely to"


def legend(document: CurveDocument, card: CurveCard | None) -> Text:
    """What the signs say, then what the selected card holds."""
    text = Text()
    if card is not None:
        text.append(f"{crossing_sentence(document, card)} ", PLAIN).append_text(evidence_mark(card.evidence)).append(
            "\n"
        )
    text.append(f"against {UNITS[document.axis]}: {domain_sentence(document)}", DIM)
    signs = [(HERE, "here"), (SELECTED_RAIL, "the card's ceiling")]
    if card is not None and card.estimate_up_to is not None and card.surely_up_to != document.limit:
        signs.append((f"{SURELY}{ESTIMATE}{POSSIBLY}", "surely, estimate, at most"))
    signs += [(RAN, "a run's peak")] if any(cell.allocated_bytes is not None for cell in document.cells) else []
    signs += [(FULL, "out of memory")] if any(cell.allocated_bytes is None for cell in document.cells) else []
    for sign, words in signs:
        text.append(" · ", DIM).append(f"{sign} ", STRONG).append(words, DIM)
    return text


def waiting() -> Text:
    """Until the answer is settled: what the picture above, of the question before, gives way to."""
    return Text(f"working out how far each card reaches {WAIT}", STRONG)


def crossings(
    document: CurveDocument, listed: Sequence[str], selected: int, width: int, rows: int
) -> tuple[Text, tuple[int, ...]]:
    """The table of crossings in so many rows, the selected card among them; and which of the list each row is."""
    cards = {card.card: card for card in document.cards}
    first = max(min(selected - (rows - 2) // 2, len(listed) - (rows - 1)), 0)
    window = tuple(place for place in range(first, min(first + rows - 1, len(listed))) if listed[place] in cards)
    lines = [_headers(document), *(_cells(document, cards[listed[place]]) for place in window)]
    for narrower in (_without_unit, _without_ceiling, _with_signs):
        if _width(lines) > width:
            lines = [narrower(line) for line in lines]
    widths = _widths(lines)
    text = Text(no_wrap=True, overflow="ellipsis")
    for place, line in zip((None, *window), lines, strict=True):
        chosen = place == selected
        row = Text(f"{POINTER if chosen else ' '} ", DIM if place is None else PLAIN)
        styles = [DIM if place is None else PLAIN] * len(line)
        if place is not None:
            card = cards[listed[place]]
            styles[1], styles[-1] = VERDICT_STYLES[card.verdict], EVIDENCE_STYLES[card.evidence]
        for at, (cell, size, style) in enumerate(zip(line, widths, styles, strict=True)):
            words = at < 2 or at == len(line) - 1
            row.append(cell.ljust(size) if words else cell.rjust(size), style).append("  ")
        row.rstrip()
        if chosen:
            row.stylize(f"bold on {SELECTED_BACKGROUND}")
        text.append_text(row).append("\n")
    return text, window


def _widths(lines: Sequence[tuple[str, ...]]) -> list[int]:
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def _width(lines: Sequence[tuple[str, ...]]) -> int:
    """Of the whole table, pointer and gaps included."""
    return 2 + sum(size + 2 for size in _widths(lines)) - 2


def _without_ceiling(line: tuple[str, ...]) -> tuple[str, ...]:
    return (*line[:2], *line[3:])


def _with_signs(line: tuple[str, ...]) -> tuple[str, ...]:
    """The verdict by its sign alone."""
    return (line[0], "" if line[1] == CROSSING_HEADERS[1] else line[1][0], *line[2:])


def _headers(document: CurveDocument) -> tuple[str, ...]:
    """The titles, the first figure's with what all three count; the words below the plot say it, too."""
    unit = UNITS[document.axis].split()[0]
    return tuple(f"{title}, {unit}" if title == _FIRST_FIGURE else title for title in CROSSING_HEADERS)


def _without_unit(line: tuple[str, ...]) -> tuple[str, ...]:
    return CROSSING_HEADERS if line[0] == CROSSING_HEADERS[0] else line


def _cells(document: CurveDocument, card: CurveCard) -> tuple[str, ...]:
    return (*crossing_cells(document, card)[:-1], evidence_text(card.evidence))
