"""From runs of a few layers, or a few steps, to all of them: every part of every moment grows in a straight line. Pure.

    whole = base + (further - base) x ratio           for each direction in which it is extended, added up

Each repetition of a pattern adds the same blocks, so the line is exact: it holds to the byte, and where it would not
(a part below nothing, a moment that is not in every run) nothing is answered.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from gpufit.errors import MeasurementError
from gpufit.profile.peaks import END_OF_PHASE, FIRST_STEP, Moment, Parts, Phase, PhasePeak

Phases = tuple[PhasePeak, ...]


@dataclass(frozen=True)
class Further:
    """A run that has more of something than the base run."""

    phases: Phases
    ratio: int
    """How many times the difference to the base run is missing from the whole."""


def extend(base: Phases, further: Sequence[Further]) -> Phases:
    """The phases at all layers: of a run of all of them, as it showed them. Raises MeasurementError where the runs do
    not lie on a line."""
    if not further:
        return base
    return tuple(
        _extended(peak, peak.moments, [(_same_phase(one.phases, peak.phase), one.ratio) for one in further])
        for peak in base
    )


def extended_steps(before: Phases, last: Phases, steps: int) -> Phases:
    """The phases at so many steps beyond `before`; `last` is one step beyond it. Raises MeasurementError as above."""
    made = []
    for peak in last:
        if peak.phase is not Phase.DECODE:
            made.append(peak)
            continue
        earlier = _same_phase(before, peak.phase)
        later = [one for one in earlier.moments if not one.site.startswith(FIRST_STEP)]
        first = [one for one in peak.moments if one.site.startswith(FIRST_STEP)]
        whole = _extended(peak, later, [(peak, steps)])
        cached = earlier.cached_tokens + steps
        made.append(with_moments(msgspec.structs.replace(whole, cached_tokens=cached), [*first, *whole.moments]))
    return tuple(made)


def with_moments(peak: PhasePeak, moments: Iterable[Moment]) -> PhasePeak:
    """A phase of these moments: its peak is the highest of them, of equal ones the one that it was before. What was
    read in a run of other moments is left behind."""
    kept = tuple(moments)
    candidates = [one for one in kept if one.site != END_OF_PHASE] or list(kept)
    highest = max(candidates, key=lambda one: (one.parts.total_bytes, one.site == peak.site))
    return msgspec.structs.replace(
        peak,
        moments=kept,
        parts=highest.parts,
        allocated_bytes=highest.parts.total_bytes,
        site=highest.site,
        readings=(),
    )


def _same_phase(phases: Phases, phase: Phase) -> PhasePeak:
    return next(one for one in phases if one.phase is phase)


def _extended(peak: PhasePeak, base: Iterable[Moment], further: Sequence[tuple[PhasePeak, int]]) -> PhasePeak:
    others = [({one.site: one.parts for one in more.moments}, ratio) for more, ratio in further]
    moments = []
    for moment in base:
        if any(moment.site not in sites for sites, _ in others):
            raise MeasurementError(f"{peak.phase}: not every run passes {moment.site}; run all layers: --full-depth")
        grown = [(sites[moment.site], ratio) for sites, ratio in others]
        moments.append(Moment(site=moment.site, parts=_on_the_line(peak.phase, moment, grown)))
    return with_moments(peak, moments)


def _on_the_line(phase: Phase, moment: Moment, further: Sequence[tuple[Parts, int]]) -> Parts:
    sizes = extended_sizes(moment.parts, further)
    for name, size in sizes.items():
        if size < 0:
            raise MeasurementError(
                f"{phase}: {name} at {moment.site} does not grow in a straight line with the layers; run all of "
                "them: --full-depth"
            )
    return Parts(**sizes)


def extended_sizes(base: Parts, further: Sequence[tuple[Parts, int]]) -> dict[str, int]:
    """Every part of the whole in bytes, which may come out below nothing where the parts do not lie on a line."""
    starts = {name: getattr(base, name) for name in Parts.NAMES}
    return {
        name: start + sum((getattr(parts, name) - start) * ratio for parts, ratio in further)
        for name, start in starts.items()
    }
