"""What several of a card do, and what would make one do, in lines: below the table of cards."""

from __future__ import annotations

from gpufit.advice.verdict import Verdict
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.plans import ArrangementFigures, ChangeFigures, arrangement_words
from gpufit.units import format_size

MOST_CARDS = 6
"""Cards that do not fit and are still told of one by one; of more, those that come nearest."""


def plan_lines(document: FitDocument) -> list[str]:
    """For each card that one of does not surely fit: the ways to take several, and the nearest changes."""
    rows = [row for row in document.cards if row.verdict is not Verdict.FITS and (row.arrangements or row.changes)]
    nearest = sorted(rows, key=lambda row: -(row.headroom_bytes or 0))[:MOST_CARDS]
    lines = [line for row in rows if row in nearest for line in _lines(row)]
    if len(rows) > MOST_CARDS:
        lines.append(f"{len(rows) - MOST_CARDS} cards further off: name one with --card CARD")
    return lines


def _lines(row: CardRow) -> list[str]:
    lines = []
    plans = [
        f"{one.cards_needed:,} {'card' if one.cards_needed == 1 else 'cards'}{_machines(one)}: "
        f"{arrangement_words(one)}, at most {format_size(one.need_upper_bytes)} each"
        for one in row.arrangements
    ]
    if plans:
        lines.append(f"{row.card}: {'; or '.join(plans)}")
    labels = dict.fromkeys(change_label(row, change) for change in row.changes)
    for label in sorted(labels, key=lambda label: label != _one(row)):
        words = [change.words for change in row.changes if change_label(row, change) == label]
        lines.append(f"{row.card}, {label}: {'; '.join(words)}")
    return lines


def change_label(row: CardRow, change: ChangeFigures) -> str:
    """What a change brings about: that one card does, or so many as a start has ranks; or that fewer cards do."""
    if change.cards_paid is None:
        return _one(row)
    return "fewer cards" if row.arrangements else "what several would do with"


def _machines(plan: ArrangementFigures) -> str:
    """In how many machines the stages of a pipeline stand at least, where one is not enough."""
    if plan.spans_machines:
        return " (spans machines: not modelled)"
    staged = plan.pipeline_parallel_size > 1 and plan.machines > 1
    return f" in {plan.machines:,} machines" if staged else ""


def _one(row: CardRow) -> str:
    """What changes are of: as many devices as the start has ranks."""
    ranks = 1 if row.start is None else row.start.tensor_parallel_size * row.start.pipeline_parallel_size
    return "one card" if ranks == 1 else f"one copy over {ranks}"
