"""How a profile's cells ended, in signs and in words."""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.profile.evidence import Evidence
from gpufit.report.profiles import ProfileRow


def cell_signs(row: ProfileRow) -> str:
    """`✓12 ✗2 -1`: how many cells ended how; of a profile that nothing was run for, that it has none."""
    if not row.cells:
        return "rules" if row.evidence is Evidence.COMPUTED else "none yet"
    return " ".join(f"{sign}{count}" for count, sign, _ in _endings(row))


def cell_words(row: ProfileRow) -> str:
    """The same in words; what ran to its end is called by its evidence."""
    if not row.cells:
        return "none: it answers by rules" if row.evidence is Evidence.COMPUTED else "none yet"
    return ", ".join(f"{count} {words}" for count, _, words in _endings(row))


def _endings(row: ProfileRow) -> Iterator[tuple[int, str, str]]:
    """(count, sign, words) of each way in which any cell ended."""
    endings = (
        (row.cells_completed, "✓", str(row.evidence)),
        (row.cells_out_of_memory, "✗", "out of memory"),
        (row.cells_failed, "!", "failed"),
        (row.cells_skipped, "-", "skipped"),
    )
    return (one for one in endings if one[0])


def minute_text(time: str) -> str:
    """The day and minute of an ISO 8601 time."""
    return time[:16].replace("T", " ")
