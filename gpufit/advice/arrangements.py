"""How one card, taken several times, serves what one alone does not: replicas, shards, a pipeline, or copies of those.

Memory of several cards is never pooled: each card holds its own part, and every one of them has to fit. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpufit.advice.limits import largest_that_fits, largest_with_room
from gpufit.advice.lots import LotCount, Remainder, lots_for, remainder_of
from gpufit.advice.machines import devices_in_one, machines_for, spans
from gpufit.advice.tried import no_plan_words
from gpufit.advice.verdict import (
    Arrangement,
    CardVerdict,
    Devices,
    Verdict,
    arrangement_of,
    needed_at_least,
    surely_enough,
    worst_phase,
)
from gpufit.catalog.record import Card
from gpufit.memory.adapt import Changed, Predicts, on_ranks, on_ranks_of_stages, on_stages
from gpufit.memory.carry import Carrier, carrier_to
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.layout import Layout

STAGES = (2, 3, 4, 6, 8)
"""Stages that a pipeline is tried over: as many as servers have cards."""

_ORDER = (
    Arrangement.SINGLE,
    Arrangement.REPLICAS,
    Arrangement.SHARDED,
    Arrangement.PIPELINE,
    Arrangement.SHARDED_PIPELINE,
)
"""Of plans that cost the same cards, the simpler one first."""


@dataclass(frozen=True)
class Plan:
    """One way to serve all sequences with several of a card."""

    arrangement: Arrangement
    over: Devices
    """The devices of one copy."""
    copies: int
    sequences_per_copy: int
    """What the fullest copy serves."""
    cards_needed: int
    lots: LotCount
    machines: int
    """The fewest that hold the cards needed."""
    spans_machines: bool
    """Whether devices that share every layer reach over several, which nothing here models."""
    remainder: Remainder
    """What the idle cards could host."""
    need_bytes: int
    """Of the fullest device."""
    need_lower_bytes: int
    need_upper_bytes: int
    evidence: Evidence


@dataclass(frozen=True)
class Division:
    """A way to divide a copy of the model over devices, with what the fullest of them needs."""

    over: Devices
    predictor: Predicts


def divisions_of(predictor: Predicts, layout: Layout | None = None) -> tuple[Division, ...]:
    """Every way that is tried: the profile as it is first, then over ranks, over stages, and over both from the fewest
    devices up; no other where the profile does not tell how the model divides. `layout`: in place of the profile's."""
    profile = predictor.profile
    ranks = profile.workload.tensor_parallel_size
    whole = Division(Devices(ranks), predictor)
    layout = layout or profile.layout
    if layout is None or profile.memory_model is None or ranks > 1:
        return (whole,)
    return (whole, *_divided(predictor, layout))


def _divided(predictor: Predicts, layout: Layout) -> Iterator[Division]:
    mixed = predictor.profile.model.sliding_window is not None
    shards = [shard for shard in layout.shards if not shard.refusal]
    stages = [count for count in STAGES if count <= layout.layers]
    for shard in shards:
        yield Division(Devices(shard.ranks), Changed(predictor, on_ranks(shard)))
    for count in stages:
        yield Division(Devices(stages=count), Changed(predictor, on_stages(layout, count, mixed=mixed)))
    both = [(shard, count) for shard in shards for count in stages]
    for shard, count in sorted(both, key=lambda one: (one[0].ranks * one[1], one[1])):
        change = on_ranks_of_stages(shard, count, mixed=mixed)
        if change is not None:
            yield Division(Devices(shard.ranks, count), Changed(predictor, change))


def plans_for(verdict: CardVerdict, divisions: Iterable[Division], shape: Shape, lot_size: int) -> tuple[Plan, ...]:
    """The plans that surely serve a shape on a card, fewest cards first, one of each arrangement."""
    return best_of_each(_plans(verdict, divisions, shape, lot_size))


def no_plan(verdict: CardVerdict, divisions: Sequence[Division]) -> str:
    """Why no number of the verdict's card is named, in words, where none of the plans serves."""
    profile = divisions[0].predictor.profile
    untried: list[str] = []
    if profile.workload.tensor_parallel_size > 1:
        untried.append("the profile is of so many ranks, and tells of no others")
    elif len(divisions) == 1:
        untried.append("the profile does not tell how the model divides over cards")
    elif profile.layout is not None:
        untried += [shard.refusal for shard in profile.layout.shards if shard.refusal]
    tried = [one.over for one in divisions]
    return no_plan_words(verdict.card, verdict.max_concurrency is not None, tried, untried)


