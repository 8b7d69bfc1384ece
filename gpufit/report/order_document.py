"""The order document: what is to be ordered, for how long, at what cost, and how the job on it is run and confirmed.

JSON keys are these fields' names; sizes are whole bytes, times are hours, prices are numbers in the currency beside
them, and what is not known is null, never zero.
"""

from __future__ import annotations

import datetime
import enum

from gpufit import __version__
from gpufit.advice.verdict import Verdict
from gpufit.profile.base import Record
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase
from gpufit.report.document import Scenario

SCHEMA_VERSION = 1


class Readiness(enum.StrEnum):
    """Whether it can be ordered as it stands, and on what."""

    READY = "ready"
    """The same, measured on this card, says so."""
    READY_UNPROVEN = "ready_unproven"
    """Arithmetic, a simulation, a run elsewhere or of other shapes says so: the check that `decides` has to hold before
    the work starts."""
    NOT_READY = "not_ready"
    """Something speaks against it (`blockers`)."""


class OrderedCard(Record, frozen=True, kw_only=True):
    """The card, and how many of it are paid for; counts are null where no plan serves the scenario."""

    card: str
    """The card's id in the catalog."""
    name: str
    form_factor: str | None
    devices_per_card: int
    """Devices that software sees for one card."""
    arrangement: str | None
    """`single`, `replicas`, `sharded`, `pipeline` or `sharded+pipeline`, as `gpufit fit` has it; several workers may
    each be divided."""
    ranks: int
    """Devices that one worker is divided over."""
    tensor_parallel_size: int = 1
    """Devices of those that share every layer, or every layer of a stage: they stand in one machine."""
    pipeline_parallel_size: int = 1
    """Stages that the layers are spread over."""
    cards_per_machine: int | None = None
    """The most of the card in one machine."""
    machines: int | None = None
    """The fewest machines for the workers."""
    machine: str = ""
    """The same in words, with what it rests on."""
    cards_needed: int | None
    lot_size: int
    """Cards in a lot; a lot cannot be split."""
    lots: int | None
    cards_paid: int | None
    idle_cards: int | None


class Idle(Record, frozen=True, kw_only=True):
    """What the cards without work cost, and what they could host of the same scenario at the same context."""

    cards: int
    cost_share: float
    """Idle cards / cards paid for."""
    price: float | None
    """Price x cost_share, for the term."""
    copies: int | None
    """Whole copies of the model; null where not even one is sure to fit."""
    sequences: int | None
    """Sequences at once that they surely serve."""


class TermFigures(Record, frozen=True, kw_only=True):
    """One term, and what it would take to do the work within it."""

    days: int
    hours: int
    purpose: str
    holds: bool | None
    """Whether the planned workers get the work done; null where its hours are not known."""
    workers: int | None
    """The fewest workers that do, each running as many sequences at once as the planned ones; null where hours are not
    known, or no number of workers does."""
    cards: int | None
    """Cards paid for: for those workers, or for the planned ones where hours are not known."""
    lots: int | None
    price_per_lot: float | None
    total_price: float | None


class Cost(Record, frozen=True, kw_only=True):
    """What the order costs; prices are null while the offer book leaves them blank."""

    book: str
    """That the lots and prices are from."""
    seller: str | None
    """Null, as `currency` and `date`, of a card for which the book has no price of any term."""
    currency: str | None
    date: datetime.date | None
    """The day the prices were read."""
    price_per_lot: float | None
    """For the whole term."""
    total_price: float | None
    stale: bool
    """Whether the prices are so old that they have to be asked for again."""
    indicative: bool
    """Whether they are public figures that nobody offers."""
    odd: str | None = None
    """Why the price is hardly meant, in words; null where nothing is odd about it."""


class Work(Record, frozen=True, kw_only=True):
    """How much there is to do and how long it takes; hours are null where no volume or no throughput is known."""

    inputs: int | None
    tokens: int | None
    inputs_per_second: float | None
    """Of one worker."""
    tokens_per_second: float | None
    """Of one worker: generated ones, or prompt tokens where none are generated."""
    throughput: str
    """How the rate came about, or why there is none."""
    throughput_evidence: Evidence | None
    throughput_lower_bound: bool
    """Whether the rate is only known to be no less than this: of a measured cell that is no easier."""
    processing_hours: float | None
    """Until the last worker is done, its idle share included."""
    setup_hours: float
    checks_hours: float
    export_hours: float
    busy_share: float
    """The share of its hours in which a worker computes."""
    total_hours: float | None
    hours_upper_bound: bool
    """Whether the work takes no more than these hours, and maybe less: those of a rate that is a lower bound."""
    hours_evidence: Evidence | None
    """Of the processing hours: that of the rate, `scaled` for several workers; the others are asked for or assumed."""


