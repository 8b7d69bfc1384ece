"""A profile divided over cards or held in fewer bytes, by arithmetic over the profile of tests/builders."""

from __future__ import annotations

import msgspec
import pytest
from builders import BUFFERS, KV_PER_TOKEN, WEIGHTS, make_layout, make_profile
from hypothesis import given
from hypothesis import strategies as st

from gpufit.memory.adapt import (
    Change,
    Changed,
    in_bits,
    on_ranks,
    on_ranks_of_stages,
    on_stages,
    with_kv_bytes,
    with_weight_bits,
)
from gpufit.memory.predict import PhasePrediction, Predictor
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.layout import Shard
from gpufit.profile.peaks import Phase
from gpufit.profile.precision import DtypeShare

SHAPE = Shape(256, 4, 2)


def prefill(change: Change, shape: Shape = SHAPE) -> tuple[PhasePrediction, PhasePrediction]:
    """(as it was, changed)"""
    before = Predictor(make_profile())
    found = [
        next(one for one in predictor.at(shape) if one.phase is Phase.PREFILL)
        for predictor in (before, Changed(before, change))
    ]
    return found[0], found[1]


def test_a_rank_holds_its_weights_and_its_heads_and_at_most_all_scratch() -> None:
    before, rank = prefill(on_ranks(Shard(ranks=2, weights_bytes=130_000_000, kv_share=0.5)))
    cache = KV_PER_TOKEN * 512
    assert rank.parts.weights_bytes == 130_000_000
    assert rank.parts.buffers_bytes == BUFFERS
    assert rank.parts.kv_cache_bytes == cache // 2
    assert rank.parts.temporaries_bytes == before.parts.temporaries_bytes
    spared = WEIGHTS - 130_000_000 + cache // 2
    assert rank.allocated_bytes == before.allocated_bytes - spared
    assert rank.upper_bytes == before.upper_bytes - spared
    # Temporaries 1,000,000 + 2,000 a token, activations 3,000 a token, logits 100,000 a sequence: half of them may go.
    scratch = 1_000_000 + 5_000 * 512 + 2 * 100_000
    assert before.lower_bytes - spared - rank.lower_bytes == scratch // 2


def test_a_stage_is_the_fullest() -> None:
    layout = make_layout(layers=5, largest_layer_bytes=40_000_000, first_bytes=30_000_000, last_bytes=26_000_000)
    _, stage = prefill(on_stages(layout, 2, mixed=False))
    # Three of five layers, and the larger of what stands before and behind them.
    assert stage.parts.weights_bytes == 3 * 40_000_000 + 30_000_000
    assert stage.parts.kv_cache_bytes == KV_PER_TOKEN * 512 * 3 // 5
    _, mixed = prefill(on_stages(layout, 2, mixed=True))
    assert mixed.upper_bytes - stage.upper_bytes == KV_PER_TOKEN * 512 // 5, "a layer more of what differs"


def test_a_cache_in_fp8_is_half_of_one_in_16_bits() -> None:
    change = with_kv_bytes(make_profile(), 1)
    assert change is not None
    before, smaller = prefill(change)
    assert smaller.parts.kv_cache_bytes * 2 == before.parts.kv_cache_bytes
    assert before.upper_bytes - smaller.upper_bytes == KV_PER_TOKEN * 512 // 2


def test_a_cache_that_is_quantised_already_is_not_promised_to_shrink() -> None:
    profile = make_profile()
    held = (DtypeShare(dtype="float8_e4m3fn", size_bytes=1_000, tensors=2),)
    precision = msgspec.structs.replace(profile.precision, kv=held)
    assert with_kv_bytes(msgspec.structs.replace(profile, precision=precision), 1) is None
    assert (
        with_kv_bytes(msgspec.structs.replace(profile, precision=msgspec.structs.replace(precision, kv=())), 1) is None
    )


def test_weights_in_four_bits_are_those_of_linear_layers() -> None:
    # 100,000,000 of the 128,000,000 elements are linear, in two bytes each; the largest matrix has 4,000,000.
    layout = make_layout(linear_bytes=200_000_000, linear_elements=100_000_000, largest_linear_elements=4_000_000)
    profile = make_profile()
    change = with_weight_bits(profile, layout, 4)
    assert change is not None
    before, smaller = prefill(change)
    assert smaller.parts.weights_bytes == WEIGHTS - 200_000_000 + 50_000_000
    assert before.upper_bytes - smaller.upper_bytes == 150_000_000 - 2 * 4_000_000, "one matrix is dequantised whole"
    assert with_weight_bits(profile, make_layout(linear_bytes=0, linear_elements=0), 4) is None, "quantised already"
    assert with_weight_bits(profile, layout, 16) is None


