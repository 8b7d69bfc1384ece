"""The fit document: a profile judged against cards at one scenario. Every format and the TUI read this alone.

JSON keys are these fields' names; sizes are whole bytes, prices are numbers in the currency beside them, and what
is not known is null, never zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpufit import __version__
from gpufit.advice.arrangements import Plan
from gpufit.advice.changes import NearestChange
from gpufit.advice.machines import spanning_words, spans
from gpufit.advice.throughput import NoThroughput, Throughput
from gpufit.advice.verdict import CardVerdict, Devices, Verdict
from gpufit.catalog.offers import Offers
from gpufit.memory.carry import PhaseNeed, carrier_to_no_card
from gpufit.memory.carry_words import rules, rules_without_card
from gpufit.memory.growth import CacheGrowth, cache_growth
from gpufit.memory.otherwise import Otherwise
from gpufit.memory.predict import PhasePrediction, distance_outside
from gpufit.memory.terms import Shape
from gpufit.profile.base import Record
from gpufit.profile.cells import OutOfMemory
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.evidence import Evidence, weakest
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.precision import Precision
from gpufit.profile.record import Profile
from gpufit.report.basis import not_run_note, scenario_ran
from gpufit.report.plans import ArrangementFigures, ChangeFigures, arrangement_figures, change_figures, plan_rules
from gpufit.report.precision_words import held_words
from gpufit.report.prices import (
    BookFigures,
    Price,
    ThroughputFigures,
    book_figures,
    price_notes,
    prices_of,
    throughput_figures,
    throughput_of,
)
from gpufit.report.start_figures import StartFigures
from gpufit.report.workload import workload_words
from gpufit.units import counted, format_size

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


@dataclass(frozen=True)
class CardAdvice:
    """What is advised for one card."""

    verdict: CardVerdict
    plans: tuple[Plan, ...] = ()
    """Fewest cards first."""
    changes: tuple[NearestChange, ...] = ()
    no_plan: str = ""
    """Why there is none, in words."""


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


def build_fit_document(
    profile: Profile,
    where: str,
    shape: Shape,
    predictions: Sequence[PhasePrediction],
    advice: Sequence[CardAdvice],
    offers: Offers,
    otherwise: Otherwise | None = None,
) -> FitDocument:
    """Put a judged profile into the document that all formats render; `otherwise` is what was judged in its place.

    Without cards, what each phase needs is said for a card that nobody has named.
    """
    run, profile = profile, profile if otherwise is None else otherwise.profile
    rows = tuple(_card_row(profile, shape, one, offers) for one in advice)
    books = book_figures(offers) if rows else ()
    nowhere = carrier_to_no_card(profile)
    needs = [need for one in advice for need in one.verdict.phases] or [nowhere.need(one) for one in predictions]
    return FitDocument(
        evidence=weakest(one.evidence for one in rows or needs),
        profile=where.encode(errors="replace").decode(),  # a file's name need not be text
        measured_on=profile.environment.device.name,
        model=profile.model,
        engine=profile.engine,
        holds_for=_holds_for(profile, rows, otherwise),
        precision=profile.precision,
        scenario=_scenario(shape, {} if otherwise is None else otherwise.held.changed),
        scenario_ran=scenario_ran(run, shape) if otherwise is None else None,
        phases={str(one.phase): _phase_figures(one, needs) for one in predictions},
        kv_cache_growth=cache_growth(profile),
        cards=rows,
        offers=offers.names,
        offer_books=books,
        assumptions=(*(otherwise.words if otherwise else ()), *_assumptions(profile, rows)),
        notes=(
            *([otherwise.note] if otherwise else ()),
            *_notes(run, shape),
            *price_notes(books, [row.prices for row in rows]),
        ),
    )


def _scenario(shape: Shape, held: dict[str, str]) -> Scenario:
    return Scenario(
        context_tokens=shape.context_tokens,
        new_tokens=shape.new_tokens,
        concurrency=shape.concurrency,
        cached_tokens=shape.cached_tokens,
        weights=held.get("weights"),
        compute=held.get("compute"),
        kv_cache=held.get("kv_cache"),
    )


def _assumptions(profile: Profile, rows: Sequence[CardRow]) -> tuple[str, ...]:
    model = profile.memory_model
    untested = model is not None and model.untested
    if not rows:
        return rules_without_card(untested=untested)
    plans = plan_rules((row.arrangements, row.changes) for row in rows)
    return (*rules(profile.environment.device, untested=untested), *plans)


def _holds_for(profile: Profile, rows: Sequence[CardRow], otherwise: Otherwise | None) -> str:
    engine, model, held = profile.engine, profile.model.name, held_words(profile.precision)
    cards = rows[0].name if len(rows) == 1 else "each card by itself" if rows else "no card in particular"
    if otherwise is not None:
        held = f"{held} as if with {otherwise.held.words}"
    return f"{model}, {engine.name} {engine.version} ({engine.attention}), {held}, {cards}"


def _phase_figures(prediction: PhasePrediction, all_needs: Sequence[PhaseNeed]) -> PhaseFigures:
    needs = [need for need in all_needs if need.phase is prediction.phase]
    return PhaseFigures(
        site=prediction.site,
        parts=prediction.parts,
        allocated_bytes=prediction.allocated_bytes,
        allocated_lower_bytes=prediction.lower_bytes,
        allocated_upper_bytes=prediction.upper_bytes,
        need_bytes=max(need.need_bytes for need in needs),
        need_upper_bytes=max(need.need_upper_bytes for need in needs),
        evidence=prediction.evidence,
    )


def _card_row(profile: Profile, shape: Shape, advice: CardAdvice, offers: Offers) -> CardRow:
    verdict = advice.verdict
    worst, binding = verdict.worst, verdict.binding
    best = advice.plans[0] if advice.plans else None
    lots = None if best is None else best.lots
    whole = best is None or str(best.arrangement) == str(verdict.arrangement)
    found = throughput_of(profile, verdict, shape) if whole else None
    rate = found if isinstance(found, Throughput) else None
    offered = offers.of(verdict.card.id)
    untimed = (found.why,) if isinstance(found, NoThroughput) and found.measured_here else ()
    return CardRow(
        card=verdict.card.id,
        name=verdict.card.display_name,
        verdict=verdict.verdict,
        capacity_bytes=verdict.capacity_bytes,
        need_bytes=worst.need_bytes,
        need_lower_bytes=verdict.need_lower_bytes,
        need_upper_bytes=verdict.need_upper_bytes,
        headroom_bytes=verdict.headroom_bytes,
        headroom_lower_bytes=verdict.headroom_lower_bytes,
        headroom_upper_bytes=verdict.headroom_upper_bytes,
        binding=BindingFigures(
            phase=binding.phase, part=binding.part, part_bytes=binding.part_bytes, short_bytes=binding.short_bytes
        ),
        parts=worst.parts,
        context_bytes=worst.context_bytes,
        other_bytes=worst.other_bytes,
        max_concurrency=verdict.max_concurrency,
        max_context_tokens=verdict.max_context_tokens,
        max_context_is_position_limit=verdict.max_context_is_position_limit,
        arrangement=None if best is None else str(best.arrangement),
        cards_needed=None if best is None else best.cards_needed,
        lot_size=offers.lot_size(verdict.card.id),
        lots=None if lots is None else lots.lots,
        idle_cards=None if lots is None else lots.idle_cards,
        idle_hosts_copies=None if best is None else best.remainder.copies,
        idle_hosts_sequences=None if best is None else best.remainder.sequences,
        prices=prices_of(offered, None if best is None else best.cards_needed, rate),
        remarks=with_no_plan((*verdict.remarks, *untimed, *_spanning(profile, verdict)), advice.no_plan),
        evidence=verdict.evidence,
        throughput=None if rate is None else throughput_figures(rate),
        arrangements=arrangement_figures(
            advice.plans, lambda plan: prices_of(offered, plan.cards_needed, rate if plan is best else None)
        ),
        changes=change_figures(advice.changes),
        reason=verdict.reason,
        no_plan=advice.no_plan,
    )


def with_no_plan(remarks: tuple[str, ...], no_plan: str) -> tuple[str, ...]:
    """A card's remarks with why no number of it is named, where that is not among them already."""
    return remarks if not no_plan or no_plan in remarks else (*remarks, no_plan)


