"""Where a curve crosses each card, in words and in cells: what the terminal interface and exports print."""

from __future__ import annotations

from collections.abc import Sequence

from gpufit.advice.curve import Axis
from gpufit.advice.limits import CEILING
from gpufit.report.cells import SYMBOLS
from gpufit.report.curve import CurveCard, CurveDocument
from gpufit.units import format_size, format_tokens

UNITS = {Axis.CONTEXT: "tokens of context", Axis.CONCURRENCY: "sequences at once"}
"""What a place of each axis counts."""

FIRSTS = {Axis.CONTEXT: "token of context", Axis.CONCURRENCY: "sequence"}
"""The least place of each axis."""

CROSSING_HEADERS = ("card", "verdict", "ceiling", "surely to", "estimate", "at most", "evidence")


def place_text(document: CurveDocument, place: int | None) -> str:
    """A place as people read it; marked where the model's own positions and not memory end it there."""
    if place is None:
        return "not known"
    if place == 0:
        return "none"
    if place == CEILING:
        return "no end"
    words = format_tokens(place) if document.axis is Axis.CONTEXT else f"{place:,}"
    return f"{words} (limit)" if place == document.limit else words


def crossing_cells(document: CurveDocument, card: CurveCard) -> tuple[str, ...]:
    """A card's line under CROSSING_HEADERS."""
    return (
        card.card,
        SYMBOLS[card.verdict],
        "" if card.ceiling_bytes is None else format_size(card.ceiling_bytes),
        place_text(document, card.surely_up_to) if promised(card) else "not promised",
        place_text(document, card.estimate_up_to),
        place_text(document, card.possibly_up_to),
        str(card.evidence),
    )


def promised(card: CurveCard) -> bool:
    """False where only the estimate says how much a card holds: nothing is promised on it."""
    return card.surely_up_to is not None or card.estimate_up_to is None


def crossing_sentence(document: CurveDocument, card: CurveCard) -> str:
    """What one card holds along the axis."""
    unit = UNITS[document.axis]
    if card.ceiling_bytes is None:
        return f"{card.card}: nobody has reported its memory, so nothing is known of where the curve crosses it"
    sure, estimate, most = card.surely_up_to, card.estimate_up_to, card.possibly_up_to
    if estimate is None or most is None:
        return f"{card.card}: the profile answers only for the cells it ran, so no crossing is known"
    if sure is None:
        words = _up_to(document, estimate)
        return f"{card.card}: nothing is promised on this card (see its remarks); by the estimate {words}"
    if sure == document.limit:
        return f"{card.card}: surely holds all {format_tokens(sure)} {unit} that the model's own positions allow"
    if most == 0:
        return f"{card.card}: surely does not hold even 1 {FIRSTS[document.axis]}"
    return (
        f"{card.card}: {unit} surely {_up_to(document, sure)}, by the estimate {_up_to(document, estimate)}, "
        f"surely not beyond {place_text(document, most)}"
    )


def _up_to(document: CurveDocument, place: int) -> str:
    return f"up to {place_text(document, place)}" if place else "none"


def domain_sentence(document: CurveDocument) -> str:
    """Which stretch of the axis was run, and what the rest is."""
    kinds = sorted({point.evidence for line in document.lines for point in line.points}, key=lambda one: one.weakness)
    if document.domain_from is None or document.domain_to is None:
        if not kinds:
            return "no cell was run at this scenario"
        # Loading is known from the run that was; what grows is not.
        return f"the whole curve is {kinds[-1]}" + (": no cell was run along it" if len(kinds) > 1 else "")
    ends = f"{place_text(document, document.domain_from)} to {place_text(document, document.domain_to)}"
    beyond = f" (solid), {kinds[-1]} beyond (dotted)" if len(kinds) > 1 else ""
    return f"{kinds[0]} from {ends}{beyond}"


def distinct_ceilings(cards: Sequence[CurveCard]) -> tuple[tuple[int, tuple[CurveCard, ...]], ...]:
    """Cards of one ceiling together, lowest first; those of unknown memory are left out."""
    found: dict[int, list[CurveCard]] = {}
    for card in cards:
        if card.ceiling_bytes is not None:
            found.setdefault(card.ceiling_bytes, []).append(card)
    return tuple((size, tuple(found[size])) for size in sorted(found))
