"""Verdicts at borders computed by hand from the formula of tests/builders."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from builders import make_card, make_cell, make_memory_model, make_profile
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufit.advice.verdict import Arrangement, CardVerdict, Verdict, judge, surely_enough
from gpufit.catalog.card_parts import Peaks
from gpufit.memory.carry import carrier_to
from gpufit.memory.predict import Predictor
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, OutOfMemory
from gpufit.profile.environment import DeviceInfo, Environment
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase
from gpufit.profile.precision import ComputeDtype
from gpufit.profile.record import Profile

GIB = 2**30
SMALL = Shape(128, 4, 1)

CONTEXT = 524_288_000 + 99_000_000
"""500 MiB of driver context and the loaded kernels."""
PREFILL = 256_004_000 + 2_560_000 + 2_048 + 100_000 + 384_000 + 1_256_000 + 33_554_432
"""Weights and buffers, cache, inputs, outputs, activations, temporaries, cuBLAS' 32 MiB."""
NEED = CONTEXT + PREFILL
MARGIN = 1_052_656
"""2 x 1 % of the 52,632,768 bytes that grow in the largest cell, 512 x 4, rounded up."""
SCRATCH = 10_558_330
"""30 % of activations, temporaries and workspace, 35,194,432 bytes, rounded up."""
NEED_LOWER = NEED - MARGIN - SCRATCH
ALLOCATED_UPPER = PREFILL + MARGIN + SCRATCH
NEED_UPPER = CONTEXT + 12 * 2**20 + 67_000_000 + ALLOCATED_UPPER + 6_109_430
"""The context's range of 12 MiB, the kernels' of 67 MB, and 2 % of ALLOCATED_UPPER, rounded up."""


def judged(
    capacity: int | None, shape: Shape = SMALL, lot_size: int = 1, profile: Profile | None = None
) -> CardVerdict:
    card = make_card(capacity_gib=None if capacity is None else capacity / GIB)
    assert card.capacity_bytes == capacity
    return judge(Predictor(profile or make_profile()), card, shape, lot_size)


def without_position_limit(**changes: Any) -> Profile:
    profile = make_profile(**changes)
    return msgspec.structs.replace(profile, model=msgspec.structs.replace(profile.model, position_limit=None))


def test_the_need_and_its_bounds_are_the_hand_computed_ones() -> None:
    verdict = judged(80 * GIB)
    assert verdict.worst.need_bytes == NEED == 917_148_480
    assert verdict.need_lower_bytes == NEED_LOWER == 905_537_494
    assert verdict.need_upper_bytes == NEED_UPPER == 1_014_451_808


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        (NEED_UPPER + 1, Verdict.FITS),
        (NEED_UPPER, Verdict.FITS),
        (NEED_UPPER - 1, Verdict.TOO_CLOSE),
        (NEED, Verdict.TOO_CLOSE),
        (NEED_LOWER, Verdict.TOO_CLOSE),
        (NEED_LOWER - 1, Verdict.DOES_NOT_FIT),
        (1, Verdict.DOES_NOT_FIT),
    ],
)
def test_the_verdict_turns_exactly_at_the_bounds(capacity: int, expected: Verdict) -> None:
    verdict = judged(capacity)
    assert verdict.verdict is expected
    assert verdict.headroom_bytes == capacity - NEED
    assert verdict.headroom_lower_bytes == capacity - NEED_UPPER
    assert verdict.headroom_upper_bytes == capacity - NEED_LOWER
    assert verdict.binding.short_bytes == max(NEED - capacity, 0)
    assert (verdict.cards_needed == 1) == (expected is Verdict.FITS)


