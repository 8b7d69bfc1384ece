"""The fit document: a profile judged against cards at one scenario. Every format and the TUI read this alone.

JSON keys are these fields' names; sizes are whole bytes, prices are numbers in the currency beside them, and what
is not known is null, never zero.
"""

from __future__ import annotations

from gpufit import __version__
from gpufit.advice.verdict import Verdict
from gpufit.memory.growth import CacheGrowth
from gpufit.profile.base import Record
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.precision import Precision
from gpufit.report.plans import ArrangementFigures, ChangeFigures
from gpufit.report.prices import BookFigures, Price, ThroughputFigures
from gpufit.report.start_figures import StartFigures

SCHEMA_VERSION = 2

_SERVERS = ("vllm",)


class Scenario(Record, frozen=True, kw_only=True, omit_defaults=True):
    """The question."""

    name: str | None = None
    """What it was called where several were asked; in JSON absent where it has no name."""

    context_tokens: int
    new_tokens: int
    concurrency: int
    cached_tokens: int
    """Tokens a sequence holds at the end: context plus new tokens but the last, which is never fed back."""
    weights: str | None = None
    """What its weights are held in where that is not what was profiled: `16-bit`, `FP8`, `4-bit`; in JSON absent where
    it is. Every figure is then worked out."""
    compute: str | None = None
    """The same of what it computes in: `float32`, `16-bit`."""
    kv_cache: str | None = None
    """The same of its KV cache: `16-bit`, `FP8`."""


class PhaseFigures(Record, frozen=True, kw_only=True):
    """One phase at the scenario."""

    site: str
    """Where in the model the peak lies; empty where nobody looked."""
    parts: Parts
    allocated_bytes: int
    allocated_lower_bytes: int
    allocated_upper_bytes: int
    need_bytes: int
    """Largest over the cards of the document; where it has none, of any card."""
    need_upper_bytes: int
    """Largest over the cards of the document; where it has none, of any card."""
    evidence: Evidence


class BindingFigures(Record, frozen=True, kw_only=True):
    """What runs out first on a card."""

    phase: Phase
    part: str
    part_bytes: int
    short_bytes: int


class CardRow(Record, frozen=True, kw_only=True):
    """One card."""

    card: str
    """The card's id in the catalog."""
    name: str
    verdict: Verdict
    capacity_bytes: int | None
    need_bytes: int
    need_lower_bytes: int
    need_upper_bytes: int
    headroom_bytes: int | None
    headroom_lower_bytes: int | None
    headroom_upper_bytes: int | None
    binding: BindingFigures
    parts: Parts
    """At the peak of the binding phase, the card's library workspace in `temporaries_bytes`."""
    context_bytes: int
    other_bytes: int
    max_concurrency: int | None
    max_context_tokens: int | None
    max_context_is_position_limit: bool
    arrangement: str | None
    cards_needed: int | None
    lot_size: int
    """Of the first seller that has a price; `prices` has each seller's own."""
    lots: int | None
    idle_cards: int | None
    idle_hosts_copies: int | None = None
    """Whole further copies of the model that the idle cards could host; null where no number of cards serves."""
    idle_hosts_sequences: int | None = None
    """Sequences at once that those surely serve, of this length; null where that is not known."""
    prices: tuple[Price, ...]
    """Every term of every seller that has a price; of the first book where none has."""
    remarks: tuple[str, ...]
    """What a buyer should know about this model on this card, in words."""
    evidence: Evidence
    arrangements: tuple[ArrangementFigures, ...] = ()
    """Every way in which this card, taken several times, surely serves the scenario, fewest cards first: the first is
    what `arrangement`, `cards_needed`, `lots` and `prices` are of."""
    changes: tuple[ChangeFigures, ...] = ()
    """What would make the scenario surely fit one card, or fewer of them."""
    no_plan: str = ""
    """Why no number of this card is named, and which plans were tried; empty where some plan serves. It is the last of
    the `remarks`, too."""
    start: StartFigures | None = None
    """A server's start on so many of this card as it has ranks, and all other figures are those of one rank; null
    where the engine sizes no KV pool, and on a card of unknown memory."""
    throughput: ThroughputFigures | None = None
    """Only for the very card that the profile was measured on: speed is never carried to another."""
    reason: str | None = None
    """Why the verdict is what it is, in words, where the bytes alone would say that it fits: a dtype that the card
    lacks, or a run that ran out of memory there."""

    @property
    def room_bytes(self) -> int | None:
        """Headroom of the fullest device of the first arrangement, or where none serves of one card by itself; None
        where the capacity is not known."""
        if not self.arrangements or self.capacity_bytes is None:
            return self.headroom_bytes
        return self.capacity_bytes - self.arrangements[0].need_bytes


class FitDocument(Record, frozen=True, kw_only=True):
    """A profile against the catalog."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str = __version__
    evidence: Evidence
    """The weakest in the document."""
    profile: str
    """The file it was read from."""
    measured_on: str
    model: ModelInfo
    engine: Engine
    holds_for: str = ""
    """Model, engine, version, precision and cards, in words: what the numbers are for, never the model alone."""
    precision: Precision
    scenario: Scenario
    scenario_ran: bool | None = None
    """Whether the profile ran this very scenario. False: its figures are those of a model fitted to what it did run;
    null: rules answer (also for a model held otherwise than it was profiled), and nothing ran."""
    phases: dict[str, PhaseFigures]
    kv_cache_growth: CacheGrowth | None
    """How the cache grows: state, slope and knee; absent without a cache or a memory model."""
    cards: tuple[CardRow, ...]
    offers: str
    """The offer books that lots and prices come from, by name."""
    offer_books: tuple[BookFigures, ...] = ()
    """The same with sellers, dates and age."""
    assumptions: tuple[str, ...]
    """What was replaced, assumed or stretched on the way from the run to the cards."""
    notes: tuple[str, ...]
    """What else a reader should know: what the run met, how far the question lies outside it."""

    @property
    def serves(self) -> bool:
        """Whether the engine is a server that sizes a KV pool as it starts, so that rows have a `start`."""
        return self.engine.name in _SERVERS

    @property
    def something_fits(self) -> bool:
        """Whether at least one card's verdict is `fits`, or several of a card serve the scenario."""
        return any(row.cards_needed is not None for row in self.cards)
