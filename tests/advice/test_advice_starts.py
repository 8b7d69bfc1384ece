"""Laws that the verdicts on starts hold, whatever is asked, and the arithmetic of copies, cards and lots."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from public_models import CONFIGS

from gpufit.advice.attempts import Asked
from gpufit.advice.served import Question, Served
from gpufit.advice.starts import StartVerdict, judge_starts
from gpufit.advice.verdict import Arrangement, Verdict
from gpufit.architecture.quantization.registry import declared, method_of
from gpufit.architecture.registry import architecture_of
from gpufit.catalog.record import Card
from gpufit.catalog.store import load_catalog
from gpufit.errors import UsageError
from gpufit.memory.engines.vllm import Device, Lora, Ranks, Settings, rules_of
from gpufit.memory.engines.vllm.start import least_utilization

QWEN = architecture_of(CONFIGS["Qwen/Qwen3-8B"], "Qwen3-8B")
CARDS = load_catalog().cards
ORDER = [Verdict.DOES_NOT_FIT, Verdict.TOO_CLOSE, Verdict.FITS]


def question(length: int = 4096, concurrency: int = 8, tp: int = 1, **flags: object) -> Question:
    chosen = Settings(max_model_len=length, ranks=Ranks(tp), **flags)  # type: ignore[arg-type]
    return Question("Qwen3-8B", QWEN, "BF16", None, rules_of(), chosen, concurrency)


def judged(asked: Question, card: Card, lot_size: int = 1) -> StartVerdict:
    (verdict,) = judge_starts(asked, (card,), lambda _: lot_size)
    return verdict


def card(name: str) -> Card:
    return next(one for one in CARDS if one.id == name)


@given(
    st.sampled_from([one for one in CARDS if one.capacity_bytes]),
    st.integers(1, 40960),
    st.integers(1, 255),
    st.sampled_from([1, 2, 4, 8]),
)
@settings(max_examples=60)
def test_more_is_never_easier(one: Card, length: int, concurrency: int, tp: int) -> None:
    asked = question(length, concurrency, tp)
    now = ORDER.index(judged(asked, one).verdict)
    assert ORDER.index(judged(replace(asked, concurrency=concurrency + 1), one).verdict) <= now
    longer = replace(asked, settings=replace(asked.settings, max_model_len=min(length + 1000, 40960)))
    assert ORDER.index(judged(longer, one).verdict) <= now
    half = replace(asked, settings=replace(asked.settings, utilization=0.45))
    assert ORDER.index(judged(half, one).verdict) <= now


@given(st.sampled_from(CARDS), st.integers(1, 2000), st.sampled_from([1, 2]), st.integers(1, 4))
@settings(max_examples=60)
def test_copies_cover_what_is_asked_and_no_more(one: Card, concurrency: int, tp: int, lot_size: int) -> None:
    verdict = judged(question(concurrency=concurrency, tp=tp), one, lot_size)
    if not verdict.max_concurrency:
        assert verdict.plans == ()
        return
    (plan,) = [one.plan for one in verdict.plans]
    copies = math.ceil(concurrency / verdict.max_concurrency)
    assert plan.copies == copies
    assert plan.sequences_per_copy == math.ceil(concurrency / copies)
    assert plan.cards_needed == math.ceil(copies * tp / one.devices_per_card)
    assert plan.lots.cards - plan.lots.idle_cards == plan.cards_needed
    assert (verdict.verdict is Verdict.FITS) == (copies == 1)
    alone = Arrangement.SINGLE if copies == 1 else Arrangement.REPLICAS
    assert plan.arrangement is (alone if tp == 1 else Arrangement.SHARDED)


@given(
    st.sampled_from([one for one in CARDS if one.capacity_bytes]),
    st.integers(512, 40960),
    st.integers(1, 48),
    st.sampled_from([0.35, 0.45, 0.92]),
)
@settings(max_examples=40, deadline=None)
def test_no_other_number_of_sequences_in_a_step_serves_more(
    one: Card, length: int, concurrency: int, share: float
) -> None:
    """Every number up to the one that is asked for is started by itself, and none is better than the chosen start."""
    asked = question(length, concurrency, utilization=share)
    chosen = judged(asked, one).served
    if chosen.verdict is Verdict.FITS:
        return

    def runs(served: Served) -> tuple[int, int]:
        return math.floor(served.lower), math.floor(min(served.point, concurrency))

    attempt = Asked(asked).on(one)
    every = [attempt.with_sequences(count) for count in range(1, concurrency + 1)]
    if chosen.verdict is Verdict.TOO_CLOSE:  # then the start that may serve all of them is shown
        every = [served for served in every if served.verdict is Verdict.TOO_CLOSE]
    assert runs(chosen) >= max(map(runs, every), default=(0, 0))


@pytest.mark.parametrize("concurrency", [3, 16])
def test_a_pool_that_likely_holds_several_is_not_cut_to_the_one_that_it_surely_holds(concurrency: int) -> None:
    # gpt-oss-120b on 79.1 GiB: 18 layers see all of 32,768 tokens, 18 a window, 8 KV heads of 64 in two bytes each way.
    # 2,048 blocks of 16 tokens and those of a window of 127 + 2 x 8,192 tokens, each of 18 x 32,768 B: 1.69 GiB.
    blocks = 32768 // 16 + math.ceil((127 + 2 * 8192) / 16) + 1
    sequence = blocks * 18 * 16 * 2 * 8 * 64 * 2
    name = "openai/gpt-oss-120b"
    architecture = architecture_of(CONFIGS[name], name)
    asked = Question(name, architecture, "BF16", None, rules_of(), Settings(max_model_len=32768), concurrency)
    asked = replace(asked, method=method_of(declared(CONFIGS[name], name), "BF16"))
    served = judged(asked, card("h100-sxm-80gb")).served
    start = served.start
    assert start.sequence_bytes == sequence
    surely, likely = (
        math.floor(size / sequence) for size in (start.pool_bytes.lower_bytes, start.pool_bytes.point_bytes)
    )
    assert (surely, likely) == (1, 4)
    assert start.batch.sequences == min(concurrency, likely)
    assert (math.floor(served.lower), math.floor(served.point)) == (surely, min(concurrency, likely))
    assert start.concurrency.point == pytest.approx(start.pool_bytes.point_bytes / sequence, abs=1 / blocks)


def test_a_card_of_unknown_memory_gets_parts_and_no_claim() -> None:
    verdict = judged(question(), card("h100-sxm-64gb"))
    assert verdict.verdict is Verdict.UNKNOWN
    assert (verdict.max_concurrency, verdict.max_context_tokens) == (None, None)
    assert (verdict.plans, verdict.changes) == ((), ())
    # 8.19 billion parameters in two bytes: https://huggingface.co/Qwen/Qwen3-8B
    assert verdict.served.start.part("weights").amount.point_bytes == pytest.approx(2 * 8.19e9, rel=0.01)


def test_a_need_is_the_sum_of_its_parts_and_grows_with_the_sequences() -> None:
    eight, nine = (judged(question(concurrency=count), card("l40s-48gb")) for count in (8, 9))
    # 36 layers, 8 KV heads of 128, keys and values in two bytes: 147,456 B a token.
    assert nine.served.need(4096).point_bytes - eight.served.need(4096).point_bytes == 4096 * 36 * 8 * 128 * 2 * 2
    served = eight.served
    allocated = eight.served.allocated(4096)
    assert eight.served.need(4096).upper_bytes == (served.context + served.other + allocated).upper_bytes


def test_slots_for_adapters_count_in_a_need_also_where_they_are_on_top_of_the_budget() -> None:
    counted, on_top = (
        [judged(replace(question(**flags), rules=rules_of(version)), card("h100-sxm-80gb")) for flags in ({}, slots)]
        for version in ("0.8.5", "0.7.3")
        for slots in ({"lora": Lora(8, 64)},)
    )
    # Qwen3-8B: 36 layers; q and o 4,096 square, k and v 1,024 wide, an MLP of 12,288.
    a_layer = 2 * (4096 + 4096) + 2 * (4096 + 1024) + 2 * (4096 + 12288) + (12288 + 4096)
    for without, with_slots in (counted, on_top):
        more = with_slots.served.need(4096).point_bytes - without.served.need(4096).point_bytes
        assert more == 36 * a_layer * 8 * 64 * 2
    assert counted[1].served.allocated(4096).point_bytes > counted[0].served.allocated(4096).point_bytes
    assert on_top[1].served.allocated(4096) == on_top[0].served.allocated(4096)


def test_graphs_on_top_of_the_budget_count_against_the_card() -> None:
    # Before 0.21 up to 2.5 GiB come on top, so a share of 0.99 leaves the pool no sure place on the card.
    old = replace(question(utilization=0.99), rules=rules_of("0.11.0"))
    served = judged(old, card("l40s-48gb")).served
    assert served.lower < served.start.concurrency.lower


@given(
    st.sampled_from([one for one in CARDS if one.capacity_bytes]),
    st.integers(1, 40960),
    st.integers(1, 300),
    st.sampled_from(["0.11.0", "0.29.0"]),
)
@settings(max_examples=60)
def test_the_least_share_serves_what_it_promises_to(one: Card, length: int, concurrency: int, version: str) -> None:
    asked = replace(question(length, concurrency), rules=rules_of(version))
    least = judged(asked, one).served.least_utilization
    if least is None:
        return
    with_it = replace(asked, settings=replace(asked.settings, utilization=least))
    assert judged(with_it, one).verdict is Verdict.FITS


def test_a_share_that_the_drivers_context_does_not_leave_free_is_not_promised() -> None:
    # Of 100 GB 99.4 are free beside the context, which hold 99.3 GB; but the share that does is 1, all 100 GB.
    device = Device("a card", 100 * 10**9, 9.0, context_bytes=600 * 10**6)
    assert least_utilization(993 * 10**8, device) is None
    assert least_utilization(990 * 10**8, device) == 0.99
    assert least_utilization(990 * 10**8 + 1, device) is None


def test_a_card_without_bfloat16_is_said_to_start_in_half() -> None:
    assert any("--dtype half" in remark for remark in judged(question(), card("t4-16gb")).remarks)
    assert not any("--dtype half" in remark for remark in judged(question(), card("l4-24gb")).remarks)


@pytest.mark.parametrize("flags", [{"max_num_seqs": 7}, {"max_num_seqs": 64, "max_num_batched_tokens": 63}])
def test_flags_that_contradict_the_question_are_refused(flags: dict[str, int]) -> None:
    with pytest.raises(UsageError, match="--max-num-seqs"):
        question(**flags)
