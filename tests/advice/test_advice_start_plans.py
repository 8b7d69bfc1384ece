"""Plans of vLLM over several of a card: each start serves its sequences, and holds what real cards printed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest
from builders import make_card
from hypothesis import given, settings
from hypothesis import strategies as st
from public_models import CONFIGS, FACTS

from gpufit.advice.machines import devices_in_one
from gpufit.advice.served import Question
from gpufit.advice.start_plans import StartPlan
from gpufit.advice.starts import StartVerdict, judge_starts
from gpufit.advice.verdict import Arrangement, Verdict
from gpufit.architecture.registry import architecture_of
from gpufit.catalog.record import Card
from gpufit.catalog.store import load_catalog
from gpufit.memory.engines.vllm import Ranks, Sampler, Settings, rules_of
from gpufit.units import GIB

QWEN = architecture_of(CONFIGS["Qwen/Qwen3-8B"], "Qwen3-8B")
CARDS = [one for one in load_catalog().cards if one.capacity_bytes]
STARTS: dict[str, dict[str, Any]] = {
    row["id"]: row for row in json.loads((FACTS / "vllm" / "starts.json").read_text(encoding="utf-8"))
}


def question(length: int, concurrency: int, version: str = "0.29.0", **flags: Any) -> Question:
    chosen = Settings(max_model_len=length, **flags)
    return Question("Qwen3-8B", QWEN, "BF16", None, rules_of(version), chosen, concurrency, spread=True)


def judged(asked: Question, card: Card, lot_size: int = 1) -> StartVerdict:
    (verdict,) = judge_starts(asked, (card,), lambda _: lot_size)
    return verdict


def over(asked: Question, ranks: int, concurrency: int, stages: int = 1) -> Question:
    """The question over so many ranks and stages, none of them planned."""
    flags = replace(asked.settings, ranks=Ranks(ranks, stages=stages))
    return replace(asked, settings=flags, concurrency=concurrency, spread=False)


@given(
    st.sampled_from(CARDS),
    st.integers(1, 40960),
    st.integers(1, 300),
    st.sampled_from(["0.8.5", "0.29.0"]),
    st.integers(1, 4),
)
@settings(max_examples=60)
def test_every_plans_start_serves_its_sequences_and_all_copies_serve_all(
    card: Card, length: int, concurrency: int, version: str, lot_size: int
) -> None:
    asked = question(length, concurrency, version)
    verdict = judged(asked, card, lot_size)
    for one in verdict.plans:
        plan = one.plan
        again = over(asked, plan.over.tensor, plan.sequences_per_copy, plan.over.stages)
        again = replace(again, settings=replace(again.settings, max_num_seqs=one.served.start.batch.sequences))
        assert judged(again, card).verdict is Verdict.FITS
        assert plan.need_upper_bytes == judged(again, card).served.need(length).upper_bytes
        assert plan.need_lower_bytes <= plan.need_bytes <= plan.need_upper_bytes <= (card.capacity_bytes or 0)
        # No copy is idle, and together they serve everything.
        assert (plan.copies - 1) * plan.sequences_per_copy < concurrency <= plan.copies * plan.sequences_per_copy
        assert plan.cards_needed == math.ceil(plan.copies * plan.over.count / card.devices_per_card)
        assert plan.over.tensor <= devices_in_one(card)
        assert plan.lots.cards == math.ceil(plan.cards_needed / lot_size) * lot_size
    paid = [one.plan.lots.cards for one in verdict.plans]
    assert paid == sorted(paid)
    kinds = [one.plan.arrangement for one in verdict.plans]
    assert len(kinds) == len(set(kinds))
    assert (verdict.verdict is Verdict.FITS) == (kinds == [Arrangement.SINGLE])


@given(st.sampled_from(CARDS), st.integers(256, 40960), st.integers(2, 300))
@settings(max_examples=40)
def test_no_start_over_more_ranks_takes_fewer_cards_than_the_plan_of_them(
    card: Card, length: int, concurrency: int
) -> None:
    asked = question(length, concurrency)
    plan = next((one.plan for one in judged(asked, card).plans if one.plan.arrangement is Arrangement.SHARDED), None)
    for ranks in (one for one in (2, 4, 8) if one <= devices_in_one(card)):
        # As many copies as go on fewer devices (on 8 where there is no plan) would have to serve more than they can.
        most = 8 // ranks if plan is None else (plan.cards_needed * card.devices_per_card - 1) // ranks
        if most and judged(asked, card).verdict is not Verdict.FITS:
            each = math.ceil(concurrency / most)
            assert judged(over(asked, ranks, each), card).verdict is not Verdict.FITS


def test_only_the_ranks_that_were_asked_for_are_planned_with() -> None:
    card = next(one for one in CARDS if one.id == "l40s-48gb")
    free = judged(question(16384, 64), card)
    assert {one.plan.over.tensor for one in free.plans} > {1}
    for ranks in (1, 2):
        asked = over(question(16384, 64), ranks, 64)
        assert {one.plan.over.tensor for one in judged(asked, card).plans} == {ranks}


def test_a_width_that_no_weight_can_be_divided_to_is_left_out() -> None:
    # An MLP of 12,292 = 4 x 3,073 goes over 2 and 4 ranks; heads would go over 8.
    config = CONFIGS["Qwen/Qwen3-8B"] | {"intermediate_size": 12292}
    asked = replace(question(16384, 64), architecture=architecture_of(config, "Qwen3-8B"))
    for card in CARDS:
        assert all(one.plan.over.tensor <= 4 for one in judged(asked, card).plans)


PRINTED = {
    # Row of starts.json -> sequences asked for that one rank cannot hold and two can.
    "A005": 2,  # 7.71 GiB of pool, 10,000 tokens of 131,072 B: 6 sequences
    "A036": 8,  # 34.49 GiB, 16,000 tokens of 131,072 B: 17 sequences
    "A044": 8,  # 11.03 GiB, 16,384 tokens of 28,672 B: 25 sequences; one rank has 19.7 GiB for 15.2 of weights
}


@pytest.mark.parametrize("row", PRINTED)
def test_a_plan_over_two_ranks_holds_what_they_printed(row: str) -> None:
    fact = STARTS[row]
    flags = dict(fact["settings"])
    if "sampler" in flags:
        flags["sampler"] = Sampler(flags["sampler"])
    config = CONFIGS[fact["config"]] | fact.get("overrides", {})
    asked = Question(
        fact["model"],
        architecture_of(config, fact["model"]),
        "BF16",
        None,
        rules_of(fact["version"], v1=fact["v1"]),
        Settings(**flags),
        PRINTED[row],
        spread=True,
    )
    card = make_card("the-card", fact["card"]["total_gib"], compute_capability=str(fact["card"]["capability"]))
    plans = judged(asked, card).plans
    one: StartPlan = next(one for one in plans if one.plan.over.tensor == fact["tensor_parallel"] == 2)
    assert (one.plan.arrangement, one.plan.copies) == (Arrangement.SHARDED, 1)
    weights = one.served.start.part("weights").amount
    printed = fact["printed"]["weights_gib"] * GIB
    assert weights.lower_bytes <= printed <= weights.upper_bytes
    assert weights.point_bytes == pytest.approx(printed, rel=0.001)
    assert one.served.start.settings.max_num_seqs is None  # as it was started
    pool = one.served.start.pool_bytes
    assert pool.lower_bytes <= fact["printed"]["kv_gib"] * GIB <= pool.upper_bytes
