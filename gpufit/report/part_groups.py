"""Which parts of a need a bar draws together: one list for the terminal, the page and the workbook."""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.report.document import CardRow


@dataclass(frozen=True, kw_only=True)
class PartGroup:
    """Parts that a bar draws in one fill."""

    title: str
    short: str
    """The title where space is scarce."""
    colour: str
    """`#rrggbb`, to be seen on dark and on light; never what tells groups apart alone."""
    parts: tuple[str, ...]
    """Fields of Parts, `context_bytes` or `other_bytes`."""

    def size_bytes(self, row: CardRow) -> int:
        """Bytes of the group at the peak of the row's binding phase."""
        return sum(part_bytes(row, name) for name in self.parts)


PART_GROUPS: tuple[PartGroup, ...] = (
    PartGroup(title="weights", short="weights", colour="#5b9bf8", parts=("weights_bytes",)),
    PartGroup(title="KV cache", short="KV", colour="#c583e8", parts=("kv_cache_bytes",)),
    PartGroup(title="activations", short="activ.", colour="#3fe0cc", parts=("activations_bytes",)),
    PartGroup(title="temporaries", short="temp.", colour="#e8915b", parts=("temporaries_bytes",)),
    PartGroup(
        title="the rest",
        short="rest",
        colour="#9aa5b8",
        parts=("buffers_bytes", "inputs_bytes", "outputs_bytes", "rounding_bytes", "unexplained_bytes", "other_bytes"),
    ),
    PartGroup(title="driver context", short="context", colour="#dfe4ec", parts=("context_bytes",)),
)
"""Bottom of the bar first."""


def part_bytes(row: CardRow, name: str) -> int:
    """A part of the row by its name: a field of Parts, or what stands outside the allocator."""
    size: int = getattr(row if name in ("context_bytes", "other_bytes") else row.parts, name)
    return size
