"""What the words on screen mean, said once for the details and the help."""

from __future__ import annotations

from gpufit.advice.verdict import Verdict
from gpufit.profile.evidence import Evidence

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
    "ceiling": "capacity less the driver context: what allocations may take, and what a curve is drawn against",
    "need": "driver context + other + all parts at the peak of the phase that needs most",
    "headroom": "capacity less need; below zero it is what is missing",
    "lower .. upper": "the interval of the figure above it: how far that can be trusted",
    "lots": "what to order: lots x cards in a lot, with the cards that would stand idle",
    "single": "one card serves all sequences",
    "replicas": "several copies of the model, each whole on a card of its own with its part of the sequences",
    "sharded, TP": "tensor parallel: each layer of a copy divided over so many cards",
    "pipeline, PP": "pipeline parallel: the layers of a copy laid out over so many cards, one card after the other",
    "KV cache": "what attention keeps of every token so far; it grows with context and sequences at once",
    "knee": "the length from which a sequence's cache grows otherwise: the window that sliding layers see",
    "binds": "the part that takes most in the phase that needs most: what to shrink first",
    "load": "phase: the model comes into memory",
    "prefill": "phase: the prompts are read, all their tokens at once",
    "decode": "phase: new tokens are made, one a step for each sequence",
    "forward": "phase: the one pass of a model that makes no tokens",
    "context": "prompt tokens of each sequence",
    "at once": "concurrency: sequences held at the same time",
}
