"""How several of a card serve with vLLM what one start does not: copies of it, starts over more ranks, both. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from gpufit.advice.arrangements import STAGES, Plan, best_of_each, left_of, planned_as
from gpufit.advice.attempts import Asked, Attempt
from gpufit.advice.lots import lots_for
from gpufit.advice.machines import devices_in_one, machines_for, spans
from gpufit.advice.served import Question, Served
from gpufit.advice.tried import no_plan_words
from gpufit.advice.verdict import Devices, Verdict
from gpufit.catalog.record import Card
from gpufit.errors import UsageError
from gpufit.memory.engines.base import total
from gpufit.memory.engines.vllm.layers import kinds_of
from gpufit.memory.engines.vllm.stages import stage_shape
from gpufit.memory.engines.vllm.weights import Ranks, refuse_indivisible

_MORE_RANKS = (2, 4, 8)
"""Ranks that are tried where one card is not enough: as many as servers have cards."""


@dataclass(frozen=True)
class StartPlan:
    """One way to serve all sequences with several of a card."""

    plan: Plan
    served: Served
    """The start of each copy, which surely serves the plan's sequences a copy."""


def wider(asked: Asked) -> tuple[Asked, ...]:
    """The question over more ranks, as far as vLLM can divide the model: those that share every layer, then stages of a
    pipeline from the fewest devices up; none where the ranks were asked for."""
    return tuple(_wider(asked)) if asked.question.spread else ()


def _wider(asked: Asked) -> Iterator[Asked]:
    question = asked.question
    staged = [(tensor, stages) for tensor in (1, *_MORE_RANKS) for stages in STAGES]
    staged.sort(key=lambda one: (one[0] * one[1], one[1]))
    for tensor, stages in (*((tensor, 1) for tensor in _MORE_RANKS), *staged):
        ranks = replace(question.settings.ranks, tensor=tensor, stages=stages)
        try:
            kinds_of(question.architecture, ranks)
            refuse_indivisible(question.architecture, ranks)
            stage_shape(question.architecture, stages, question.rules)
        except UsageError:  # what cannot be divided so is no plan
            continue
        yield asked.with_settings(replace(question.settings, ranks=ranks))


def start_plans(attempt: Attempt, card: Card, more: Iterable[Asked], lot_size: int) -> tuple[StartPlan, ...]:
    """The plans that surely serve everything: the start that serves the most of the sequences, or copies of it, and
    where it does not serve all alone, starts over `more` ranks. The fewest cards first, one of each arrangement."""
    found = {one.plan.over: one for one in _plans(attempt, card, more, lot_size)}
    return tuple(found[one.over] for one in best_of_each(one.plan for one in found.values()))


