"""From a judged card and a plan to the order document: the one place where an order's figures are put together."""

from __future__ import annotations

from collections.abc import Iterator

from gpufit.advice.arrangements import planned_as
from gpufit.advice.lots import to_the_cent
from gpufit.advice.machines import cards_in_one, machine_words, machines_for, spanning_words
from gpufit.advice.pieces import parts
from gpufit.advice.plan import Ask, Plan, TermOption
from gpufit.advice.terms import HOURS_A_DAY, PURPOSES
from gpufit.advice.throughput import NoThroughput
from gpufit.advice.verdict import Verdict
from gpufit.catalog.odd_prices import odd_prices
from gpufit.catalog.offers import OfferBook
from gpufit.catalog.record import Card
from gpufit.profile.evidence import Evidence
from gpufit.report.basis import held_out_error
from gpufit.report.order_checks import arrival_checks, to_save
from gpufit.report.order_document import (
    Cost,
    Idle,
    Margin,
    OrderDocument,
    OrderedCard,
    Readiness,
    TermFigures,
    Work,
    Worker,
)
from gpufit.report.order_environment import environment_rows
from gpufit.report.order_held import held_otherwise, not_run_so, quantiser_of
from gpufit.report.order_judged import Judged, blockers, spread_words, unproven
from gpufit.report.order_notes import better_use, other_plan, work_notes
from gpufit.report.order_pieces import completion_of, pieces_of
from gpufit.units import counted


def build_order_document(judged: Judged, plan: Plan | None, ask: Ask, book: OfferBook) -> OrderDocument:
    """Put plan and figures together. Without a plan, since none that was tried serves the scenario, the document says
    why and names nothing to order."""
    row, worker = judged.row, judged.worker
    devices = 0 if plan is None else plan.lots.cards * judged.card.devices_per_card
    checks = () if plan is None else tuple(arrival_checks(judged, devices, plan, ask))
    against = (*blockers(judged, plan, ask), *not_run_so(judged, checks))
    readiness = Readiness.NOT_READY if against else Readiness.READY_UNPROVEN if unproven(judged) else Readiness.READY
    cost = _cost(plan, judged, book)
    workers = () if plan is None else tuple(_workers(plan, judged, ask.volume.inputs))
    profile = judged.profile
    origin = Evidence.COMPUTED if profile is None else profile.evidence
    return OrderDocument(
        evidence=row.evidence,
        ready=not against,
        readiness=readiness,
        blockers=against,
        spread=spread_words(judged, 1 if plan is None else plan.workers),
        profile=worker.profile,
        measured_on=worker.measured_on,
        holds_for=worker.holds_for,
        model=worker.model,
        weights_read=bool(worker.precision.stored),
        engine=worker.engine,
        scenario=judged.scenario,
        scenario_ran=worker.scenario_ran,
        held=held_otherwise(judged),
        card=_card(judged, plan),
        idle=None if plan is None else _idle(plan, cost, row.verdict is Verdict.FITS),
        term_days=None if plan is None else plan.term_days,
        term_purpose="" if plan is None else PURPOSES[plan.term_days],
        terms=() if plan is None else tuple(_term(option, judged.card, book) for option in plan.options),
        cost=cost,
        work=_work(plan, ask),
        workers=workers,
        pieces=None if plan is None else pieces_of(ask.volume.inputs, plan.workers, ask.piece_inputs),
        completion=None if plan is None else completion_of(ask.volume.inputs),
        environment=environment_rows(worker.engine, judged.ran, origin, judged.card, quantiser_of(judged)),
        margin=_margin(judged),
        checks=checks,
        save=() if plan is None else to_save(worker.model, worker.precision, checks),
        assumptions=(*_assumed(plan, ask), *worker.assumptions),
        notes=tuple(_notes(judged, plan, ask, cost, book)),
    )


def _card(judged: Judged, plan: Plan | None) -> OrderedCard:
    card, row = judged.card, judged.row
    lots = None if plan is None else plan.lots
    return OrderedCard(
        card=card.id,
        name=card.display_name,
        form_factor=card.form_factor,
        devices_per_card=card.devices_per_card,
        arrangement=None if plan is None else str(planned_as(plan.workers, judged.over)),
        ranks=judged.over.count,
        tensor_parallel_size=judged.over.tensor,
        pipeline_parallel_size=judged.over.stages,
        cards_per_machine=cards_in_one(card),
        machines=None if plan is None else machines_for(card, judged.over, plan.workers),
        machine=machine_words(card),
        cards_needed=None if lots is None else lots.cards - lots.idle_cards,
        lot_size=row.lot_size,
        lots=None if lots is None else lots.lots,
        cards_paid=None if lots is None else lots.cards,
        idle_cards=None if lots is None else lots.idle_cards,
    )


def _idle(plan: Plan, cost: Cost, fits: bool) -> Idle | None:
    left = plan.remainder
    if not left.cards:
        return None
    return Idle(
        cards=left.cards,
        cost_share=left.cost_share,
        price=None if cost.total_price is None else to_the_cent(cost.total_price * left.cost_share),
        copies=left.copies if fits else None,
        sequences=left.sequences if fits else None,
    )