def _spanning(profile: Profile, verdict: CardVerdict) -> tuple[str, ...]:
    """What is wrong with a profile's ranks where they do not stand in one machine."""
    over = Devices(profile.workload.tensor_parallel_size)
    return (spanning_words(verdict.card, over),) if spans(verdict.card, over) else ()


def _notes(profile: Profile, shape: Shape) -> list[str]:
    notes = [f"{profile.evidence} with {words}" for words in workload_words(profile.workload)]
    notes += [*profile.notes, *profile.environment.flags]
    if not profile.complete:
        notes.append(f"the profile is unfinished: {counted(len(profile.measured_cells), 'cell')} measured so far")
    limits = [cell for cell in profile.cells if isinstance(cell.outcome, OutOfMemory)]
    if limits:
        smallest = min(limits, key=lambda cell: cell.context_tokens * cell.concurrency)
        ceiling = profile.workload.memory_limit_bytes
        held = "" if ceiling is None else f" under a limit of {format_size(ceiling)}"
        notes.append(
            f"{counted(len(limits), 'cell')} ran out of memory on {profile.environment.device.name}{held}, the "
            f"smallest at context {smallest.context_tokens} x {smallest.concurrency}"
        )
    if scenario_ran(profile, shape) is False:
        notes.append(not_run_note(profile))
    model = profile.memory_model
    distance = 1.0 if model is None else distance_outside(model, shape)
    if model is not None and distance > 1:
        notes.append(
            f"the scenario lies {distance:,.{1 if distance < 1000 else 0}f} times beyond what was {profile.evidence} "
            f"(up to {counted(model.max_cached_tokens, 'token')}, {counted(model.max_concurrency, 'sequence')}, "
            f"{counted(model.max_total_tokens, 'token')} in all): scaled, with a wider interval"
        )
    return notes
