"""What would make one start of vLLM do: each change, asked for itself, surely serves what was asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from public_models import CONFIGS

from gpufit.advice.changes import ChangeKind, NearestChange
from gpufit.advice.served import Question
from gpufit.advice.starts import StartVerdict, judge_starts
from gpufit.advice.verdict import Verdict
from gpufit.architecture.registry import architecture_of
from gpufit.catalog.record import Card
from gpufit.catalog.store import load_catalog
from gpufit.memory.engines.vllm import Ranks, Settings, quantised, rules_of
from gpufit.memory.engines.vllm.quantization import awq_beforehand, fp8_at_load

QWEN = architecture_of(CONFIGS["Qwen/Qwen3-8B"], "Qwen3-8B")
CARDS = load_catalog().cards
KNOWN = [one for one in CARDS if one.capacity_bytes]


def question(length: int, concurrency: int, version: str = "0.29.0", tp: int = 1, **flags: Any) -> Question:
    chosen = Settings(max_model_len=length, ranks=Ranks(tp), **flags)
    return Question("Qwen3-8B", QWEN, "BF16", None, rules_of(version), chosen, concurrency)


def judged(asked: Question, card: Card) -> StartVerdict:
    (verdict,) = judge_starts(asked, (card,), lambda _: 1, CARDS)
    return verdict


def card(name: str) -> Card:
    return next(one for one in CARDS if one.id == name)


def kinds(asked: Question, name: str) -> set[ChangeKind]:
    return {one.kind for one in judged(asked, card(name)).changes}


def changed(asked: Question, change: NearestChange) -> Question:
    """The question as a user would ask it then."""
    match change.kind:
        case ChangeKind.CONCURRENCY:
            return replace(asked, concurrency=int(change.value))
        case ChangeKind.CONTEXT:
            return replace(asked, settings=replace(asked.settings, max_model_len=int(change.value)))
        case ChangeKind.CARD:
            return asked
    if change.kind is not ChangeKind.WEIGHTS:
        asked = replace(asked, settings=replace(asked.settings, kv_cache_dtype="fp8"))
    if "4-bit checkpoint" in change.value:
        asked = replace(asked, method=awq_beforehand("BF16"))
    elif change.kind is not ChangeKind.KV_CACHE:
        asked = replace(asked, method=fp8_at_load("BF16"), whole_first="checkpoint" not in change.value)
    if change.plan is not None:
        over = change.plan.over
        ranks = Ranks(over.tensor, stages=over.stages)
        _, _, chosen = change.flags.partition("--max-num-seqs ")
        flags = replace(asked.settings, ranks=ranks, max_num_seqs=int(chosen) if chosen else None)
        asked = replace(asked, settings=flags, concurrency=change.plan.sequences_per_copy)
    return asked


@given(
    st.sampled_from(KNOWN),
    st.integers(1, 40960),
    st.integers(1, 300),
    st.sampled_from(["0.7.3", "0.10.0", "0.29.0"]),
    st.sampled_from([1, 2]),
)
@settings(max_examples=60)
def test_every_change_asked_for_itself_surely_serves_everything(
    one: Card, length: int, concurrency: int, version: str, tp: int
) -> None:
    asked = question(length, concurrency, version, tp)
    verdict = judged(asked, one)
    if verdict.verdict is Verdict.FITS:
        assert verdict.changes == ()
        return
    for change in verdict.changes:
        on = card(change.value) if change.kind is ChangeKind.CARD else one
        then = changed(asked, change)
        again = judged(then, on)
        assert again.verdict is Verdict.FITS, change
        assert (change.need_upper_bytes or 0) <= (on.capacity_bytes or 0)
        if change.plan is not None:
            assert change.plan.copies * change.plan.sequences_per_copy >= concurrency
            continue
        assert change.need_upper_bytes == again.served.need(then.settings.max_model_len).upper_bytes
        chosen = again.served.start.settings.max_num_seqs
        assert (f"--max-num-seqs {chosen}" in change.flags) == (chosen is not None)
    found = [change.kind for change in verdict.changes if change.plan is None and not change.vendor]
    assert len(found) == len(set(found))
    alone = {ChangeKind.KV_CACHE, ChangeKind.WEIGHTS} & set(found)
    assert not (alone and ChangeKind.WEIGHTS_AND_KV_CACHE in found)
    # Fewer cards are told of only where no change makes one start do, each with fewer than those before it.
    several = [change.plan.lots.cards for change in verdict.changes if change.plan is not None]
    paid = [verdict.plans[0].plan.lots.cards] if verdict.plans else []
    assert [*paid, *several] == sorted({*paid, *several}, reverse=True)
    assert not (several and {ChangeKind.KV_CACHE, ChangeKind.WEIGHTS, ChangeKind.WEIGHTS_AND_KV_CACHE} & set(found))


def test_the_next_card_up_is_the_smallest_that_serves_it() -> None:
    asked = question(16384, 24)
    sure = [one for one in KNOWN if judged(asked, one).verdict is Verdict.FITS]
    for one in KNOWN:
        changes = [change for change in judged(asked, one).changes if change.kind is ChangeKind.CARD]
        named = [card(change.value) for change in changes]
        larger = [other for other in sure if (other.capacity_bytes or 0) > (one.capacity_bytes or 0)]
        if one in sure or not larger:
            assert named == []
            continue
        least = min(other.capacity_bytes or 0 for other in larger)
        same = [other.capacity_bytes or 0 for other in larger if other.vendor == one.vendor]
        # The same vendor's first; another's behind it where that is smaller, or alone where there is no other.
        expected = [min(same), *([least] if least < min(same) else [])] if same else [least]
        assert [other.capacity_bytes for other in named] == expected
        assert [change.vendor for change in changes] == [
            "" if other.vendor == one.vendor else other.vendor for other in named
        ]


def test_a_cache_in_fp8_takes_half() -> None:
    # 36 layers, 8 KV heads of 128, keys and values in two bytes: 147,456 B a token, and 73,728 B in FP8. As many
    # sequences in a step as before, so that nothing else changes.
    asked = question(8192, 24, max_num_seqs=24)
    verdict = judged(asked, card("l40s-48gb"))
    (change,) = [one for one in verdict.changes if one.kind is ChangeKind.KV_CACHE]
    assert change.flags == "--kv-cache-dtype fp8"
    assert change.need_upper_bytes == verdict.served.need(8192).upper_bytes - 24 * 8192 * 73_728


@pytest.mark.parametrize(
    ("version", "name", "taken"),
    [
        ("0.29.0", "l40s-48gb", True),
        ("0.29.0", "h100-sxm-80gb", True),
        ("0.29.0", "rtx-a6000-48gb", False),  # Ampere: https://github.com/vllm-project/vllm/issues/26431
        ("0.29.0", "a100-sxm-80gb", False),
        ("0.10.0", "h100-sxm-80gb", True),
        ("0.10.0", "l40s-48gb", False),
        ("0.8.5", "h100-sxm-80gb", False),
        ("0.7.3", "l40s-48gb", True),
    ],
)
def test_a_cache_in_fp8_is_named_only_where_release_and_card_take_it(version: str, name: str, taken: bool) -> None:
    # A third more sequences than surely fit, with as many in a step: half the cache is surely enough.
    most = judged(question(8192, 4000), card(name)).max_concurrency
    assert most
    count = most * 4 // 3
    asked = question(8192, count, version, max_num_seqs=count)
    assert (ChangeKind.KV_CACHE in kinds(asked, name)) == taken


def test_weights_in_fp8_are_named_only_for_those_in_16_bit_and_cards_that_run_them() -> None:
    # 16.4 GB of weights, which FP8 halves; 40 GB of cache beside them on a card of 48 GB do not fit.
    asked = question(8192, 27, max_num_seqs=27)
    assert ChangeKind.WEIGHTS in kinds(asked, "l40s-48gb")
    assert ChangeKind.WEIGHTS in kinds(asked, "rtx-a6000-48gb")  # as weights alone, by the Marlin kernel
    already = replace(question(8192, 60, max_num_seqs=60), method=quantised("awq").method)
    assert kinds(already, "l40s-48gb")
    assert not {ChangeKind.WEIGHTS, ChangeKind.WEIGHTS_AND_KV_CACHE} & kinds(already, "l40s-48gb")
    older = question(1024, 80, max_num_seqs=80)
    assert not {ChangeKind.WEIGHTS, ChangeKind.KV_CACHE} & kinds(older, "v100-sxm2-32gb")


def test_a_card_of_unknown_memory_is_told_nothing_and_is_no_next_card() -> None:
    asked = question(16384, 24)
    assert judged(asked, card("h100-sxm-64gb")).changes == ()
    named = {one.value for each in KNOWN for one in judged(asked, each).changes if one.kind is ChangeKind.CARD}
    assert named
    assert not named & {one.id for one in CARDS if one.capacity_bytes is None}
