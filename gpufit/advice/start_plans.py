"""How several of a card serve with vLLM what one start does not: copies of it, starts over more ranks, both. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gpufit.advice.arrangements import Plan, best_of_each, planned_as
from gpufit.advice.attempts import Asked
from gpufit.advice.lots import lots_for
from gpufit.advice.served import Question, Served
from gpufit.advice.verdict import Devices, Verdict
from gpufit.catalog.record import Card
from gpufit.errors import UsageError
from gpufit.memory.engines.vllm.layers import kinds_of
from gpufit.memory.engines.vllm.weights import refuse_indivisible

_MORE_RANKS = (2, 4, 8)
"""Ranks that are tried where one card is not enough: as many as servers have cards."""


@dataclass(frozen=True)
class StartPlan:
    """One way to serve all sequences with several of a card."""

    plan: Plan
    served: Served
    """The start of each copy, which surely serves the plan's sequences a copy."""


def wider(question: Question) -> tuple[Asked, ...]:
    """The question over more ranks, as far as vLLM can divide the model; none where the ranks were asked for."""
    return tuple(_wider(question)) if question.spread else ()


def _wider(question: Question) -> Iterator[Asked]:
    for tensor in _MORE_RANKS:
        ranks = replace(question.settings.ranks, tensor=tensor)
        try:
            kinds_of(question.architecture, ranks)
            refuse_indivisible(question.architecture, ranks)
        except UsageError:  # what cannot be divided so is no plan
            continue
        yield Asked(replace(question, settings=replace(question.settings, ranks=ranks)))


def start_plans(card: Card, fullest: Served, more: Iterable[Asked], lot_size: int) -> tuple[StartPlan, ...]:
    """The plans that surely serve everything: the start that serves the most of the sequences, or copies of it, and
    where it does not serve all alone, starts over `more` ranks. The fewest cards first, one of each arrangement."""
    found = {one.plan.over: one for one in _plans(card, fullest, more, lot_size)}
    return tuple(found[one.over] for one in best_of_each(one.plan for one in found.values()))


def _plans(card: Card, fullest: Served, more: Iterable[Asked], lot_size: int) -> Iterator[StartPlan]:
    own = _plan(card, fullest, lot_size)
    if own is not None:
        yield own
    if fullest.verdict is Verdict.FITS:
        return
    for asked in more:
        try:
            attempt = asked.on(card)
        except UsageError:  # a weight that cannot be divided so
            continue
        one = _plan(card, attempt.fullest(attempt.best()), lot_size)
        if one is not None:
            yield one
            if one.plan.copies == 1:  # more ranks take more cards
                return


def _plan(card: Card, served: Served, lot_size: int) -> StartPlan | None:
    """The fewest copies of a start that serve all sequences; None where not even one sequence is sure of its place."""
    most = min(math.floor(served.lower), served.asked)
    if not most:
        return None
    copies = -(-served.asked // most)
    each = replace(served, asked=-(-served.asked // copies))
    settings = served.start.settings
    over = Devices(settings.ranks.tensor)
    cards = -(-copies * over.count // card.devices_per_card)
    need = each.need(settings.max_model_len)
    plan = Plan(
        arrangement=planned_as(copies, over),
        over=over,
        copies=copies,
        sequences_per_copy=each.asked,
        cards_needed=cards,
        lots=lots_for(cards, lot_size),
        need_bytes=need.point_bytes,
        need_lower_bytes=need.lower_bytes,
        need_upper_bytes=need.upper_bytes,
        evidence=served.start.evidence,
    )
    return StartPlan(plan, each)