def test_a_dequantised_matrix_is_as_uncertain_as_the_temporaries_it_joins() -> None:
    """Of rules that no run has tested: 30 % of scratch, and 2 % of all that grows, on top of the 4,000,000 x 2 B."""
    profile = make_profile()
    assert profile.memory_model is not None
    untested = msgspec.structs.replace(
        profile, memory_model=msgspec.structs.replace(profile.memory_model, untested=True)
    )
    layout = make_layout(linear_bytes=200_000_000, linear_elements=100_000_000, largest_linear_elements=4_000_000)
    change = with_weight_bits(untested, layout, 4)
    assert change is not None
    assert change.scratch_upper_bytes == pytest.approx(8_000_000 * 1.32, abs=1)


def test_what_was_measured_is_scaled_and_loading_makes_no_scratch() -> None:
    predictor = Predictor(make_profile())
    change = Change(weights_bytes=10_000_000, scratch_upper_bytes=5_000_000)
    (load, *phases), (before, *_) = Changed(predictor, change).at(SHAPE), predictor.at(SHAPE)
    assert {one.evidence for one in (load, *phases)} == {Evidence.SCALED}
    assert load.upper_bytes == before.upper_bytes - WEIGHTS + 10_000_000


@given(
    ranks=st.sampled_from([2, 4, 8]),
    share=st.floats(0, 1),
    weights=st.integers(0, WEIGHTS),
    context=st.integers(1, 4096),
    concurrency=st.integers(1, 64),
)
def test_a_rank_never_needs_more_and_its_bounds_stay_in_order(
    ranks: int, share: float, weights: int, context: int, concurrency: int
) -> None:
    shape = Shape(context, 4, concurrency)
    before, rank = prefill(on_ranks(Shard(ranks=ranks, weights_bytes=weights, kv_share=share)), shape)
    assert 0 <= rank.lower_bytes <= rank.allocated_bytes <= rank.upper_bytes <= before.upper_bytes
    for moment in rank.moments:
        assert moment.lower_bytes <= moment.upper_bytes


def test_a_rank_of_a_stage_holds_its_share_of_the_stage() -> None:
    # Two stages of five layers of 20 MB with 28 MB before or behind them, each over two ranks, half the cache and half
    # of that.
    shard = make_layout().shards[0]
    change = on_ranks_of_stages(shard, 2, mixed=False)
    assert change is not None
    before, rank = prefill(change)
    assert rank.parts.weights_bytes == (5 * 20_000_000 + 28_000_000) // 2
    assert rank.parts.kv_cache_bytes == before.parts.kv_cache_bytes // 4
    _, stage = prefill(on_stages(make_layout(), 2, mixed=False))
    assert rank.lower_bytes <= rank.allocated_bytes <= rank.upper_bytes < stage.upper_bytes
    assert on_ranks_of_stages(Shard(ranks=2, weights_bytes=1), 2, mixed=False) is None, "of an older profile"


def test_a_layout_in_eight_bits_has_linear_layers_of_half_the_size() -> None:
    # All of a layer is linear: 10,000,000 elements in 20 MB become 10 MB; embeddings and head stay.
    smaller = in_bits(make_layout(), 8)
    assert (smaller.largest_layer_bytes, smaller.first_bytes, smaller.linear_bytes) == (
        *(10_000_000, 28_000_000),
        100_000_000,
    )
    two = smaller.shards[0]
    assert two.weights_bytes == WEIGHTS // 2 - 50_000_000
    assert two.layout is not None
    assert two.layout.largest_layer_bytes == 5_000_000
    old = make_layout(largest_layer_rest_bytes=None, largest_layer_linear_elements=None)
    assert in_bits(old, 8).largest_layer_bytes == 20_000_000, "an older profile does not tell: nothing is spared"
    assert in_bits(make_layout(), 32).linear_bytes == 200_000_000, "never more than before"
