"""Why no number of a card is named: which plans were tried, and which could not be. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpufit.advice.machines import devices_in_one, machine_words
from gpufit.advice.verdict import Devices
from gpufit.catalog.record import Card

_UNKNOWN = "nobody has reported what software sees on this card, so it is not judged"
_UNPROMISED = "no plan: nothing is promised on this card (its other remarks say why)"


def no_plan_words(card: Card, promised: bool, tried: Sequence[Devices], untried: Iterable[str]) -> str:
    """Why none of the plans serves, in words. `tried` are the divisions of a copy, what was asked for first; `untried`
    says why others could not be."""
    if card.capacity_bytes is None:
        return _UNKNOWN
    if not promised:
        return _UNPROMISED
    asked = tried[0].count
    kinds = ["whole copies" if asked == 1 else f"copies over {asked} devices each"]
    in_machine = devices_in_one(card)
    others = [one for one in tried[1:] if one.tensor <= in_machine]
    ranks = max((one.tensor for one in others if one.stages == 1), default=0)
    stages = max((one.stages for one in others if one.tensor == 1), default=0)
    both = max((one.count for one in others if one.tensor > 1 and one.stages > 1), default=0)
    kinds += [f"tensor parallel over up to {ranks} devices of one machine"] if ranks else []
    kinds += [f"a pipeline of up to {stages} stages"] if stages else []
    kinds += [f"both together over up to {both}"] if both else []
    why = [*dict.fromkeys(untried)]
    if in_machine == 1 and any(one.tensor > 1 for one in tried[1:]):
        why.append(f"no tensor parallel: {machine_words(card)}")
    beside = f" ({'; '.join(why)})" if why else ""
    return f"none of the plans tried serves it: {', '.join(kinds)}{beside}"
