"""Rental terms: what each is for, how many hours a stated volume of work takes, and which term holds it. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

from gpufit.advice.limits import CEILING, largest_that_fits
from gpufit.advice.throughput import Throughput
from gpufit.catalog.offers import TERMS
from gpufit.errors import UsageError
from gpufit.profile.evidence import Evidence

HOURS_A_DAY = 24
SECONDS_AN_HOUR = 3_600

PURPOSES: dict[int, str] = {
    3: "install, prove the pipeline, first usable result",
    7: "variants and repeated measurement",
    30: "a campaign or a service",
}
"""What each term of `catalog.offers.TERMS` is for, by its days."""

SETUP_HOURS = 4.0
"""Reaching the machine, installing, fetching the weights and the checks on arrival (assumed)."""
CHECKS_HOURS = 2.0
"""Confirming that the job is complete, and quality checks of its outputs (assumed)."""
EXPORT_HOURS = 2.0
"""Taking outputs, figures and configuration away before the cards go back (assumed)."""
BUSY_SHARE = 0.9
"""The share of its hours in which a worker computes; restarts, reloads and stragglers take the rest (assumed)."""


@dataclass(frozen=True)
class Volume:
    """How much work there is; what is None was not stated."""

    inputs: int | None = None
    tokens: int | None = None
    """Generated tokens in all, or prompt tokens of a model that generates none."""

    @property
    def stated(self) -> bool:
        """Whether anything was."""
        return self.inputs is not None or self.tokens is not None


@dataclass(frozen=True)
class Overheads:
    """What a term's hours go to beside the work itself. Raises UsageError for hours below 0 and a share out of 0..1."""

    setup_hours: float = SETUP_HOURS
    checks_hours: float = CHECKS_HOURS
    export_hours: float = EXPORT_HOURS
    busy_share: float = BUSY_SHARE

    def __post_init__(self) -> None:
        hours = (self.setup_hours, self.checks_hours, self.export_hours)
        if not all(math.isfinite(one) and one >= 0 for one in hours):
            raise UsageError("hours of set-up, checks and export must be 0 or more")
        if not 0 < self.busy_share <= 1:
            raise UsageError("the busy share must be above 0 and at most 1")

    @property
    def fixed_hours(self) -> float:
        """Hours that no number of workers shortens."""
        return self.setup_hours + self.checks_hours + self.export_hours


@dataclass(frozen=True)
class Hours:
    """How long a volume takes."""

    processing_hours: float
    """Until the last worker is done, what `busy_share` allows for included."""
    overheads: Overheads
    evidence: Evidence
    """Of the rate that they follow from, that of several workers being `scaled`."""
    at_most: bool = False
    """Whether the rate is only known to be no less, so that the hours are no more than these."""

    @property
    def total_hours(self) -> float:
        """Set-up, processing, checks and export."""
        return self.processing_hours + self.overheads.fixed_hours

    def within(self, days: int) -> bool:
        """Whether a term of so many days holds them."""
        return self.total_hours <= days * HOURS_A_DAY


@dataclass(frozen=True)
class Pace:
    """Inputs and tokens in a second; None for what was not stated."""

    inputs_per_second: float | None
    tokens_per_second: float | None


def hours_for(volume: Volume, worker: Throughput, workers: int, overheads: Overheads) -> Hours:
    """The hours of a stated volume at the rate of one worker, the work divided evenly over several.

    Inputs are not divided: the worker with one more is waited for. Where inputs and tokens are stated, the longer of
    the two counts. Raises ValueError without a volume or below one worker.
    """
    if workers < 1 or not volume.stated:
        raise ValueError("hours need a volume and at least one worker")
    seconds = 0.0
    if volume.inputs is not None:
        seconds = -(-volume.inputs // workers) / worker.inputs_per_second
    if volume.tokens is not None:
        seconds = max(seconds, volume.tokens / workers / worker.priced_tokens_per_second)
    together = worker.of_copies(worker.copies * workers)
    hours = seconds / SECONDS_AN_HOUR / overheads.busy_share
    return Hours(hours, overheads, together.evidence, at_most=not worker.is_asked_cell)


def least_pace(volume: Volume, workers: int, days: int, overheads: Overheads) -> Pace | None:
    """What one worker has to do in a second for a term to hold the work; None where the other hours take all of it.

    Raises ValueError without a volume or below one worker.
    """
    if workers < 1 or not volume.stated:
        raise ValueError("a pace needs a volume and at least one worker")
    seconds = (days * HOURS_A_DAY - overheads.fixed_hours) * SECONDS_AN_HOUR * overheads.busy_share
    if seconds <= 0:
        return None
    return Pace(
        None if volume.inputs is None else -(-volume.inputs // workers) / seconds,
        None if volume.tokens is None else volume.tokens / workers / seconds,
    )


def shortest_term(hours: Hours) -> int | None:
    """Days of the shortest term that holds the hours; None where none does."""
    return next((days for days in TERMS if hours.within(days)), None)


def fewest_workers(volume: Volume, worker: Throughput, days: int, overheads: Overheads) -> int | None:
    """The fewest workers that bring a volume into a term; None where no number of them does."""

    def too_few(workers: int) -> bool:
        return not hours_for(volume, worker, workers, overheads).within(days)

    most = largest_that_fits(too_few, CEILING)
    return None if most == CEILING else most + 1