def test_of_a_card_whose_memory_is_not_known_nothing_is_claimed() -> None:
    verdict = judged(None)
    assert verdict.verdict is Verdict.UNKNOWN
    assert verdict.worst.need_bytes == NEED
    for unknown in (
        verdict.capacity_bytes,
        verdict.headroom_bytes,
        verdict.headroom_lower_bytes,
        verdict.headroom_upper_bytes,
        verdict.max_concurrency,
        verdict.max_context_tokens,
        verdict.arrangement,
        verdict.cards_needed,
        verdict.lots,
    ):
        assert unknown is None
    assert verdict.binding.short_bytes == 0
    assert verdict.max_context_is_position_limit is False


def wide_decode() -> Profile:
    """A profile whose decode needs less than its prefill, but was predicted badly: a miss of 100 MB."""
    model = make_memory_model()
    prefill, decode = model.phases
    return make_profile(
        memory_model=msgspec.structs.replace(
            model, phases=(prefill, msgspec.structs.replace(decode, worst_miss_bytes=100_000_000))
        )
    )


def test_a_phase_with_a_wide_interval_does_not_hide_one_that_surely_does_not_fit() -> None:
    verdict = judged(NEED_LOWER - 1, profile=wide_decode())
    decode = verdict.phases[2]
    assert decode.phase is Phase.DECODE
    assert decode.need_lower_bytes < NEED_LOWER - 1 < NEED_UPPER < decode.need_upper_bytes
    # Decode alone would be too close; prefill does not fit, and every phase has to.
    assert verdict.verdict is Verdict.DOES_NOT_FIT
    assert verdict.headroom_upper_bytes == -1


def test_the_need_shown_is_that_of_the_phase_that_needs_most_and_the_bounds_are_the_widest() -> None:
    verdict = judged(80 * GIB, profile=wide_decode())
    assert verdict.worst.phase is verdict.binding.phase is Phase.PREFILL
    assert verdict.headroom_bytes == 80 * GIB - NEED
    assert verdict.need_lower_bytes == NEED_LOWER
    assert verdict.need_upper_bytes == verdict.phases[2].need_upper_bytes > NEED_UPPER
    assert verdict.headroom_lower_bytes == 80 * GIB - verdict.need_upper_bytes


def test_a_phase_with_a_wide_interval_stands_in_the_way_of_a_sure_fit() -> None:
    assert judged(NEED_UPPER, profile=wide_decode()).verdict is Verdict.TOO_CLOSE


