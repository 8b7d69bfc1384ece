"""How several of a card serve what one does not, at borders computed by hand from tests/builders."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from builders import make_card, make_layout, make_profile
from hypothesis import given
from hypothesis import strategies as st

from gpufit.advice.arrangements import Plan, divisions_of, fewest_cards, no_plan, plans_for
from gpufit.advice.verdict import Arrangement, Verdict, judge
from gpufit.catalog.card_parts import Machine
from gpufit.memory.carry import BETWEEN_CARDS, MORE_THAN_TWO_CARDS, between_cards
from gpufit.memory.predict import Predictor
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.record import Profile

GIB = 2**30
SHAPE = Shape(128, 4, 1)
CONTEXT_UPPER = (512 << 20) + 166_000_000


def profile_with_layout(**changes: Any) -> Profile:
    return make_profile(layout=make_layout(), **changes)


def plans(
    capacity: int, shape: Shape = SHAPE, lot_size: int = 1, profile: Profile | None = None, **card: Any
) -> tuple[Verdict, tuple[Plan, ...]]:
    predictor = Predictor(profile or profile_with_layout())
    verdict = judge(predictor, make_card(capacity_gib=capacity / GIB, **card), shape, lot_size)
    return verdict.verdict, plans_for(verdict, divisions_of(predictor), shape, lot_size)


def test_a_card_that_fits_is_the_only_plan() -> None:
    verdict, (plan,) = plans(80 * GIB, lot_size=2)
    assert verdict is Verdict.FITS
    assert plan.arrangement is Arrangement.SINGLE
    assert (plan.copies, plan.cards_needed, plan.lots.lots, plan.lots.idle_cards) == (1, 1, 1, 1)


def test_what_one_card_cannot_hold_is_divided_over_two() -> None:
    # One sequence of 128 tokens needs 917 MB on one card: 623 MB of context, 256 MB of weights, 38 MB beside them. Of
    # the weights two ranks hold 128 MB each, with up to 1.6 GB of buffers between them: only a pipeline is less.
    verdict, found = plans(900_000_000)
    assert verdict is Verdict.DOES_NOT_FIT
    (plan,) = found
    assert plan.arrangement is Arrangement.PIPELINE
    assert (plan.over.tensor, plan.copies, plan.sequences_per_copy) == (1, 1, 1)
    assert plan.evidence is Evidence.SCALED
    assert plan.need_lower_bytes <= plan.need_bytes <= plan.need_upper_bytes <= 900_000_000
    stages = plan.over.stages
    assert plan.cards_needed == stages
    # The fewest stages that are enough: (10 / stages, rounded up) layers of 20 MB, and 28 MB of embeddings.
    held = -(-10 // stages) * 20_000_000 + 28_000_000
    one_less = -(-10 // (stages - 1)) * 20_000_000 + 28_000_000
    assert 900_000_000 - plan.need_upper_bytes < one_less - held or stages == 2


def test_a_rank_needs_the_buffers_between_cards() -> None:
    profile = make_profile(layout=make_layout(shards=make_layout().shards[:1]))
    capacity = 2_700_000_000
    shape = Shape(512, 4, 200)
    _, found = plans(capacity, shape, profile=profile)
    sharded = next(one for one in found if one.arrangement is Arrangement.SHARDED)
    assert sharded.over.tensor == 2
    predictor = divisions_of(Predictor(profile))[1].predictor
    needed = max(one.upper_bytes for one in predictor.at(Shape(512, 4, sharded.sequences_per_copy)))
    assert sharded.need_upper_bytes > needed + CONTEXT_UPPER + BETWEEN_CARDS.upper_bytes
    assert sharded.copies * sharded.sequences_per_copy >= 200
    assert sharded.cards_needed == 2 * sharded.copies


def test_two_ranks_take_less_between_them_than_four() -> None:
    assert between_cards(1).upper_bytes == 0
    assert between_cards(2) == BETWEEN_CARDS
    assert between_cards(4) == BETWEEN_CARDS + MORE_THAN_TWO_CARDS == between_cards(8)


def test_a_profile_of_a_rank_takes_as_many_cards_as_there_are_ranks() -> None:
    profile = make_profile()
    workload = msgspec.structs.replace(profile.workload, tensor_parallel_size=4)
    verdict, (plan,) = plans(80 * GIB, profile=msgspec.structs.replace(profile, workload=workload))
    assert verdict is Verdict.FITS
    assert plan.arrangement is Arrangement.SHARDED
    assert (plan.over.tensor, plan.copies, plan.cards_needed) == (4, 1, 4)


def test_a_card_of_two_devices_holds_two_ranks() -> None:
    profile = make_profile()
    workload = msgspec.structs.replace(profile.workload, tensor_parallel_size=4)
    _, (plan,) = plans(80 * GIB, profile=msgspec.structs.replace(profile, workload=workload), devices_per_card=2)
    assert plan.cards_needed == 2


def test_without_a_layout_there_are_copies_alone() -> None:
    _, found = plans(2_700_000_000, Shape(512, 4, 200), profile=make_profile())
    assert [one.arrangement for one in found] == [Arrangement.REPLICAS]


def test_a_card_that_promises_nothing_has_no_plan() -> None:
    predictor = Predictor(profile_with_layout())
    verdict = judge(predictor, make_card(capacity_gib=None), SHAPE, 1)
    assert plans_for(verdict, divisions_of(predictor), SHAPE, 1) == ()


@pytest.mark.parametrize("ranks", [2, 4])
def test_what_cannot_be_divided_is_not_planned(ranks: int) -> None:
    divisions = divisions_of(Predictor(profile_with_layout()))
    assert [one.over.tensor for one in divisions if one.over.tensor > 1 and one.over.stages == 1] == [2, 4]
    assert max(one.over.stages for one in divisions) == 8, "there are ten layers"
    few = divisions_of(Predictor(make_profile(layout=make_layout(layers=ranks))))
    assert max(one.over.stages for one in few) == ranks


@given(capacity=st.integers(700_000_000, 4 * GIB), concurrency=st.integers(1, 300), lot_size=st.integers(1, 8))
def test_every_plan_serves_all_and_fits_each_card(capacity: int, concurrency: int, lot_size: int) -> None:
    _, found = plans(capacity, Shape(512, 4, concurrency), lot_size)
    assert [one.lots.cards for one in found] == sorted(one.lots.cards for one in found)
    assert len({one.arrangement for one in found}) == len(found)
    for plan in found:
        assert plan.copies * plan.sequences_per_copy >= concurrency > (plan.copies - 1) * plan.sequences_per_copy
        assert plan.need_upper_bytes <= capacity
        assert plan.cards_needed == plan.copies * plan.over.count
        assert plan.machines * 8 >= plan.cards_needed
        others = [one.cards_needed for one in found if one is not plan]
        if plan.arrangement is Arrangement.SHARDED_PIPELINE and others:
            assert plan.cards_needed < min(others)
        assert plan.lots.lots * lot_size - plan.lots.idle_cards == plan.cards_needed


def test_devices_that_share_a_layer_are_planned_inside_one_machine() -> None:
    profile = make_profile(layout=make_layout(shards=make_layout().shards[:2]))
    shape = Shape(512, 4, 200)
    _, free = plans(2_700_000_000, shape, profile=profile)
    assert any(one.over.tensor > 1 for one in free)
    verdict, alone = plans(2_700_000_000, shape, profile=profile, machine=Machine(cards=1))
    assert verdict is Verdict.DOES_NOT_FIT
    assert {one.over.tensor for one in alone} == {1}


def test_idle_cards_host_what_a_copy_of_the_plan_surely_serves() -> None:
    # One copy on one card of a lot of four: three more, each with the most that a card surely serves.
    _, (plan,) = plans(80 * GIB, lot_size=4)
    most = judge(Predictor(profile_with_layout()), make_card(capacity_gib=80), SHAPE, 4).max_concurrency
    assert most
    assert (plan.remainder.cards, plan.remainder.copies, plan.remainder.sequences) == (3, 3, 3 * most)
    assert plan.remainder.cost_share == 0.75


def test_fewest_cards_are_those_of_some_plan_and_fewer_than_asked() -> None:
    predictor = Predictor(profile_with_layout())
    shape = Shape(512, 4, 200)
    verdict = judge(predictor, make_card(capacity_gib=2_700_000_000 / GIB), shape, 1)
    divisions = divisions_of(predictor)
    paid = min(one.lots.cards for one in plans_for(verdict, divisions, shape, 1))
    best = fewest_cards(verdict, divisions, shape, 1, None)
    assert best is not None
    assert best.lots.cards == paid
    assert fewest_cards(verdict, divisions, shape, 1, paid) is None


def test_where_no_plan_serves_it_is_said_which_were_tried() -> None:
    predictor = Predictor(profile_with_layout())
    verdict = judge(predictor, make_card(capacity_gib=0.4), SHAPE, 1)
    divisions = divisions_of(predictor)
    assert plans_for(verdict, divisions, SHAPE, 1) == ()
    words = no_plan(verdict, divisions)
    assert "up to 4 devices of one machine, a pipeline of up to 8 stages, both together over up to 32" in words
    assert "4 KV heads cannot be divided over 8 ranks" in words
    bare = Predictor(make_profile())
    assert "does not tell how the model divides" in no_plan(verdict, divisions_of(bare))
