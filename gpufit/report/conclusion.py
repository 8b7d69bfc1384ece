"""What a comparison of two profiles comes to, in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpufit.advice.comparison import Comparison, PartDifference, PhaseDifference
from gpufit.advice.differences import Difference, Topic
from gpufit.report.cells import PART_TITLES
from gpufit.units import format_size

MOST_PARTS = 2
"""Parts that a sentence names."""

NEGLIGIBLE = 0.001
"""Share of `allocated` below which nobody is sent looking for a reason (assumed)."""


def conclusion(comparison: Comparison) -> Iterator[str]:
    """Which phases differ by how much, in which parts, and where to look first."""
    if comparison.same:
        yield "A and B are the same profile: nothing differs"
        return
    yield from _phases(comparison.phases)
    if not comparison.differences:
        yield "nothing that the two record differs"
    yield from _reserved(comparison.phases)
    parts = {part.part for phase in comparison.phases for part in phase.parts if _matters(phase, part)}
    if parts:
        yield _look_first(comparison.differences, parts)


def _reserved(phases: Sequence[PhaseDifference]) -> Iterator[str]:
    """What a device's tools show of the allocator, where that is not what was allocated that differs."""
    for phase in phases:
        sizes = [None if side is None else side.counters.get("reserved") for side in (phase.a, phase.b)]
        if sizes[0] is None or sizes[1] is None or abs(sizes[1] - sizes[0]) <= NEGLIGIBLE * sizes[0]:
            continue
        yield (
            f"{phase.phase}: the allocator reserved {format_size(sizes[0])} against {format_size(sizes[1])}, free "
            "blocks included, which no card has to offer"
        )


def _matters(phase: PhaseDifference, part: PartDifference) -> bool:
    """Whether a part's difference is one to look into."""
    if phase.a is None or not part.beyond_intervals:
        return False
    return abs(part.difference_bytes or 0) > NEGLIGIBLE * phase.a.allocated_bytes


def _phases(phases: Sequence[PhaseDifference]) -> Iterator[str]:
    shared = [phase for phase in phases if phase.difference_bytes is not None]
    beyond = [phase for phase in shared if phase.beyond_intervals]
    for phase in beyond:
        yield f"{phase.phase}: {_how_much(phase)}{_mostly(phase)}"
    for phase in phases:
        if phase.difference_bytes is None:
            yield f"{phase.phase}: {'B' if phase.a is None else 'A'} alone has it"
    for phase in shared:
        parts = [] if phase.beyond_intervals else [part for part in phase.parts if _matters(phase, part)]
        if parts:
            in_all = "no difference beyond the intervals" if phase.difference_bytes else "the same"
            yield f"{phase.phase}: {in_all} in all, but {_named(parts)}"
    within = [phase for phase in shared if not _told(phase)]
    equal = [phase for phase in within if not phase.difference_bytes]
    if len(equal) == len(within) and within:
        yield f"{_listed(equal)}: the same to the byte"
    elif within:
        yield f"{_listed(within)}: no difference beyond the intervals"


def _told(phase: PhaseDifference) -> bool:
    """Whether a sentence of its own has said how a phase differs, in all or in some part."""
    return bool(phase.beyond_intervals) or any(_matters(phase, part) for part in phase.parts)


def _listed(phases: Sequence[PhaseDifference]) -> str:
    return ", ".join(str(phase.phase) for phase in phases)


def _how_much(phase: PhaseDifference) -> str:
    difference, before = phase.difference_bytes or 0, phase.a.allocated_bytes if phase.a else 0
    share = f" ({difference / before:+.1%})" if before else ""
    if abs(difference) < NEGLIGIBLE * before:
        share = f" (less than {NEGLIGIBLE:.1%})"
    return f"B takes {format_size(abs(difference))} {'more' if difference > 0 else 'less'} than A{share}"


def _mostly(phase: PhaseDifference) -> str:
    """The parts that most of a difference lies in, where there are several."""
    parts = [part for part in phase.parts if part.difference_bytes]
    if not parts:
        return ""
    return f", {'in' if len(parts) <= MOST_PARTS else 'mostly in'} {_named(parts)}"


def _named(parts: Sequence[PartDifference]) -> str:
    """The largest differences by their parts: `weights +202.65 GiB, temporaries +95.75 GiB`."""
    largest = sorted(parts, key=lambda one: -abs(one.difference_bytes or 0))[:MOST_PARTS]
    return ", ".join(f"{PART_TITLES[one.part]} {signed_size(one.difference_bytes or 0)}" for one in largest)


def _look_first(differences: Sequence[Difference], parts: set[str]) -> str:
    """The first recorded difference that bears on any of the parts; the device is the last of them."""
    bearing = [one for one in differences if parts & set(one.bears_on)]
    if not bearing:
        return (
            "nothing that the two record bears on it: run both again and see whether the difference stays, before the "
            "device is blamed"
        )
    first = bearing[0]
    if first.topic is Topic.DEVICE:
        return (
            "model, precision, workload, engine and environment are the same as far as recorded: what is left is the "
            f"device ({first.words})"
        )
    another_device = any(one.topic is Topic.DEVICE for one in bearing)
    return f"look first at the {first.topic} ({first.words}){', before the device is blamed' if another_device else ''}"


def signed_size(size_bytes: int) -> str:
    """A difference with its sign: `+135.0 MiB`."""
    return f"{'+' if size_bytes > 0 else ''}{format_size(size_bytes)}"
