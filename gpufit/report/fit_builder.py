"""A judged profile put into the fit document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpufit.advice.arrangements import Plan
from gpufit.advice.changes import NearestChange
from gpufit.advice.machines import spanning_words, spans
from gpufit.advice.throughput import NoThroughput, Throughput
from gpufit.advice.verdict import CardVerdict, Devices
from gpufit.catalog.offers import Offers
from gpufit.files import readable_name
from gpufit.memory.carry import PhaseNeed, carrier_to_no_card
from gpufit.memory.carry_words import rules, rules_without_card
from gpufit.memory.growth import cache_growth
from gpufit.memory.otherwise import Otherwise
from gpufit.memory.predict import PhasePrediction, distance_outside
from gpufit.memory.terms import Shape
from gpufit.profile.cells import OutOfMemory
from gpufit.profile.evidence import weakest
from gpufit.profile.record import Profile
from gpufit.report.basis import not_run_note, scenario_ran
from gpufit.report.document import BindingFigures, CardRow, FitDocument, PhaseFigures, Scenario
from gpufit.report.plans import arrangement_figures, change_figures, plan_rules
from gpufit.report.precision_words import held_words
from gpufit.report.prices import book_figures, price_notes, prices_of, throughput_figures, throughput_of
from gpufit.report.workload import workload_words
from gpufit.units import counted, format_size


@dataclass(frozen=True)
class CardAdvice:
    """What is advised for one card."""

    verdict: CardVerdict
    plans: tuple[Plan, ...] = ()
    """Fewest cards first."""
    changes: tuple[NearestChange, ...] = ()
    no_plan: str = ""
    """Why there is none, in words."""


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
        profile=readable_name(where),
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
    if profile.memory_model is None:
        notes.append(
            "without a memory model the most sequences and the longest context are the largest that ran: more may fit"
        )
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