def test_a_question_far_beyond_what_was_measured_still_gets_a_no() -> None:
    # A bad fit: misses of a tenth of what grew. 10,000 sequences of 2,048 tokens hold 410 GB of cache alone.
    model = make_memory_model()
    phases = tuple(
        msgspec.structs.replace(one, worst_miss_bytes=one.largest_growth_bytes // 10) for one in model.phases
    )
    profile = make_profile(memory_model=msgspec.structs.replace(model, phases=phases))
    for concurrency in (100, 1_000, 10_000):
        assert judged(GIB, Shape(2048, 4, concurrency), profile=profile).verdict is Verdict.DOES_NOT_FIT


def test_the_largest_part_of_the_worst_phase_binds() -> None:
    # 128 tokens: the context (623 MB) is larger than the weights. 4096 x 20 tokens: the cache, 1.6 GB.
    small, large = judged(80 * GIB), judged(80 * GIB, Shape(4096, 4, 20))
    assert (small.binding.part, small.binding.part_bytes) == ("context_bytes", CONTEXT)
    assert (large.binding.part, large.binding.part_bytes) == ("kv_cache_bytes", 4096 * 20 * 20_000)
    assert large.binding.phase is Phase.PREFILL


def test_a_model_that_needs_most_while_it_is_loaded_is_bound_by_loading() -> None:
    profile = make_profile()
    parts = msgspec.structs.replace(profile.load.parts, temporaries_bytes=10 * GIB)
    load = msgspec.structs.replace(profile.load, parts=parts, allocated_bytes=parts.total_bytes)
    verdict = judged(6 * GIB, profile=msgspec.structs.replace(profile, load=load))
    assert (verdict.binding.phase, verdict.binding.part) == (Phase.LOAD, "temporaries_bytes")
    assert verdict.verdict is Verdict.DOES_NOT_FIT
    assert verdict.max_concurrency == verdict.max_context_tokens == 0
    assert verdict.cards_needed is None


def largest_by_trying(capacity: int, along: str) -> int:
    predictor, card = Predictor(without_position_limit()), make_card(capacity_gib=capacity / GIB)
    found = 0
    for n in range(1, 400):
        shape = Shape(128, 4, n) if along == "concurrency" else Shape(n, 4, 2)
        carrier = carrier_to(card, predictor.profile, False)
        if surely_enough([carrier.need(one) for one in predictor.at(shape)]) <= capacity:
            found = n
    return found


@settings(max_examples=12)
@given(st.integers(NEED_UPPER - 20_000_000, NEED_UPPER + 200_000_000))
def test_the_largest_concurrency_and_context_are_those_that_trying_them_all_finds(capacity: int) -> None:
    for along, shape in (("concurrency", SMALL), ("context", Shape(128, 4, 2))):
        verdict = judged(capacity, shape, profile=without_position_limit())
        found = verdict.max_concurrency if along == "concurrency" else verdict.max_context_tokens
        assert found is not None
        tried = largest_by_trying(capacity, along)
        assert found == tried if tried < 399 else found >= 399


def test_the_largest_that_fits_does_and_one_more_does_not() -> None:
    verdict = judged(2 * GIB, Shape(512, 4, 2))
    assert verdict.max_concurrency is not None
    assert verdict.max_context_tokens is not None
    assert verdict.max_context_is_position_limit is False
    assert judged(2 * GIB, Shape(512, 4, verdict.max_concurrency)).verdict is Verdict.FITS
    assert judged(2 * GIB, Shape(512, 4, verdict.max_concurrency + 1)).verdict is not Verdict.FITS
    assert judged(2 * GIB, Shape(verdict.max_context_tokens, 4, 2)).verdict is Verdict.FITS
    assert judged(2 * GIB, Shape(verdict.max_context_tokens + 1, 4, 2)).verdict is not Verdict.FITS


def test_the_model_s_own_position_limit_is_told_from_memory() -> None:
    # 32,768 positions, three of them for new tokens but the last: 32,765 of context.
    roomy, tight = judged(80 * GIB), judged(NEED_UPPER)
    assert (roomy.max_context_tokens, roomy.max_context_is_position_limit) == (32_765, True)
    assert (tight.max_context_tokens, tight.max_context_is_position_limit) == (128, False)


@pytest.mark.parametrize(("lot_size", "cards", "lots", "idle"), [(1, 3, 3, 0), (2, 3, 2, 1)])
def test_what_does_not_fit_one_card_is_served_by_whole_copies(lot_size: int, cards: int, lots: int, idle: int) -> None:
    per_card = judged(2 * GIB, Shape(512, 4, 1)).max_concurrency
    assert per_card is not None
    verdict = judged(2 * GIB, Shape(512, 4, 2 * per_card + 1), lot_size)
    assert verdict.verdict is not Verdict.FITS
    assert verdict.arrangement is Arrangement.REPLICAS
    assert (verdict.cards_needed, verdict.max_concurrency) == (cards, per_card)
    assert verdict.lots is not None
    assert (verdict.lots.lots, verdict.lots.idle_cards) == (lots, idle)


def test_what_fits_one_card_takes_one_card_and_a_lot_of_two_leaves_one_idle() -> None:
    verdict = judged(80 * GIB, lot_size=2)
    assert (verdict.arrangement, verdict.cards_needed) == (Arrangement.SINGLE, 1)
    assert verdict.lots is not None
    assert (verdict.lots.lots, verdict.lots.idle_cards) == (1, 1)


def test_no_number_of_whole_copies_serves_what_not_even_one_sequence_fits() -> None:
    verdict = judged(NEED_UPPER - 1, Shape(128, 4, 8))
    assert verdict.max_concurrency == 0
    assert (verdict.arrangement, verdict.cards_needed, verdict.lots) == (None, None, None)


@settings(max_examples=60)
@given(st.integers(1, 4000), st.integers(1, 200), st.integers(1, 200), st.floats(1.0, 100.0))
def test_copies_cover_every_sequence_and_one_copy_fewer_would_not(
    context: int, concurrency: int, lot_size: int, capacity_gib: float
) -> None:
    card = make_card(capacity_gib=capacity_gib)
    verdict = judge(Predictor(make_profile()), card, Shape(context, 4, concurrency), lot_size)
    if verdict.cards_needed is None:
        assert verdict.max_concurrency == 0
        return
    assert verdict.max_concurrency is not None
    assert verdict.cards_needed * verdict.max_concurrency >= concurrency
    assert (verdict.cards_needed - 1) * verdict.max_concurrency < concurrency
    assert verdict.lots is not None
    assert verdict.lots.cards >= verdict.cards_needed


@settings(max_examples=60)
@given(
    st.integers(0, 10**9),
    st.integers(0, 10**9),
    st.integers(1, 4000),
    st.integers(1, 100),
    st.integers(0, 4000),
    st.integers(0, 100),
)
def test_asking_for_more_never_shows_a_smaller_need_whichever_phase_binds(
    prefill_miss: int, decode_miss: int, context: int, concurrency: int, longer: int, more: int
) -> None:
    model = make_memory_model()
    phases = tuple(
        msgspec.structs.replace(phase, worst_miss_bytes=miss)
        for phase, miss in zip(model.phases, (prefill_miss, decode_miss), strict=True)
    )
    profile = make_profile(memory_model=msgspec.structs.replace(model, phases=phases))
    small = judged(10 * GIB, Shape(context, 4, concurrency), profile=profile)
    large = judged(10 * GIB, Shape(context + longer, 4, concurrency + more), profile=profile)
    assert large.worst.need_bytes >= small.worst.need_bytes
    assert large.need_upper_bytes >= small.need_upper_bytes
    assert small.verdict is Verdict.FITS or large.verdict is not Verdict.FITS
    never = 10**9
    assert (large.cards_needed or never) >= (small.cards_needed or never)


def test_a_profile_without_a_model_is_judged_by_its_measured_cells_alone() -> None:
    profile = make_profile(cells=tuple(make_cell(128, n) for n in (1, 2, 4)), memory_model=None)
    verdict = judged(80 * GIB, Shape(128, 4, 2), profile=profile)
    assert verdict.verdict is Verdict.FITS
    # Four were measured and fit; eight may fit too, but nobody saw it.
    assert verdict.max_concurrency == 4
    assert (verdict.max_context_tokens, verdict.max_context_is_position_limit) == (128, False)


def test_the_evidence_of_a_verdict_is_the_weakest_of_its_phases() -> None:
    assert judged(80 * GIB).evidence is Evidence.SCALED  # carried from a CPU
    device = DeviceInfo(kind="cuda", name="X1", total_bytes=1, compute_capability="9.0", context_bytes=500 * 2**20)
    profile = make_profile(environment=Environment(device=device, versions={}))
    here = judge(Predictor(profile), make_card(), SMALL, 1, same_card=True)
    beyond = judge(Predictor(profile), make_card(), Shape(4000, 4, 1), 1, same_card=True)
    assert here.evidence is Evidence.MEASURED
    assert beyond.evidence is Evidence.SCALED
    assert here.worst.context_bytes == 500 * 2**20


def test_no_card_is_promised_that_lacks_the_dtype_the_model_computed_in() -> None:
    profile = make_profile()
    matmul = ComputeDtype(family="matmul", dtypes=("bfloat16",), calls=1)
    precision = msgspec.structs.replace(profile.precision, compute=(matmul,))
    profile = msgspec.structs.replace(profile, precision=precision)
    turing = make_card(capacity_gib=80.0, compute_capability="7.5", peak_tflops=Peaks(unsupported=("bf16",)))
    verdict = judge(Predictor(profile), turing, SMALL, 1)
    assert verdict.verdict is Verdict.TOO_CLOSE
    assert verdict.max_concurrency is verdict.max_context_tokens is verdict.cards_needed is verdict.lots is None
    assert "bfloat16" in verdict.remarks[0]
    assert verdict.reason == verdict.remarks[0]
    here = judge(Predictor(profile), turing, SMALL, 1, same_card=True)
    assert (here.verdict, here.reason) == (Verdict.FITS, None)  # what its kernels took instead was measured
    assert not any("promised" in remark for remark in here.remarks)
    full = judge(Predictor(profile), make_card(capacity_gib=0.1, peak_tflops=turing.peak_tflops), SMALL, 1)
    assert (full.verdict, full.reason) == (Verdict.DOES_NOT_FIT, None)  # which the bytes say


def test_what_ran_out_of_memory_on_this_very_card_does_not_fit_it_nor_does_anything_larger() -> None:
    limit = Cell(
        context_tokens=256,
        new_tokens=4,
        concurrency=2,
        outcome=OutOfMemory(phase=Phase.PREFILL, message="CUDA out of memory"),
    )
    profile = without_position_limit()
    profile = msgspec.structs.replace(profile, cells=(*profile.cells, limit))
    card = make_card(capacity_gib=80.0)

    def verdict(context: int, concurrency: int, same_card: bool) -> CardVerdict:
        return judge(Predictor(profile), card, Shape(context, 4, concurrency), 1, same_card)

    assert verdict(256, 2, True).verdict is Verdict.DOES_NOT_FIT
    assert verdict(512, 3, True).verdict is Verdict.DOES_NOT_FIT
    assert verdict(512, 3, True).remarks[-1] == "context 256 x 2 ran out of memory on this very card"
    assert not any("ran out" in remark for remark in verdict(512, 1, True).remarks)
    assert verdict(512, 3, True).reason == "context 256 x 2 ran out of memory on this very card"
    assert verdict(512, 1, True).reason is None
    assert verdict(512, 1, True).verdict is Verdict.FITS
    assert verdict(255, 2, True).max_context_tokens == 255
    assert verdict(256, 1, True).max_concurrency == 1
    assert verdict(256, 2, False).verdict is Verdict.FITS


@pytest.mark.parametrize(("below", "expected"), [(0, Verdict.DOES_NOT_FIT), (1, Verdict.FITS)])
def test_what_ran_into_a_ceiling_below_the_cards_own_memory_says_nothing_of_the_card(
    below: int, expected: Verdict
) -> None:
    profile = without_position_limit()
    limit_bytes = profile.environment.device.total_bytes - below
    outcome = OutOfMemory(phase=Phase.PREFILL, message="CUDA out of memory", limit_bytes=limit_bytes)
    limit = Cell(context_tokens=256, new_tokens=4, concurrency=2, outcome=outcome)
    profile = msgspec.structs.replace(profile, cells=(*profile.cells, limit))
    card = make_card(capacity_gib=80.0)
    assert judge(Predictor(profile), card, Shape(256, 4, 2), 1, same_card=True).verdict is expected


@pytest.mark.parametrize(("devices", "cards"), [(1, 3), (2, 2), (4, 1)])
def test_a_card_of_several_devices_holds_a_copy_on_each(devices: int, cards: int) -> None:
    one = judged(2 * GIB, Shape(512, 4, 1)).max_concurrency
    assert one is not None
    card = make_card(capacity_gib=2.0, devices_per_card=devices)
    verdict = judge(Predictor(make_profile()), card, Shape(512, 4, one * 2 + 1), 1)
    assert (verdict.cards_needed, verdict.arrangement) == (cards, Arrangement.REPLICAS)