def _cost(plan: Plan | None, judged: Judged, book: OfferBook) -> Cost:
    offer = book.offer(judged.card.id)
    price = None if plan is None else offer.price(plan.term_days)
    return Cost(
        book=book.name,
        seller=book.seller if offer.prices else None,
        currency=book.currency if offer.prices else None,
        date=book.date if offer.prices else None,
        price_per_lot=price,
        total_price=None if price is None or plan is None else plan.lots.price(price),
        stale=any(one.stale for one in judged.worker.offer_books),
        indicative=book.indicative,
        odd=None if plan is None else odd_prices(offer).get(plan.term_days),
    )


def _term(option: TermOption, card: Card, book: OfferBook) -> TermFigures:
    price, lots = book.offer(card.id).price(option.days), option.lots
    return TermFigures(
        days=option.days,
        hours=option.days * HOURS_A_DAY,
        purpose=PURPOSES[option.days],
        holds=option.holds,
        workers=option.workers,
        cards=None if lots is None else lots.cards,
        lots=None if lots is None else lots.lots,
        price_per_lot=price,
        total_price=None if price is None or lots is None else lots.price(price),
    )


def _work(plan: Plan | None, ask: Ask) -> Work:
    rate = None if plan is None or isinstance(plan.rate, NoThroughput) else plan.rate
    hours = None if plan is None else plan.hours
    why = "" if plan is None else plan.rate.why if isinstance(plan.rate, NoThroughput) else plan.rate.how
    return Work(
        inputs=ask.volume.inputs,
        tokens=ask.volume.tokens,
        inputs_per_second=None if rate is None else rate.inputs_per_second,
        tokens_per_second=None if rate is None else rate.priced_tokens_per_second,
        throughput=why,
        throughput_evidence=None if rate is None else rate.evidence,
        throughput_lower_bound=rate is not None and not rate.is_asked_cell,
        processing_hours=None if hours is None else hours.processing_hours,
        setup_hours=ask.overheads.setup_hours,
        checks_hours=ask.overheads.checks_hours,
        export_hours=ask.overheads.export_hours,
        busy_share=ask.overheads.busy_share,
        total_hours=None if hours is None else hours.total_hours,
        hours_upper_bound=hours is not None and hours.at_most,
        hours_evidence=None if hours is None else hours.evidence,
    )


def _workers(plan: Plan, judged: Judged, inputs: int | None) -> Iterator[Worker]:
    taken = [None] * plan.workers if inputs is None else parts(inputs, plan.workers)
    for number, part in enumerate(taken):
        first = number * judged.over.count
        given = part is not None and part.inputs > 0
        yield Worker(
            worker=number + 1,
            devices=str(first) if judged.over.count == 1 else f"{first}-{first + judged.over.count - 1}",
            at_once=judged.at_once,
            first_input=part.first if part is not None and given else None,
            last_input=part.last if part is not None and given else None,
            inputs=None if part is None else part.inputs,
        )


def _held_out_error(judged: Judged) -> float | None:
    """That of the run's model, which tells nothing of figures that are worked out for a model held otherwise."""
    profile = judged.profile
    return None if profile is None or not judged.held.as_profiled else held_out_error(profile)


def _margin(judged: Judged) -> Margin:
    row = judged.row
    return Margin(
        at_once=judged.at_once,
        verdict=row.verdict,
        reason=row.reason,
        capacity_bytes=row.capacity_bytes,
        need_bytes=row.need_bytes,
        need_lower_bytes=row.need_lower_bytes,
        need_upper_bytes=row.need_upper_bytes,
        headroom_bytes=row.headroom_bytes,
        headroom_lower_bytes=row.headroom_lower_bytes,
        headroom_upper_bytes=row.headroom_upper_bytes,
        max_concurrency=row.max_concurrency,
        binding_phase=row.binding.phase,
        binding_part=row.binding.part,
        held_out_error=_held_out_error(judged),
        evidence=row.evidence,
    )


def _assumed(plan: Plan | None, ask: Ask) -> Iterator[str]:
    """What the plan rests on that nobody measured."""
    if plan is None:
        return
    one = ask.overheads
    yield (
        f"{one.setup_hours:g} h of set-up, {one.checks_hours:g} h of checks, {one.export_hours:g} h of export, and "
        f"workers that compute {one.busy_share:.0%} of their hours (--setup-hours, --checks-hours, --export-hours, "
        "--busy-share)"
    )
    pieces = counted(ask.piece_inputs, "input")
    yield f"pieces of {pieces}: what an interruption loses at most of a worker (--piece-inputs)"
    if plan.workers > 1 and plan.hours is not None:
        yield "workers do not slow each other: nothing that they may share (host, disk, network) was measured"


def _notes(judged: Judged, plan: Plan | None, ask: Ask, cost: Cost, book: OfferBook) -> Iterator[str]:
    if plan is not None:
        yield from work_notes(plan, ask, judged.concurrency)
        yield from other_plan(plan, ask, judged.asked.cards[0])
        if judged.row.verdict is Verdict.FITS:
            yield from better_use(plan, ask, judged.at_once, judged.card, cost, book)
    yield from judged.worker.notes
    # Why there is no throughput is said above, and what decides the verdict among what speaks against the order.
    said = [judged.row.reason, judged.row.no_plan, spanning_words(judged.card, judged.over)]
    if plan is not None and isinstance(plan.rate, NoThroughput):
        said.append(plan.rate.why)
    yield from (line for line in judged.row.remarks if line not in said)
