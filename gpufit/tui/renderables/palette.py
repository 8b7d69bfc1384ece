"""Signs and colours: which parts a bar shows together, how each is filled, and how a verdict is painted.

Every sign also reads without colour: fills differ in shape, verdicts carry their own sign and word.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.advice.verdict import Verdict
from gpufit.report.part_groups import PART_GROUPS, PartGroup


@dataclass(frozen=True, kw_only=True)
class FilledGroup(PartGroup):
    """Parts that a bar draws in one fill."""

    fill: str
    """One cell wide."""


GROUPS: tuple[FilledGroup, ...] = tuple(
    FilledGroup(title=one.title, short=one.short, colour=one.colour, parts=one.parts, fill=fill)
    for one, fill in zip(PART_GROUPS, "█▓▒▚▂▌", strict=True)
)
"""Bottom of the bar first."""

UPPER_FILL = "░"
UPPER_STYLE = "#c9d1de"
"""From the need to its upper bound."""
CEILING_MARK = "│"
"""The card's capacity."""
CUT_MARK = "»"
"""The bar goes on beyond the screen."""

PLAIN = "#d5dae3"
DIM = "#8b95a7"
STRONG = "bold #f2f5fa"
TITLE = "bold #8fb8ff"
SELECTED_BACKGROUND = "#222e43"

VERDICT_STYLES: dict[Verdict, str] = {
    Verdict.FITS: "bold #62d68a",
    Verdict.TOO_CLOSE: "bold #ffcf5c",
    Verdict.DOES_NOT_FIT: "bold #ff7272",
    Verdict.UNKNOWN: "bold #9aa5b8",
}
"""Colours beside the signs of `report.cells.SYMBOLS`."""

WARNING = VERDICT_STYLES[Verdict.TOO_CLOSE]
"""What somebody has to know before anything else."""

WAIT = "…"
"""Stands where a figure is still being worked out."""
