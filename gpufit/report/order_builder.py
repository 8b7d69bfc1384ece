"""From a judged card and a plan to the order document: the one place where an order's figures are put together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpufit.advice.pieces import parts
from gpufit.advice.plan import Ask, Plan, TermOption
from gpufit.advice.terms import HOURS_A_DAY, PURPOSES
from gpufit.advice.throughput import NoThroughput
from gpufit.advice.verdict import Devices, Verdict, arrangement_of
from gpufit.catalog.offers import OfferBook
from gpufit.catalog.record import Card
from gpufit.profile.record import Evidence, Profile
from gpufit.report.basis import held_out_error
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.order_checks import arrival_checks, to_save
from gpufit.report.order_document import (
    Check,
    Cost,
    Idle,
    Margin,
    OrderDocument,
    OrderedCard,
    TermFigures,
    Work,
    Worker,
)
from gpufit.report.order_environment import environment_rows
from gpufit.report.order_notes import better_use, work_notes
from gpufit.report.order_pieces import completion_of, pieces_of
from gpufit.units import format_size


@dataclass(frozen=True)
class Judged:
    """One card, judged for all sequences together and for what one worker runs at once."""

    asked: FitDocument
    worker: FitDocument
    """The same document where one worker runs all."""
    card: Card
    over: Devices
    """Devices that one worker is divided over."""
    profile: Profile | None
    """What was judged; None for a start of vLLM."""

    @property
    def row(self) -> CardRow:
        """The card, at what one worker runs at once."""
        return self.worker.cards[0]


def build_order_document(judged: Judged, plan: Plan | None, ask: Ask, book: OfferBook) -> OrderDocument:
    """Put plan and figures together. Without a plan, since no number of cards serves the scenario, the document says
    why and names nothing to order."""
    row, worker = judged.row, judged.worker
    blockers = tuple(_blockers(judged, plan))
    cost = _cost(plan, judged, book)
    devices = 0 if plan is None else plan.lots.cards * judged.card.devices_per_card
    workers = () if plan is None else tuple(_workers(plan, judged, ask.volume.inputs))
    profile = judged.profile
    ran = None if profile is None or profile.evidence is Evidence.COMPUTED else profile.environment
    origin = Evidence.COMPUTED if profile is None else profile.evidence
    checks: tuple[Check, ...] = ()
    if plan is not None:
        checks = tuple(arrival_checks(judged.card, devices, worker, profile, plan, ask, judged.over))
    return OrderDocument(
        evidence=row.evidence,
        ready=not blockers,
        blockers=blockers,
        spread=_spread(judged),
        profile=worker.profile,
        measured_on=worker.measured_on,
        holds_for=worker.holds_for,
        model=worker.model,
        engine=worker.engine,
        scenario=judged.asked.scenario,
        scenario_ran=worker.scenario_ran,
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
        environment=environment_rows(worker.engine, ran, origin, judged.card),
        margin=_margin(judged),
        checks=checks,
        save=() if plan is None else to_save(worker.model, worker.precision, checks),
        assumptions=(*_assumed(plan, ask), *worker.assumptions),
        notes=tuple(_notes(judged, plan, ask, cost, book)),
    )


def _blockers(judged: Judged, plan: Plan | None) -> Iterator[str]:
    """What speaks against the order, each with what to do about it."""
    row = judged.row
    if row.verdict is not Verdict.FITS:
        yield _verdict_words(judged)
    if plan is not None and plan.hours is not None and not plan.holds:
        hours, days = plan.hours.total_hours, plan.term_days
        yield f"the work takes {hours:,.1f} h, and {days} days have {days * HOURS_A_DAY}: {_way_out(plan)}"


def _verdict_words(judged: Judged) -> str:
    row = judged.row
    if row.capacity_bytes is None:
        return f"{row.card}: unknown: nobody has reported how much memory software sees on it, so nothing is claimed"
    if row.start is not None:
        why = row.start.binding
    else:
        why = (
            f"a device has {format_size(row.capacity_bytes)}, and {format_size(row.need_lower_bytes)} to "
            f"{format_size(row.need_upper_bytes)} are needed"
        )
    if row.verdict is Verdict.TOO_CLOSE:
        return f"{row.card}: too close: {why}; measure on one such card before more are ordered"
    return f"{row.card}: does not fit, and no number of them serves it: {why}; gpufit fit names cards that do"


def _way_out(plan: Plan) -> str:
    ways = [f"--term {one.days} holds it" for one in plan.options if one.holds][:1]
    own = next(one for one in plan.options if one.days == plan.term_days)
    if own.workers is not None:
        ways.append(f"--workers {own.workers} brings it into {own.days} days")
    return ", ".join(ways) or "no number of workers brings it into any term"


def _arrangement(judged: Judged, plan: Plan) -> str:
    """What `gpufit fit` calls it; copies of a model that one card holds whole may be more here than there."""
    fitted = judged.asked.cards[0].arrangement
    return str(arrangement_of(plan.workers, judged.over)) if fitted in (None, "single") else fitted


def _card(judged: Judged, plan: Plan | None) -> OrderedCard:
    card, row = judged.card, judged.row
    lots = None if plan is None else plan.lots
    return OrderedCard(
        card=card.id,
        name=card.display_name,
        form_factor=card.form_factor,
        devices_per_card=card.devices_per_card,
        arrangement=None if plan is None else _arrangement(judged, plan),
        ranks=judged.over.count,
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
        price=None if cost.total_price is None else cost.total_price * left.cost_share,
        copies=left.copies if fits else None,
        sequences=left.sequences if fits else None,
    )


def _cost(plan: Plan | None, judged: Judged, book: OfferBook) -> Cost:
    price = None if plan is None else book.offer(judged.card.id).price(plan.term_days)
    return Cost(
        book=book.name,
        seller=book.seller,
        currency=book.currency,
        date=book.date,
        price_per_lot=price,
        total_price=None if price is None or plan is None else price * plan.lots.lots,
        stale=any(one.stale for one in judged.worker.offer_books),
        indicative=book.indicative,
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
        total_price=None if price is None or lots is None else price * lots.lots,
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
        processing_hours=None if hours is None else hours.processing_hours,
        setup_hours=ask.overheads.setup_hours,
        checks_hours=ask.overheads.checks_hours,
        export_hours=ask.overheads.export_hours,
        busy_share=ask.overheads.busy_share,
        total_hours=None if hours is None else hours.total_hours,
    )


def _workers(plan: Plan, judged: Judged, inputs: int | None) -> Iterator[Worker]:
    taken = [None] * plan.workers if inputs is None else parts(inputs, plan.workers)
    for number, part in enumerate(taken):
        first = number * judged.over.count
        given = part is not None and part.inputs > 0
        yield Worker(
            worker=number + 1,
            devices=str(first) if judged.over.count == 1 else f"{first}-{first + judged.over.count - 1}",
            at_once=judged.worker.scenario.concurrency,
            first_input=part.first if part is not None and given else None,
            last_input=part.last if part is not None and given else None,
            inputs=None if part is None else part.inputs,
        )


def _margin(judged: Judged) -> Margin:
    row = judged.row
    return Margin(
        at_once=judged.worker.scenario.concurrency,
        verdict=row.verdict,
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
        held_out_error=None if judged.profile is None else held_out_error(judged.profile),
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
    yield f"pieces of {ask.piece_inputs:,} inputs: what an interruption loses at most of a worker (--piece-inputs)"
    if plan.workers > 1 and plan.hours is not None:
        yield "workers do not slow each other: nothing that they may share (host, disk, network) was measured"


def _spread(judged: Judged) -> str:
    asked, at_once = judged.asked.scenario.concurrency, judged.worker.scenario.concurrency
    divided = _divided_words(judged)
    if at_once == asked and not divided:
        return ""
    alone = judged.asked.cards[0].verdict.replace("_", " ")
    if at_once == asked:
        return (
            f"One card with all {asked} sequences at once: {alone}. So the model is divided over {divided}, and every "
            "figure of memory is that of the fullest of them."
        )
    each = f", each divided over {divided}" if divided else ""
    return (
        f"One copy of the model with all {asked} sequences at once: {alone}. So whole copies run side by side{each}, "
        f"at most {at_once} sequences each, and every figure of memory is that of "
        f"{'the fullest card of one' if divided else 'one of them'}."
    )


def _divided_words(judged: Judged) -> str:
    """Over what a copy is divided that the profile, or the start that was asked for, is not of; empty where it is
    not."""
    over, profile, start = judged.over, judged.profile, judged.asked.cards[0].start
    asked = over.count if start is None else start.tensor_parallel_size
    if over.count == (asked if profile is None else profile.workload.tensor_parallel_size):
        return ""
    if over.stages > 1:
        return f"{over.stages} devices, some layers on each (pipeline)"
    return f"{over.tensor} devices that share every layer (tensor parallel)"


def _notes(judged: Judged, plan: Plan | None, ask: Ask, cost: Cost, book: OfferBook) -> Iterator[str]:
    if plan is not None:
        yield from work_notes(plan, ask)
        if judged.row.verdict is Verdict.FITS:
            yield from better_use(plan, judged.card, cost, book)
    yield from judged.worker.notes
    # Why there is no throughput is said above.
    said = plan.rate.why if plan is not None and isinstance(plan.rate, NoThroughput) else None
    yield from (line for line in judged.row.remarks if line != said)
