"""From a judged card to a plan: workers, lots, what lies idle, hours and term. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from gpufit.advice.lots import LotCount, Remainder, lots_for, remainder_of
from gpufit.advice.pieces import PIECE_INPUTS
from gpufit.advice.terms import (
    PURPOSES,
    Hours,
    Overheads,
    Volume,
    fewest_workers,
    hours_for,
    shortest_term,
)
from gpufit.advice.throughput import NoThroughput, Throughput
from gpufit.catalog.offers import TERMS
from gpufit.errors import UsageError

MOST_WORKERS = 100_000
"""An order names every worker's inputs; more cards than this are a slip of the keyboard."""


class AskError(UsageError):
    """What was asked of an order cannot be had."""

    def __init__(self, words: str, option: str | None) -> None:
        super().__init__(words)
        self.option = option
        """Which of `gpufit order`'s options is at fault, without its dashes; None where it is the scenario."""


@dataclass(frozen=True)
class Ask:
    """What a buyer asks of an order beside card and scenario."""

    term_days: int | None = None
    """None: the shortest that holds the work."""
    volume: Volume = field(default_factory=Volume)
    workers: int | None = None
    """Among whom the sequences are shared out; None: as many as the concurrency needs."""
    piece_inputs: int = PIECE_INPUTS
    overheads: Overheads = field(default_factory=Overheads)

    def share_of(self, concurrency: int) -> int:
        """Sequences that the fullest worker runs at once: all of them where no number of workers was named."""
        return -(-concurrency // (self.workers or 1))


@dataclass(frozen=True)
class Site:
    """What one worker, a whole copy of the model, stands on."""

    copies: int
    """Workers that the concurrency asked for needs."""
    ranks: int
    """Devices that one worker is divided over."""
    devices_per_card: int
    lot_size: int
    """Cards in a lot."""
    each: int | None
    """Sequences that one worker surely serves at once; None where that is not known."""

    def cards(self, workers: int) -> int:
        """Cards for so many workers; a card of several devices holds as many ranks."""
        return -(-workers * self.ranks // self.devices_per_card)

    def lots(self, workers: int) -> LotCount:
        """The lots that hold them."""
        return lots_for(self.cards(workers), self.lot_size)


@dataclass(frozen=True)
class TermOption:
    """One term, and what it would take to do the work within it."""

    days: int
    holds: bool | None
    """Whether the planned workers get the work done; None where the hours are not known."""
    workers: int | None
    """The fewest workers that do; None where the hours are not known, or no number of workers does."""
    lots: LotCount | None
    """For those workers; for the planned ones where the hours are not known."""


@dataclass(frozen=True)
class Plan:
    """How a job is spread over cards and time."""

    workers: int
    lots: LotCount
    remainder: Remainder
    rate: Throughput | NoThroughput
    """Of one worker."""
    hours: Hours | None
    term_days: int
    options: tuple[TermOption, ...]

    @property
    def holds(self) -> bool | None:
        """Whether the term holds the work; None where the hours are not known."""
        return next(option.holds for option in self.options if option.days == self.term_days)


def make_plan(ask: Ask, site: Site, rate: Throughput | NoThroughput) -> Plan:
    """Spread the work. Raises AskError for fewer workers than the concurrency needs, for more than an order lists,
    and where no term was named and none follows."""
    workers = ask.workers or site.copies
    if workers < site.copies:
        raise AskError(
            f"--workers {workers}: {site.copies} copies of the model are needed for that many sequences at once; lower "
            "--concurrency, or leave --workers out",
            "workers",
        )
    if workers > MOST_WORKERS:
        raise AskError(
            f"{workers} workers are more than an order lists ({MOST_WORKERS}): lower --concurrency or --workers",
            "workers" if ask.workers else None,
        )
    hours = None
    if ask.volume.stated and isinstance(rate, Throughput):
        hours = hours_for(ask.volume, rate, workers, ask.overheads)
    lots = site.lots(workers)
    return Plan(
        workers=workers,
        lots=lots,
        remainder=remainder_of(lots, site.devices_per_card, workers, site.ranks, site.each),
        rate=rate,
        hours=hours,
        term_days=_term(ask, rate, hours),
        options=tuple(_option(days, ask, site, rate, hours, lots) for days in TERMS),
    )


def _term(ask: Ask, rate: Throughput | NoThroughput, hours: Hours | None) -> int:
    """The term asked for, or the shortest that holds the work, or the longest where none does."""
    if ask.term_days is not None:
        return ask.term_days
    if hours is not None:
        return shortest_term(hours) or TERMS[-1]
    purposes = ", ".join(f"{days} ({words})" for days, words in PURPOSES.items())
    why = "no volume of work was stated (--inputs N)" if isinstance(rate, Throughput) else rate.why
    raise AskError(f"no term follows: {why}; name one with --term, days: {purposes}", "term")


def _option(
    days: int, ask: Ask, site: Site, rate: Throughput | NoThroughput, hours: Hours | None, planned: LotCount
) -> TermOption:
    if hours is None or isinstance(rate, NoThroughput):
        return TermOption(days, None, None, planned)
    fewest = fewest_workers(ask.volume, rate, days, ask.overheads)
    if fewest is not None:
        fewest = max(fewest, site.copies)
    return TermOption(
        days=days,
        holds=hours.within(days),
        workers=fewest,
        lots=None if fewest is None else site.lots(fewest),
    )
