"""An order of a model held otherwise than it was profiled: how that is had, and what is to be measured first."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from gpufit.report.order_checks import ARRIVAL, MEASURED_HERE
from gpufit.report.order_document import Check, HeldOtherwise
from gpufit.report.order_judged import Judged


def held_otherwise(judged: Judged) -> HeldOtherwise | None:
    """How what was worked out is had; None of a model held as it was profiled."""
    again = judged.again
    if again is None or judged.held.as_profiled:
        return None
    beforehand = again.beforehand.removeprefix("; ")
    return HeldOtherwise(
        words=judged.held.words,
        options=shlex.join(again.switches),
        remarks=tuple(filter(None, (again.cannot, beforehand, *again.beside))),
    )


def quantiser_of(judged: Judged) -> str:
    """The package that holds it so at load, to be installed beside the engine; empty where none does."""
    again = judged.again
    return "" if again is None or judged.held.as_profiled else again.package


def not_run_so(judged: Judged, checks: Sequence[Check]) -> Iterator[str]:
    """What is to be measured before anything is ordered: by the checks on arrival, on the cards of one copy."""
    if judged.held.as_profiled or not checks:
        return
    numbers = {one.title: number for number, one in enumerate(checks, start=1)}
    decides = next(numbers[one.title] for one in checks if one.decides)
    how, then = f"check {decides} decides", "; with no more than that, order it as it stands"
    if MEASURED_HERE in numbers:
        how, then = f"check {numbers[MEASURED_HERE]} does, and {how}", f"; then order from {ARRIVAL}"
    cards = -(-judged.over.count // judged.card.devices_per_card)
    where = "one such card" if cards == 1 else f"the {cards} cards of one copy"
    yield (
        f"nothing was run with {judged.held.words}, and every figure of memory is worked out: measure that first, on "
        f"{where} ({how}){then}"
    )
