"""Signs and colours: which parts a bar shows together, how each is filled, and how a verdict is painted.

Every sign also reads without colour: fills differ in shape, verdicts carry their own sign and word.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.advice.verdict import Verdict
from gpufit.report.document import CardRow


@dataclass(frozen=True)
class PartGroup:
    """Parts that a bar draws in one fill."""

    title: str
    short: str
    """The title where space is scarce."""
    fill: str
    """One cell wide."""
    style: str
    parts: tuple[str, ...]
    """Fields of Parts, `context_bytes` or `other_bytes`."""

    def size_bytes(self, row: CardRow) -> int:
        """Bytes of the group at the peak of the row's binding phase."""
        return sum(part_bytes(row, name) for name in self.parts)


GROUPS: tuple[PartGroup, ...] = (
    PartGroup("weights", "weights", "█", "#5b9bf8", ("weights_bytes",)),
    PartGroup("KV cache", "KV", "▓", "#c583e8", ("kv_cache_bytes",)),
    PartGroup("activations", "activ.", "▒", "#3fe0cc", ("activations_bytes",)),
    PartGroup("temporaries", "temp.", "▚", "#e8915b", ("temporaries_bytes",)),
    PartGroup(
        "the rest",
        "rest",
        "▂",
        "#9aa5b8",
        ("buffers_bytes", "inputs_bytes", "outputs_bytes", "rounding_bytes", "unexplained_bytes", "other_bytes"),
    ),
    PartGroup("driver context", "context", "▌", "#dfe4ec", ("context_bytes",)),
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
SELECTED_BACKGROUND = "#26334a"

VERDICT_STYLES: dict[Verdict, str] = {
    Verdict.FITS: "bold #62d68a",
    Verdict.TOO_CLOSE: "bold #ffcf5c",
    Verdict.DOES_NOT_FIT: "bold #ff7272",
    Verdict.UNKNOWN: "bold #9aa5b8",
}
"""Colours beside the signs of `report.cells.SYMBOLS`."""


def part_bytes(row: CardRow, name: str) -> int:
    """A part of the row by its name: a field of Parts, or what stands outside the allocator."""
    size: int = getattr(row if name in ("context_bytes", "other_bytes") else row.parts, name)
    return size
