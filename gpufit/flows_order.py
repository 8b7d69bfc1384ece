"""The use cases that plan an order: of a profile, and of a start of vLLM."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpufit.advice.arrangements import divisions_of, plans_for
from gpufit.advice.plan import Ask, Site, make_plan
from gpufit.advice.throughput import NoThroughput, Throughput, throughput_on
from gpufit.advice.verdict import Devices, Verdict, judge
from gpufit.catalog.offers import OfferBook, Offers
from gpufit.catalog.record import Card, Catalog
from gpufit.errors import UsageError
from gpufit.flows import judge_cards, start_vllm
from gpufit.memory.held import Held
from gpufit.memory.otherwise import Otherwise, predictor_of
from gpufit.memory.terms import Shape
from gpufit.profile.record import Profile
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.fit_builder import CardAdvice, build_fit_document
from gpufit.report.order_builder import build_order_document
from gpufit.report.order_document import OrderDocument
from gpufit.report.order_judged import Judged
from gpufit.report.plans import ArrangementFigures
from gpufit.units import counted

if TYPE_CHECKING:
    from gpufit.sources.estimate.vllm import VllmRequest


def order(
    profile: Profile,
    where: str,
    shape: Shape,
    catalog: Catalog,
    offers: Offers,
    card: Card,
    ask: Ask,
    *,
    held: Held | None = None,
    arrangement: str | None = None,
    saved: bool = True,
) -> OrderDocument:
    """Plan an order of one card for a scenario and a volume of work, from one seller.

    `held`: as if the model were held and computed so. `arrangement`: that of `fit`'s plans which is to be ordered, in
    place of the one that takes the fewest cards. `saved` says that `where` is the file of the profile, and not a model
    that was estimated for this order.

    Raises UsageError when the model cannot take the shape, the profile cannot answer for it, a choice of `held` does
    not apply, no plan is of that arrangement, no term follows, or several sellers have a price for the card.
    """
    held = held or Held()
    offers = _one_seller(offers, card)

    def at(concurrency: int) -> FitDocument:
        one = replace(shape, concurrency=concurrency)
        return judge_cards(profile, where, one, catalog, offers, (card,), held)

    # Without a memory model only measured cells answer: of named workers what one of them runs has to be one.
    share = ask.share_of(shape.concurrency)
    asked = at(shape.concurrency if profile.memory_model is not None else share)
    shared = asked if share == asked.scenario.concurrency else at(share)
    row, best = shared.cards[0], _plan_of_a_worker(asked, shared, ask, arrangement)

    def judged(worker: FitDocument, over: Devices) -> Judged:
        return Judged(asked, worker, card, over, profile, shape.concurrency, saved, held)

    if best is not None and (over := _devices_of(best)).count > profile.workload.tensor_parallel_size:
        one = replace(shape, concurrency=min(best.sequences_per_copy, share))
        worker = _judge_divided(profile, where, one, offers, card, over, held)
        unknown = NoThroughput("no throughput: the model divided over several cards was not measured")
        copies = -(-shape.concurrency // best.sequences_per_copy)
        return _planned(judged(worker, over), copies, unknown, ask, offers.books[0])
    needed = _copies(asked.cards[0], shape.concurrency)
    worker, each = shared, share
    if needed is not None and -(-shape.concurrency // needed) < share:
        # Without a memory model the largest measured cell that fits is a worker's, too.
        most = row.max_concurrency if profile.memory_model is None else None
        each = most or -(-shape.concurrency // needed)
        worker = at(each)
    rate = throughput_on(profile, card, replace(shape, concurrency=each))
    if not held.as_profiled:
        rate = NoThroughput(f"no throughput: nothing was run with {held.words}")
    return _planned(judged(worker, Devices(profile.workload.tensor_parallel_size)), needed, rate, ask, offers.books[0])


def order_start(
    request: VllmRequest, catalog: Catalog, offers: Offers, card: Card, ask: Ask, *, arrangement: str | None = None
) -> OrderDocument:
    """The same for a model that vLLM is to serve. Raises UsageError or UnreadableInputError, each in one line."""
    offers = _one_seller(offers, card)
    asked = start_vllm(request, catalog, offers, (card,))
    concurrency = asked.scenario.concurrency
    share = ask.share_of(concurrency)
    shared = asked
    if share < concurrency:
        shared = start_vllm(replace(request, concurrency=share), catalog, offers, (card,))
    best = _plan_of_a_worker(asked, shared, ask, arrangement)
    over = Devices(request.tensor_parallel or 1, request.pipeline_parallel or 1)
    worker, copies = shared, _copies(asked.cards[0], concurrency)
    if best is not None:
        copies, over = -(-concurrency // best.sequences_per_copy), _devices_of(best)
        one = replace(
            request,
            concurrency=min(best.sequences_per_copy, share),
            tensor_parallel=over.tensor,
            pipeline_parallel=over.stages,
        )
        worker = start_vllm(one, catalog, offers, (card,))
    rate = NoThroughput("no throughput: a start by rules was not measured")
    judged = Judged(asked, worker, card, over, None, concurrency, saved=False)
    return _planned(judged, copies, rate, ask, offers.books[0])


def _plan_of_a_worker(
    asked: FitDocument, shared: FitDocument, ask: Ask, arrangement: str | None
) -> ArrangementFigures | None:
    """The plan of that arrangement. Without one the first for what is shared out; where the model has to be divided and
    workers were named, the first that is a single copy, as each of them is."""
    plans, of_all = shared.cards[0].arrangements, asked.cards[0].arrangements
    if arrangement is not None:
        return _named(asked.cards[0], arrangement)
    if ask.workers and of_all and _devices_of(of_all[0]).count > 1:
        plans = (*(one for one in plans if one.copies == 1), *plans)
    return plans[0] if plans else None


def _named(row: CardRow, arrangement: str) -> ArrangementFigures:
    """The plan of an arrangement, for all sequences. Raises UsageError, which lists the others, where none is."""
    found = next((one for one in row.arrangements if one.arrangement == arrangement), None)
    if found is not None:
        return found
    cards = [f"{one.arrangement} ({counted(one.cards_needed, 'card')})" for one in row.arrangements]
    if not cards:
        raise UsageError(f"--arrangement {arrangement}: {row.card}: {row.no_plan}")
    raise UsageError(
        f"--arrangement {arrangement}: no plan of {row.card} for this scenario is so; it can be {' or '.join(cards)}"
    )


def _devices_of(plan: ArrangementFigures) -> Devices:
    return Devices(plan.tensor_parallel_size, plan.pipeline_parallel_size)


def _judge_divided(
    profile: Profile, where: str, shape: Shape, offers: Offers, card: Card, over: Devices, held: Held
) -> FitDocument:
    """The fullest device of one copy that is divided over several, at what that copy serves."""
    predictor = predictor_of(profile, held)
    otherwise = predictor if isinstance(predictor, Otherwise) else None
    divided = next(one for one in divisions_of(predictor) if one.over == over)
    lot_size = offers.lot_size(card.id)
    verdict = judge(divided.predictor, card, shape, lot_size, over=over)
    plans = plans_for(verdict, [divided], shape, lot_size)
    advice = [CardAdvice(verdict, plans)]
    return build_fit_document(profile, where, shape, divided.predictor.at(shape), advice, offers, otherwise)


def _one_seller(offers: Offers, card: Card) -> Offers:
    """The offers of the one book that prices a card, or of the first where none does: an order goes to one seller."""
    books = [book for book, _ in offers.of(card.id)]
    if len(books) > 1:
        *others, last = [book.name for book in books]
        names = f"{', '.join(others)} and {last}{' both' if len(books) == 2 else ''}"
        raise UsageError(f"{names} have a price for {card.id}, and an order goes to one seller: name it (--offers)")
    return replace(offers, books=tuple(books))


def _copies(row: CardRow, concurrency: int) -> int | None:
    """Whole copies that serve all sequences together: one where that is merely not sure, to find out with; None where
    none of the plans tried does."""
    if row.verdict is Verdict.FITS:
        return 1
    if row.cards_needed is not None and row.max_concurrency:
        return -(-concurrency // row.max_concurrency)
    return None if row.verdict is Verdict.DOES_NOT_FIT else 1


def _planned(
    judged: Judged, copies: int | None, rate: Throughput | NoThroughput, ask: Ask, book: OfferBook
) -> OrderDocument:

    plan = None
    if copies is not None:
        card = judged.card
        each = judged.row.max_concurrency
        site = Site(copies, judged.over.count, card.devices_per_card, book.lot_size(card.id), each)
        plan = make_plan(ask, site, rate)
    return build_order_document(judged, plan, ask, book)