def fewest_cards(
    verdict: CardVerdict, divisions: Iterable[Division], shape: Shape, lot_size: int, below: int | None
) -> Plan | None:
    """The plan for which the fewest cards are paid, of those that surely serve a shape on the verdict's card with fewer
    than `below` (None: any number); None where none does."""
    best: Plan | None = None
    for one in divisions:
        most_paid = below if best is None else best.lots.cards
        least = lots_for(-(-one.over.count // verdict.card.devices_per_card), lot_size).cards
        if one.over.tensor > devices_in_one(verdict.card) or (most_paid is not None and least >= most_paid):
            continue
        fitting = _Fitting(one, verdict.card, shape, verdict.same_card)
        copies = fitting.fewest_copies()
        plan = None if copies is None else _plan(fitting, copies, lot_size)
        if plan is not None and (most_paid is None or plan.lots.cards < most_paid):
            best = plan
    return best


def best_of_each(plans: Iterable[Plan]) -> tuple[Plan, ...]:
    """Of each arrangement the plan that takes the fewest cards, the first of those that take as many; of all of them
    that of the fewest cards first."""
    best: dict[Arrangement, Plan] = {}
    for plan in plans:
        other = best.get(plan.arrangement)
        if other is None or plan.cards_needed < other.cards_needed:
            best[plan.arrangement] = plan
    cost = {one.arrangement: (one.lots.cards, one.cards_needed) for one in best.values()}
    return tuple(sorted(best.values(), key=lambda one: (cost[one.arrangement], _ORDER.index(one.arrangement))))


def _plans(verdict: CardVerdict, divisions: Iterable[Division], shape: Shape, lot_size: int) -> Iterator[Plan]:
    whole, *others = divisions
    card = verdict.card
    alone = _Fitting(whole, card, shape, verdict.same_card, verdict.max_concurrency)
    if verdict.verdict is Verdict.FITS:
        yield _plan(alone, 1, lot_size)
        return
    if verdict.max_concurrency is None:  # nothing is promised on this card
        return
    simpler: list[int] = []
    if verdict.max_concurrency:
        most = verdict.max_concurrency
        simpler.append((plan := _plan(alone, -(-shape.concurrency // most), lot_size, most)).cards_needed)
        yield plan
    for one in others:
        if one.over.tensor > devices_in_one(card):  # those that share a layer stand in one machine
            continue
        both = one.over.tensor > 1 and one.over.stages > 1
        if both and simpler and -(-one.over.count // card.devices_per_card) >= min(simpler):
            continue
        fitting = _Fitting(one, card, shape, verdict.same_card)
        copies = fitting.fewest_copies()
        if copies is None:
            continue
        plan = _plan(fitting, copies, lot_size)
        # Both at once are more to set up, and only worth it with fewer cards.
        if not both or not simpler or plan.cards_needed < min(simpler):
            simpler.append(plan.cards_needed)
            yield plan


@dataclass(frozen=True)
class _Fitting:
    """One copy on a card, divided in one way: how many sequences surely fit."""

    division: Division
    card: Card
    shape: Shape
    same_card: bool
    known_most: int | None = None
    """The most sequences of a copy, where that is known already."""

    @cached_property
    def carrier(self) -> Carrier:
        """What carries the profile to the card."""
        return carrier_to(self.card, self.division.predictor.profile, self.same_card, self.division.over.tensor)

    def fewest_copies(self) -> int | None:
        """The fewest copies that surely serve all sequences, as even as can be; None where not even one sequence is
        sure of its place.

        Halving the copies asks the same few counts of sequences for every card, so that each is predicted once.
        """
        asked, room = self.shape.concurrency, self._room()

        def too_few(copies: int) -> bool:
            return room(-(-asked // copies)) < 0

        if not too_few(1):
            return 1
        if asked == 1 or too_few(asked):
            return None
        return largest_that_fits(too_few, asked) + 1

    def of_all(self) -> int | None:
        """The most sequences that surely fit, however many are asked for; None where nothing is promised."""
        if self.known_most is not None or self.division.predictor.profile.memory_model is None:
            return self.known_most
        return largest_with_room(self._room())

    def _room(self) -> Callable[[int], int]:
        """Bytes that so many sequences surely leave on the fullest device of a copy."""
        upper, capacity, at = self.carrier.upper_bytes, self.card.capacity_bytes or 0, self.division.predictor.at
        context, new = self.shape.context_tokens, self.shape.new_tokens
        return lambda count: capacity - max(map(upper, at(Shape(context, new, count))))


def _plan(fitting: _Fitting, copies: int, lot_size: int, most: int | None = None) -> Plan:
    """So many copies, which serve all sequences; `most`: what one surely serves, where that is known."""
    shape, card, division = fitting.shape, fitting.card, fitting.division
    over = division.over
    cards = -(-copies * over.count // card.devices_per_card)
    lots = lots_for(cards, lot_size)
    # A profile without a model answers for the cells it measured alone.
    evenly = division.predictor.profile.memory_model is not None
    each = -(-shape.concurrency // copies) if evenly or most is None else most
    needs = [
        fitting.carrier.need(one) for one in division.predictor.at(Shape(shape.context_tokens, shape.new_tokens, each))
    ]
    return Plan(
        arrangement=planned_as(copies, over),
        over=over,
        copies=copies,
        sequences_per_copy=each,
        cards_needed=cards,
        lots=lots,
        machines=machines_for(card, over, copies),
        spans_machines=spans(card, over),
        remainder=left_of(lots, card, copies, over, fitting.of_all),
        need_bytes=worst_phase(needs).need_bytes,
        need_lower_bytes=needed_at_least(needs),
        need_upper_bytes=surely_enough(needs),
        evidence=worst_phase(needs).evidence,
    )


def left_of(lots: LotCount, card: Card, copies: int, over: Devices, each: Callable[[], int | None]) -> Remainder:
    """What is left of some lots; `each` tells how many sequences a copy surely serves, where a whole one is left."""
    left = remainder_of(lots, card.devices_per_card, copies, over.count, None)
    if not left.copies:
        return left
    return remainder_of(lots, card.devices_per_card, copies, over.count, each())


def planned_as(copies: int, over: Devices) -> Arrangement:
    """How so many copies are planned. Those of a divided model go by how they are divided: the cards of each have to
    reach one another."""
    arrangement = arrangement_of(1 if over.count > 1 else copies, over)
    assert arrangement is not None
    return arrangement
