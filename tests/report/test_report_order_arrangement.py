"""An order of the arrangement that was chosen among those that `gpufit fit` lists for its card."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest
from builders import make_card, make_layout, make_profile
from public_models import CONFIGS

from gpufit import flows, flows_order
from gpufit.advice.plan import Ask
from gpufit.advice.verdict import Arrangement
from gpufit.catalog.offers import Offer, OfferBook, Offers
from gpufit.catalog.record import Catalog
from gpufit.cli.commands.order import _ARRANGEMENTS
from gpufit.errors import UsageError
from gpufit.memory.held import Cache, Held
from gpufit.memory.terms import Shape
from gpufit.report.document import CardRow
from gpufit.report.order_document import OrderDocument
from gpufit.report.plans import ArrangementFigures
from gpufit.sources.estimate.vllm import VllmRequest

CARD = make_card("x1-24gb", 22.0)
CATALOG = Catalog(cards=(CARD,))
THREES = OfferBook(
    name="threes",
    seller="Three a lot",
    currency="EUR",
    offers=(Offer(card="x1-24gb", lot_size=3, price_7_days=100.0, currency="EUR"),),
)
OFFERS = Offers((THREES,), datetime.date(2026, 2, 1))
PROFILE = make_profile(layout=make_layout())
HEAVY = Shape(30_000, 4, 64)
"""0.7 GiB a sequence, of which a card of 22 GiB holds some twenty: several cards, in one of several ways."""


def row(held: Held | None = None) -> CardRow:
    (found,) = flows.fit(PROFILE, "p.json", HEAVY, CATALOG, OFFERS, held=held).cards
    return found


def order(arrangement: str | None, workers: int | None = None, held: Held | None = None) -> OrderDocument:
    ask = Ask(term_days=7, workers=workers)
    return flows_order.order(PROFILE, "p.json", HEAVY, CATALOG, OFFERS, CARD, ask, held=held, arrangement=arrangement)


PLANS = {plan.arrangement: plan for plan in row().arrangements}


def check(made: OrderDocument, plan: ArrangementFigures) -> None:
    """The order is of the plan: its copies, their devices and sequences, and the cards."""
    card = made.card
    assert card.arrangement == plan.arrangement
    assert (card.tensor_parallel_size, card.pipeline_parallel_size) == (
        plan.tensor_parallel_size,
        plan.pipeline_parallel_size,
    )
    assert len(made.workers) == plan.copies == -(-made.scenario.concurrency // plan.sequences_per_copy)
    assert {one.at_once for one in made.workers} == {made.margin.at_once} == {plan.sequences_per_copy}
    assert card.cards_needed == plan.cards_needed == plan.copies * card.ranks
    assert made.margin.verdict == "fits"


@pytest.mark.parametrize("arrangement", PLANS)
def test_it_is_of_the_plan_that_was_named(arrangement: str) -> None:
    made, plan = order(arrangement), PLANS[arrangement]
    check(made, plan)
    assert made.margin.need_upper_bytes == plan.need_upper_bytes
    lots = -(-plan.cards_needed // 3)
    assert (made.card.lots, made.card.cards_paid, made.cost.total_price) == (lots, 3 * lots, 100.0 * lots)


def test_without_a_name_it_takes_the_fewest_cards() -> None:
    assert len(PLANS) == 3
    first, *others = PLANS
    assert order(None) == order(first)
    assert all(order(None) != order(other) for other in others)
    assert min(plan.cards_needed for plan in PLANS.values()) == order(None).card.cards_needed


def test_another_says_what_the_fewest_cards_are() -> None:
    """Three copies are a lot of three; two copies over two cards each are four, of which six are paid for."""
    assert (PLANS["replicas"].cards_needed, PLANS["sharded"].cards_needed) == (3, 4)
    note = "3 copies: 3 cards in place of 6 (--arrangement replicas)"
    assert note in order("sharded").notes
    assert not any("in place of" in one for one in order("replicas").notes)
    assert not any("in place of" in one for one in order("sharded", workers=3).notes)


def test_one_that_is_no_plan_lists_those_that_are() -> None:
    with pytest.raises(UsageError) as refused:
        order("single")
    assert str(refused.value) == (
        "--arrangement single: no plan of x1-24gb for this scenario is so; it can be replicas (3 cards) or sharded "
        "(4 cards) or pipeline (4 cards)"
    )
    heavy = Shape(32_000, 4, 4)
    tiny = make_card("x1-24gb", 0.5)
    with pytest.raises(UsageError, match="--arrangement sharded: x1-24gb: none of the plans tried serves it"):
        flows_order.order(PROFILE, "p", heavy, Catalog(cards=(tiny,)), OFFERS, tiny, Ask(7), arrangement="sharded")


def test_named_workers_each_are_a_copy_of_the_plan() -> None:
    """64 sequences over 4 workers are 16 each, on two cards that share every layer."""
    made = order("sharded", workers=4)
    assert (made.card.arrangement, made.card.ranks, made.card.cards_needed) == ("sharded", 2, 8)
    assert {one.at_once for one in made.workers} == {16}
    assert [one.devices for one in made.workers] == ["0-1", "2-3", "4-5", "6-7"]
    with pytest.raises(UsageError, match="--workers 1: 2 copies of the model are needed"):
        order("sharded", workers=1)


def test_more_workers_than_one_card_needs_are_copies_of_it() -> None:
    made = flows_order.order(
        PROFILE, "p", Shape(512, 4, 4), CATALOG, OFFERS, CARD, Ask(7, workers=2), arrangement="single"
    )
    assert (made.card.arrangement, made.card.cards_needed, made.margin.at_once) == ("replicas", 2, 2)


def test_held_otherwise_it_is_the_plan_of_that() -> None:
    """Half a cache: 0.43 GiB a sequence, and fewer cards. The plan is that of `fit` with the same switch."""
    held = Held(kv_cache=Cache.FP8)
    plans = {plan.arrangement: plan for plan in row(held).arrangements}
    for arrangement, plan in plans.items():
        made = order(arrangement, held=held)
        check(made, plan)
        assert made.margin.need_upper_bytes == plan.need_upper_bytes
        assert not made.ready
        assert made.scenario.kv_cache == "FP8"
    assert plans["replicas"].cards_needed < PLANS["replicas"].cards_needed


def test_a_start_of_vllm_is_ordered_as_it_was_chosen(tmp_path: Path) -> None:
    """61 GiB of weights and 0.25 MiB a token, 512 sequences of 1k tokens: one card of 79.1 GiB holds some of them."""
    folder = tmp_path / "Qwen3-32B"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(CONFIGS["Qwen/Qwen3-32B"]))
    card = make_card("x1-80gb", 79.1)
    catalog = Catalog(cards=(card,))
    offers = Offers((OfferBook(name="one", offers=(Offer(card=card.id, lot_size=1),)),), datetime.date(2026, 2, 1))
    request = VllmRequest(model=str(folder), max_model_len=1024, concurrency=512)
    (found,) = flows.start_vllm(request, catalog, offers).cards
    assert len(found.arrangements) > 1
    for plan in found.arrangements:
        made = flows_order.order_start(request, catalog, offers, card, Ask(term_days=7), arrangement=plan.arrangement)
        check(made, plan)
        (command,) = [one.command for one in made.checks if one.decides]
        over = f"--tensor-parallel-size {plan.tensor_parallel_size} "
        over += f"--pipeline-parallel-size {plan.pipeline_parallel_size} " * (plan.pipeline_parallel_size > 1)
        assert over in command
        assert over in plan.serve_command
    with pytest.raises(UsageError, match="--arrangement single: no plan of x1-80gb for this scenario is so"):
        flows_order.order_start(request, catalog, offers, card, Ask(term_days=7), arrangement="single")


def test_the_option_takes_every_arrangement_that_there_is() -> None:
    assert set(_ARRANGEMENTS) == set(Arrangement)
