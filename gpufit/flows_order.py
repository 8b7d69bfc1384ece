"""The use cases that plan an order: of a profile, and of a start of vLLM."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gpufit.advice.arrangements import Division, divisions_of, plans_for
from gpufit.advice.plan import Ask, Site, make_plan
from gpufit.advice.throughput import NoThroughput, Throughput, throughput_on
from gpufit.advice.verdict import Devices, Verdict, judge
from gpufit.catalog.offers import OfferBook, Offers
from gpufit.catalog.record import Card, Catalog
from gpufit.errors import UsageError
from gpufit.flows import judge_cards, start_vllm
from gpufit.memory.predict import Predictor
from gpufit.memory.terms import Shape
from gpufit.profile.record import Profile
from gpufit.report.document import CardAdvice, CardRow, FitDocument, build_fit_document
from gpufit.report.order_builder import build_order_document
from gpufit.report.order_document import OrderDocument
from gpufit.report.order_judged import Judged
from gpufit.report.plans import ArrangementFigures

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
    saved: bool = True,
) -> OrderDocument:
    """Plan an order of one card for a scenario and a volume of work, from one seller.

    `saved` says that `where` is the file of the profile, and not a model that was estimated for this order. Raises
    UsageError when the model cannot take the shape, the profile cannot answer for it, no term follows, or several
    sellers have a price for the card.
    """
    offers = _one_seller(offers, card)
    # Without a memory model only measured cells answer: of named workers what one of them runs has to be one.
    share = replace(shape, concurrency=ask.share_of(shape.concurrency))
    whole = shape if profile.memory_model is not None else share
    asked = judge_cards(profile, where, whole, catalog, offers, (card,))
    shared = asked if share == whole else judge_cards(profile, where, share, catalog, offers, (card,))
    row, best = shared.cards[0], _plan_of_a_worker(asked, shared, ask)

    def judged(worker: FitDocument, over: Devices) -> Judged:
        return Judged(asked, worker, card, over, profile, shape.concurrency, saved)

    if best is not None and (over := _devices_of(best)).count > profile.workload.tensor_parallel_size:
        one = replace(shape, concurrency=best.sequences_per_copy)
        worker = _judge_divided(profile, where, one, offers, card, over)
        unknown = NoThroughput("no throughput: the model divided over several cards was not measured")
        copies = -(-shape.concurrency // one.concurrency)
        return _planned(judged(worker, over), copies, unknown, ask, offers.books[0])
    needed = _copies(asked.cards[0], shape.concurrency)
    worker, one = shared, share
    if needed is not None and -(-shape.concurrency // needed) < share.concurrency:
        # Without a memory model the largest measured cell that fits is a worker's, too.
        most = row.max_concurrency if profile.memory_model is None else None
        one = replace(shape, concurrency=most or -(-shape.concurrency // needed))
        worker = judge_cards(profile, where, one, catalog, offers, (card,))
    rate = throughput_on(profile, card, one)
    return _planned(judged(worker, Devices(profile.workload.tensor_parallel_size)), needed, rate, ask, offers.books[0])


def order_start(request: VllmRequest, catalog: Catalog, offers: Offers, card: Card, ask: Ask) -> OrderDocument:
    """The same for a model that vLLM is to serve. Raises UsageError or UnreadableInputError, each in one line."""
    offers = _one_seller(offers, card)
    asked = start_vllm(request, catalog, offers, (card,))
    concurrency = asked.scenario.concurrency
    share = ask.share_of(concurrency)
    shared = asked
    if share < concurrency:
        shared = start_vllm(replace(request, concurrency=share), catalog, offers, (card,))
    best = _plan_of_a_worker(asked, shared, ask)
    over = Devices(request.tensor_parallel or 1, request.pipeline_parallel or 1)
    worker, copies = shared, _copies(asked.cards[0], concurrency)
    if best is not None:
        copies, over = -(-concurrency // best.sequences_per_copy), _devices_of(best)
        one = replace(
            request,
            concurrency=best.sequences_per_copy,
            tensor_parallel=over.tensor,
            pipeline_parallel=over.stages,
        )
        worker = start_vllm(one, catalog, offers, (card,))
    rate = NoThroughput("no throughput: a start by rules was not measured")
    judged = Judged(asked, worker, card, over, None, concurrency, saved=False)
    return _planned(judged, copies, rate, ask, offers.books[0])


def _plan_of_a_worker(asked: FitDocument, shared: FitDocument, ask: Ask) -> ArrangementFigures | None:
    """The first arrangement for what is shared out; where the model has to be divided and workers were named, the first
    that is a single copy, as each of them is."""
    plans, of_all = shared.cards[0].arrangements, asked.cards[0].arrangements
    if ask.workers and of_all and _devices_of(of_all[0]).count > 1:
        plans = (*(one for one in plans if one.copies == 1), *plans)
    return plans[0] if plans else None


def _devices_of(plan: ArrangementFigures) -> Devices:
    return Devices(plan.tensor_parallel_size, plan.pipeline_parallel_size)


def _judge_divided(
    profile: Profile, where: str, shape: Shape, offers: Offers, card: Card, over: Devices
) -> FitDocument:
    """The fullest device of one copy that is divided over several, at what that copy serves."""
    predictor = next(one.predictor for one in divisions_of(Predictor(profile)) if one.over == over)
    verdict = judge(predictor, card, shape, offers.lot_size(card.id), over=over)
    plans = plans_for(verdict, [Division(over, predictor)], shape, offers.lot_size(card.id))
    return build_fit_document(profile, where, shape, predictor.at(shape), [CardAdvice(verdict, plans)], offers)


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
