"""What the words on screen mean, said once for the details and the help."""

from __future__ import annotations

from gpufit.advice.verdict import Verdict
from gpufit.profile.record import Evidence

VERDICT_WORDS: dict[Verdict, str] = {
    Verdict.FITS: "even the upper bound of the need is inside the card's capacity",
    Verdict.TOO_CLOSE: (
        "the capacity lies inside the interval of the need, or a remark says why nothing is promised: measure on the "
        "card before you order"
    ),
    Verdict.DOES_NOT_FIT: (
        "even the lower bound of the need is above the card's capacity, or no more than this ran out of memory on it"
    ),
    Verdict.UNKNOWN: "nobody has reported what this card offers to a program, so nothing is claimed",
}

EVIDENCE_WORDS: dict[Evidence, str] = {
    Evidence.MEASURED: "read from this device during the run",
    Evidence.IMPORTED: "printed by a serving engine in its own log",
    Evidence.SIMULATED: "from the same run on fake tensors, no device",
    Evidence.COMPUTED: "arithmetic over the model's configuration and file headers",
    Evidence.SCALED: "a measured figure carried to another card or another size by a stated rule",
    Evidence.ASSUMED: "a default or a catalog constant",
}
"""Strongest first."""

FIGURE_WORDS: dict[str, str] = {
    "capacity": "what a program gets from the card: the lowest total that torch has reported, never the label",
    "need": "driver context + other + all parts at the peak of the phase that needs most",
    "headroom": "capacity less need; below zero it is what is missing",
    "lower .. upper": "the interval of the headroom: how far the figure can be trusted",
    "lots": "what to order: lots x cards in a lot, with the cards that would stand idle",
    "TP, PP": "tensor parallel, pipeline parallel: each copy of the model divided over so many devices",
    "binds": "the part that takes most in the phase that needs most: what to shrink first",
    "context": "prompt tokens of each sequence",
    "at once": "concurrency: sequences held at the same time",
}
