"""How one card, taken several times, serves what one alone does not: replicas, shards, a pipeline, or copies of those.

Memory of several cards is never pooled: each card holds its own part, and every one of them has to fit. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from gpufit.advice.limits import largest_that_fits
from gpufit.advice.lots import LotCount, lots_for
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
from gpufit.memory.adapt import Changed, Predicts, on_ranks, on_stages
from gpufit.memory.carry import Carrier, carrier_to
from gpufit.memory.terms import Shape
from gpufit.profile.record import Evidence

STAGES = (2, 3, 4, 6, 8)
"""Cards that a pipeline is tried over: as many as servers have."""

_ORDER = (Arrangement.SINGLE, Arrangement.REPLICAS, Arrangement.SHARDED, Arrangement.PIPELINE)
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


def divisions_of(predictor: Predicts) -> tuple[Division, ...]:
    """Every way that is tried, the profile as it is first; no other where it does not tell how the model divides."""
    profile = predictor.profile
    ranks = profile.workload.tensor_parallel_size
    whole = Division(Devices(ranks), predictor)
    layout = profile.layout
    if layout is None or profile.memory_model is None or ranks > 1:
        return (whole,)
    sharded = (
        Division(Devices(shard.ranks), Changed(predictor, on_ranks(shard)))
        for shard in layout.shards
        if not shard.refusal
    )
    mixed = profile.model.sliding_window is not None
    staged = (
        Division(Devices(stages=stages), Changed(predictor, on_stages(layout, stages, mixed=mixed)))
        for stages in STAGES
        if stages <= layout.layers
    )
    return (whole, *sharded, *staged)


def plans_for(verdict: CardVerdict, divisions: Iterable[Division], shape: Shape, lot_size: int) -> tuple[Plan, ...]:
    """The plans that surely serve a shape on a card, fewest cards first, one of each arrangement."""
    return best_of_each(_plans(verdict, divisions, shape, lot_size))


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
    if verdict.verdict is Verdict.FITS:
        yield _plan(whole, verdict.card, shape, shape.concurrency, lot_size, verdict.same_card)
        return
    if verdict.max_concurrency is None:  # nothing is promised on this card
        return
    if verdict.max_concurrency:
        yield _plan(whole, verdict.card, shape, verdict.max_concurrency, lot_size, verdict.same_card)
    for one in others:
        carrier = carrier_to(verdict.card, one.predictor.profile, verdict.same_card, one.over.tensor)
        most = _most(one, carrier, verdict.card.capacity_bytes or 0, shape)
        if most:
            yield _plan(one, verdict.card, shape, most, lot_size, verdict.same_card)


def _most(division: Division, carrier: Carrier, capacity: int, shape: Shape) -> int:
    """The most sequences that surely fit the devices of one copy, of those asked for."""

    def fits(count: int) -> bool:
        phases = division.predictor.at(replace(shape, concurrency=count))
        return all(carrier.upper_bytes(one) <= capacity for one in phases)

    return shape.concurrency if fits(shape.concurrency) else largest_that_fits(fits, shape.concurrency)


def _plan(division: Division, card: Card, shape: Shape, most: int, lot_size: int, same_card: bool) -> Plan:
    """The fewest copies of which each serves at most so many sequences."""
    over = division.over
    copies = -(-shape.concurrency // most)
    cards = -(-copies * over.count // card.devices_per_card)
    # A profile without a model answers for the cells it measured alone.
    evenly = division.predictor.profile.memory_model is not None
    each = -(-shape.concurrency // copies) if evenly else most
    carrier = carrier_to(card, division.predictor.profile, same_card, over.tensor)
    needs = [carrier.need(one) for one in division.predictor.at(replace(shape, concurrency=each))]
    return Plan(
        arrangement=planned_as(copies, over),
        over=over,
        copies=copies,
        sequences_per_copy=each,
        cards_needed=cards,
        lots=lots_for(cards, lot_size),
        need_bytes=worst_phase(needs).need_bytes,
        need_lower_bytes=needed_at_least(needs),
        need_upper_bytes=surely_enough(needs),
        evidence=worst_phase(needs).evidence,
    )


def planned_as(copies: int, over: Devices) -> Arrangement:
    """How so many copies are planned. Those of a divided model go by how they are divided: the cards of each have to
    reach one another."""
    arrangement = arrangement_of(1 if over.count > 1 else copies, over)
    assert arrangement is not None
    return arrangement