class Worker(Record, frozen=True, kw_only=True):
    """One whole copy of the model, and the inputs that are its alone."""

    worker: int
    devices: str
    """Counted from 0 over all cards: `3`, or `4-5` for two ranks."""
    at_once: int
    """Sequences that it runs at once."""
    first_input: int | None
    """Counted from 1; null where the number of inputs is not known, or this worker gets none."""
    last_input: int | None
    inputs: int | None


class Pieces(Record, frozen=True, kw_only=True):
    """In what the outputs are written, and how a finished piece is known without reading it."""

    piece_inputs: int
    """Inputs in a piece at most."""
    pieces: int | None
    example_piece: str
    example_marker: str
    """The line that the example's marker holds: the piece's line of the manifest."""
    steps: tuple[str, ...]


class Completion(Record, frozen=True, kw_only=True):
    """How the whole job is confirmed."""

    conditions: tuple[str, ...]
    script: str
    """A Python program that checks them in the folder of the outputs; exit status 0 says complete."""


class EnvironmentRow(Record, frozen=True, kw_only=True):
    """One component: what the figures were made with, and what has to be on the ordered card."""

    component: str
    declared: str | None
    origin: str
    """An evidence word, or `unknown`."""
    needed: str | None
    source: str
    """`catalog`, `this order` or both, or `unknown`."""


class Margin(Record, frozen=True, kw_only=True):
    """How much room one device has at what one worker runs at once."""

    at_once: int
    verdict: Verdict
    reason: str | None
    """Why, in words, where the bytes alone would say that it fits."""
    capacity_bytes: int | None
    need_bytes: int
    need_lower_bytes: int
    need_upper_bytes: int
    headroom_bytes: int | None
    headroom_lower_bytes: int | None
    headroom_upper_bytes: int | None
    max_concurrency: int | None
    """Most sequences at this context that surely fit a worker."""
    binding_phase: Phase
    binding_part: str
    held_out_error: float | None
    """Largest |predicted - measured| / measured of `allocated` in cells that the memory model was not fitted on; null
    where none were held out, nothing was run, or the model is held otherwise than it was."""
    evidence: Evidence


class Check(Record, frozen=True, kw_only=True):
    """One thing to run once the cards are there."""

    title: str
    command: str
    expect: str
    decides: bool = False
    """Whether it decides if the card holds the scenario: with a failure here the work does not start."""


class Saved(Record, frozen=True, kw_only=True):
    """One thing to take away before the cards go back."""

    what: str
    how: str


class HeldOtherwise(Record, frozen=True, kw_only=True):
    """What the model is to be held and computed in, in place of what it was profiled in: every figure of memory is
    worked out for it, and nothing was run so."""

    words: str
    """`weights FP8 and KV cache FP8`; `scenario` has each switch by itself."""
    options: str
    """What `gpufit profile` takes for it beside what the profile was made with; empty where it takes nothing for it."""
    remarks: tuple[str, ...]
    """What else comes with it, what has to be done beforehand, or why it cannot be run so, in words."""


class OrderDocument(Record, frozen=True, kw_only=True):
    """An order of one kind of card for one term."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str = __version__
    evidence: Evidence
    """The weakest of the memory figures."""
    ready: bool
    """Whether nothing speaks against ordering it."""
    readiness: Readiness
    """The same, with what it rests on."""
    blockers: tuple[str, ...]
    """What does, in words."""
    spread: str
    """Why the work runs on several whole copies, in words; empty where one holds all sequences."""
    profile: str
    """The file or model it was made from."""
    measured_on: str
    holds_for: str
    model: ModelInfo
    weights_read: bool
    """Whether files of weights were looked at; otherwise the fingerprint is that of the config alone, and tells nothing
    of them."""
    engine: Engine
    scenario: Scenario
    """The question: all sequences, over all workers; with what it is held in where that is not what was profiled."""
    scenario_ran: bool | None = None
    """Whether the profile ran what one worker runs at once; null where rules answer (also for a model held otherwise
    than it was profiled), and nothing ran."""
    held: HeldOtherwise | None = None
    """Null where the model is held as it was profiled, and for a start of a server."""
    card: OrderedCard
    idle: Idle | None
    """Null where nothing is ordered, or no card lies idle."""
    term_days: int | None
    term_purpose: str
    terms: tuple[TermFigures, ...]
    cost: Cost
    work: Work
    workers: tuple[Worker, ...]
    pieces: Pieces | None
    """Null where nothing is ordered, as is `completion`."""
    completion: Completion | None
    environment: tuple[EnvironmentRow, ...]
    margin: Margin
    checks: tuple[Check, ...]
    save: tuple[Saved, ...]
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
