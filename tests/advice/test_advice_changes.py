"""The nearest changes that make a card do, each held against a verdict of its own."""

from __future__ import annotations

from dataclasses import replace

from builders import make_card, make_layout, make_profile
from hypothesis import given
from hypothesis import strategies as st

from gpufit.advice.arrangements import divisions_of, plans_for
from gpufit.advice.changes import Alternatives, ChangeKind, NearestChange, nearest_changes
from gpufit.advice.verdict import CardVerdict, Verdict, judge, surely_enough
from gpufit.catalog.card_parts import Peaks
from gpufit.memory.predict import Predictor
from gpufit.memory.terms import Shape

GIB = 2**30
PREDICTOR = Predictor(make_profile(layout=make_layout()))
SHAPE = Shape(512, 4, 40)
LARGE = make_card("large-80gb", capacity_gib=80)


def asked(capacity: int, shape: Shape = SHAPE, fp8: bool = True) -> tuple[CardVerdict, dict[ChangeKind, NearestChange]]:
    unsupported = () if fp8 else ("fp8",)
    card = make_card("small", capacity_gib=capacity / GIB, peak_tflops=Peaks(unsupported=unsupported))
    verdicts = [judge(PREDICTOR, one, shape, 1) for one in (card, LARGE)]
    found = nearest_changes(verdicts[0], Alternatives(PREDICTOR), shape, verdicts)
    return verdicts[0], {one.kind: one for one in found}


def test_a_card_that_fits_needs_no_change() -> None:
    verdict, found = asked(80 * GIB)
    assert (verdict.verdict, found) == (Verdict.FITS, {})


def test_fewer_sequences_or_a_shorter_context_are_what_the_verdict_says() -> None:
    verdict, found = asked(1_300_000_000)
    assert verdict.verdict is Verdict.DOES_NOT_FIT
    assert found[ChangeKind.CONCURRENCY].value == str(verdict.max_concurrency)
    assert found[ChangeKind.CONTEXT].value == str(verdict.max_context_tokens)
    assert found[ChangeKind.CARD].value == "large-80gb"
    judged = judge(PREDICTOR, LARGE, SHAPE, 1)
    assert found[ChangeKind.CARD].need_upper_bytes == surely_enough(judged.phases)


def test_the_cache_in_fp8_is_told_where_it_is_enough() -> None:
    # 512 x 40 tokens hold 409.6 MB of cache: half of it is spared in the upper bound, and 2 % for fragmentation.
    need = surely_enough(judge(PREDICTOR, LARGE, SHAPE, 1).phases)
    spared = int(20_000 * (512 * 40) / 2 * 1.02)
    _, found = asked(need - spared + 2_000)
    assert found[ChangeKind.KV_CACHE].value == "fp8"
    upper = found[ChangeKind.KV_CACHE].need_upper_bytes
    assert upper is not None
    assert abs(need - spared - upper) <= 2
    _, found = asked(need - spared - 2_000)
    assert ChangeKind.KV_CACHE not in found


def test_fp8_weights_are_for_cards_that_compute_fp8() -> None:
    # Of 256 MB of weights 200 MB are linear: 100 MB are spared in FP8, and 148 MB in 4.16 bits.
    need = surely_enough(judge(PREDICTOR, LARGE, SHAPE, 1).phases)
    _, found = asked(need - 60_000_000)
    assert found[ChangeKind.WEIGHTS].value == "fp8"
    _, found = asked(need - 60_000_000, fp8=False)
    assert found[ChangeKind.WEIGHTS].value == "4-bit"


def test_both_are_told_only_where_neither_is_enough() -> None:
    need = surely_enough(judge(PREDICTOR, LARGE, SHAPE, 1).phases)
    _, found = asked(need - 300_000_000)
    assert not {ChangeKind.WEIGHTS, ChangeKind.KV_CACHE} & set(found)
    assert found[ChangeKind.WEIGHTS_AND_KV_CACHE].value in ("fp8 weights, fp8 KV cache", "4-bit weights, fp8 KV cache")
    _, found = asked(need - 1_000_000)
    assert ChangeKind.WEIGHTS_AND_KV_CACHE not in found