def fewest_start(card: Card, asked: Asked, more: Iterable[Asked], lot_size: int, below: int | None) -> StartPlan | None:
    """The plan for which the fewest cards are paid, of those that surely serve everything with fewer than `below`
    (None: any number); None where none does."""
    best: StartPlan | None = None
    for one in (asked, *more):
        over = devices_of(one.question)
        most_paid = below if best is None else best.plan.lots.cards
        least = lots_for(-(-over.count // card.devices_per_card), lot_size).cards
        if over.tensor > devices_in_one(card) or (most_paid is not None and least >= most_paid):
            continue
        if _surely_too_heavy(card, asked, over):
            continue
        found = _start_on(card, one, lot_size)
        if found is not None and (most_paid is None or found.plan.lots.cards < most_paid):
            best = found
    return best


def _surely_too_heavy(card: Card, asked: Asked, over: Devices) -> bool:
    """Whether even an even share of the weights is more than a device has: no rank holds less."""
    attempt = asked.on(card)
    each = total(attempt.loaded).lower_bytes * devices_of(asked.question).count / over.count
    return each > attempt.device.total_bytes


def _start_on(card: Card, asked: Asked, lot_size: int) -> StartPlan | None:
    """The fewest copies of the start that surely serve everything; None where none do, or vLLM cannot divide the model
    so."""
    try:
        attempt = asked.on(card)
    except UsageError:
        return None
    return _plan(attempt, attempt.fullest(attempt.best()), card, lot_size)


def no_start_plan(card: Card, question: Question, more: Sequence[Asked]) -> str:
    """Why no number of a card is named, in words, where none of the plans serves."""
    tried = [devices_of(question), *(devices_of(one.question) for one in more)]
    untried = [] if question.spread else ["only what was asked for is planned with: leave --tp and --pp out for others"]
    if question.spread and not any(over.stages > 1 for over in tried):
        untried += _refusal(question, Ranks(stages=STAGES[0]))
    if question.spread and not any(over.tensor > 1 for over in tried):
        untried += _refusal(question, Ranks(_MORE_RANKS[0]))
    return no_plan_words(card, True, tried, untried)


def _refusal(question: Question, ranks: Ranks) -> list[str]:
    """Why the model cannot be divided so, where it cannot."""
    try:
        refuse_indivisible(question.architecture, ranks)
        stage_shape(question.architecture, ranks.stages, question.rules)
    except UsageError as error:
        return [str(error)]
    return []


def _plans(attempt: Attempt, card: Card, more: Iterable[Asked], lot_size: int) -> Iterator[StartPlan]:
    found: list[StartPlan] = []
    fullest = attempt.fullest(attempt.best())
    own = _plan(attempt, fullest, card, lot_size)
    if own is not None:
        found.append(own)
        yield own
    if fullest.verdict is Verdict.FITS:
        return
    for asked in more:
        over = devices_of(asked.question)
        if over.tensor > devices_in_one(card) or not _may_be_less(card, over, found):
            continue
        if fullest.start.part("weights").amount.lower_bytes > over.count * fullest.start.device.total_bytes:
            continue  # no rank holds less than an even share
        one = _start_on(card, asked, lot_size)
        # A pipeline is only worth its waiting with fewer cards.
        if one is not None and (over.stages == 1 or one.plan.cards_needed < _fewest(found)):
            found.append(one)
            yield one


def _may_be_less(card: Card, over: Devices, found: Sequence[StartPlan]) -> bool:
    """Whether a start over so many devices may take fewer cards than those that were found, of its own kind where its
    devices share every layer."""
    least = -(-over.count // card.devices_per_card)
    if over.stages == 1:
        return all(one.plan.copies > 1 for one in found if one.plan.over.tensor > 1)
    return least < _fewest(found)


def _fewest(found: Sequence[StartPlan]) -> float:
    """The fewest cards of any plan; endless where there is none."""
    return min((one.plan.cards_needed for one in found), default=math.inf)


def devices_of(question: Question) -> Devices:
    """The devices that a copy is asked to be divided over."""
    ranks = question.settings.ranks
    return Devices(ranks.tensor, ranks.stages)


def _plan(attempt: Attempt, served: Served, card: Card, lot_size: int) -> StartPlan | None:
    """The fewest copies of a start that serve all sequences; None where not even one sequence is sure of its place."""
    most = min(math.floor(served.lower), served.asked)
    if not most:
        return None
    copies = -(-served.asked // most)
    each = replace(served, asked=-(-served.asked // copies))
    settings = served.start.settings
    over = Devices(settings.ranks.tensor, settings.ranks.stages)
    cards = -(-copies * over.count // card.devices_per_card)
    lots = lots_for(cards, lot_size)
    need = each.need(settings.max_model_len)
    plan = Plan(
        arrangement=planned_as(copies, over),
        over=over,
        copies=copies,
        sequences_per_copy=each.asked,
        cards_needed=cards,
        lots=lots,
        machines=machines_for(card, over, copies),
        spans_machines=spans(card, over),
        remainder=left_of(lots, card, copies, over, lambda: _most_of_a_copy(attempt, each.asked)),
        need_bytes=need.point_bytes,
        need_lower_bytes=need.lower_bytes,
        need_upper_bytes=need.upper_bytes,
        evidence=served.start.evidence,
    )
    return StartPlan(plan, each)


def _most_of_a_copy(attempt: Attempt, sequences: int) -> int:
    """The most sequences that a copy surely serves which is asked for so many."""
    one = replace(attempt, question=replace(attempt.question, concurrency=sequences))
    return one.most(one.fullest(one.best()))