def test_nothing_is_told_of_a_card_that_nobody_knows() -> None:
    verdict = judge(PREDICTOR, make_card(capacity_gib=None), SHAPE, 1)
    assert nearest_changes(verdict, Alternatives(PREDICTOR), SHAPE, [verdict]) == ()


@given(capacity=st.integers(1, 3 * GIB), concurrency=st.integers(1, 100))
def test_what_is_told_does_fit(capacity: int, concurrency: int) -> None:
    shape = Shape(512, 4, concurrency)
    verdict, found = asked(capacity, shape)
    card = verdict.card
    if ChangeKind.CONCURRENCY in found:
        fewer = replace(shape, concurrency=int(found[ChangeKind.CONCURRENCY].value))
        assert judge(PREDICTOR, card, fewer, 1).verdict is Verdict.FITS
    if ChangeKind.CONTEXT in found:
        shorter = replace(shape, context_tokens=int(found[ChangeKind.CONTEXT].value))
        assert judge(PREDICTOR, card, shorter, 1).verdict is Verdict.FITS
    for kind in (ChangeKind.KV_CACHE, ChangeKind.WEIGHTS, ChangeKind.WEIGHTS_AND_KV_CACHE):
        if kind in found:
            upper = found[kind].need_upper_bytes
            assert upper is not None
            assert upper <= capacity


def test_the_next_card_up_is_of_the_same_vendor_and_another_s_is_named() -> None:
    small = make_card("small", capacity_gib=1.2)
    other = make_card("other-60gb", capacity_gib=60, vendor="AMD")
    found = {}
    for larger in ((LARGE, other), (other,), (LARGE, make_card("other-90gb", capacity_gib=90, vendor="AMD"))):
        verdicts = [judge(PREDICTOR, one, SHAPE, 1) for one in (small, *larger)]
        changes = nearest_changes(verdicts[0], Alternatives(PREDICTOR), SHAPE, verdicts)
        named = [(one.value, one.vendor) for one in changes if one.kind is ChangeKind.CARD]
        found[tuple(one.id for one in larger)] = named
    assert found == {
        ("large-80gb", "other-60gb"): [("large-80gb", ""), ("other-60gb", "AMD")],
        ("other-60gb",): [("other-60gb", "AMD")],
        ("large-80gb", "other-90gb"): [("large-80gb", "")],
    }


def test_what_holds_less_is_told_where_fewer_cards_do_with_it() -> None:
    # 512 x 200 tokens of 20,000 B are 2.05 GB of cache: several copies of what a card of 1.9 GB holds, and fewer with a
    # cache of half the size or weights of 156 or 108 in place of 256 MB.
    shape = Shape(512, 4, 200)
    card = make_card("small", capacity_gib=1_900_000_000 / GIB)
    verdict = judge(PREDICTOR, card, shape, 1)
    plans = plans_for(verdict, divisions_of(PREDICTOR), shape, 1)
    changes = nearest_changes(verdict, Alternatives(PREDICTOR), shape, [verdict], plans)
    fewer = [one for one in changes if one.plan is not None]
    assert fewer
    paid = plans[0].lots.cards
    for one in fewer:
        assert one.plan is not None
        assert one.plan.lots.cards < paid
        assert one.in_place_of == plans[0].lots.cards
        assert one.need_upper_bytes == one.plan.need_upper_bytes <= 1_900_000_000
        assert one.plan.copies * one.plan.sequences_per_copy >= 200
        paid = one.plan.lots.cards
    # In lots of a hundred cards nothing is saved.
    in_lots = plans_for(verdict, divisions_of(PREDICTOR), shape, 100)
    kept = nearest_changes(verdict, Alternatives(PREDICTOR), shape, [verdict], in_lots, 100)
    assert all(one.plan is None for one in kept)
