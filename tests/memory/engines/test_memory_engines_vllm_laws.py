"""Laws that every start of vLLM obeys, whatever the model, the card and the flags."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpufit.architecture.record import Architecture, AttentionCache
from gpufit.architecture.registry import architecture_of
from gpufit.memory.engines.vllm import Device, Ranks, Settings, VllmStart, plain, rules_of, start
from gpufit.memory.engines.vllm.layers import kinds_of
from gpufit.memory.engines.vllm.pool import pool_of
from gpufit.memory.engines.vllm.weights import tensors_per_rank, weights_per_rank
from gpufit.units import GIB

VERSIONS = st.sampled_from(["0.6.6", "0.8.5", "0.9.2", "0.11.0", "0.16.0", "0.19.2", "0.23.0", "0.29.0"])
PRECISION = plain("BF16")


@st.composite
def models(draw: st.DrawFn) -> Architecture:
    """Llamas whose heads and widths 8 ranks can share."""
    kv_heads = draw(st.sampled_from([1, 2, 4, 8]))
    return architecture_of(
        {
            "model_type": "llama",
            "hidden_size": 256 * draw(st.integers(1, 16)),
            "intermediate_size": 64 * draw(st.integers(1, 200)),
            "num_hidden_layers": draw(st.integers(1, 12)),
            "num_attention_heads": 8 * draw(st.integers(1, 4)),
            "num_key_value_heads": kv_heads,
            "head_dim": draw(st.sampled_from([32, 64, 128])),
            "vocab_size": draw(st.integers(100, 150000)),
            "max_position_embeddings": 131072,
            "tie_word_embeddings": draw(st.booleans()),
            "torch_dtype": "bfloat16",
        },
        "drawn",
    )


@st.composite
def hybrids(draw: st.DrawFn) -> Architecture:
    """The same with some layers that slide."""
    model = draw(models())
    cache = model.caches[0]
    assert isinstance(cache, AttentionCache)
    sliding = replace(cache, layers=draw(st.integers(1, 30)), window=draw(st.sampled_from([128, 1024, 4096])))
    return replace(model, caches=(cache, sliding))


def begun(
    model: Architecture, version: str, total_gib: float, utilization: float, length: int = 4096, **more: str
) -> VllmStart:
    card = Device("a card", int(total_gib * GIB), 9.0)
    settings = Settings(max_model_len=length, utilization=utilization, max_num_seqs=64, **more)  # type: ignore[arg-type]
    return start(model, PRECISION, card, settings, rules_of(version))


@given(models(), st.sampled_from([2, 4, 8]))
def test_ranks_together_never_hold_less_than_one_whole_and_one_never_more(model: Architecture, tp: int) -> None:
    # Of the tensors themselves: in blocks of the allocator two halves can take less than a whole and its remainder.
    whole = sum(size for *_, size in tensors_per_rank(model, Ranks(1), PRECISION))
    each = sum(size for *_, size in tensors_per_rank(model, Ranks(tp), PRECISION))
    assert each <= whole <= each * tp


@given(models(), st.sampled_from([1, 2, 4]))
def test_twice_the_ranks_never_hold_more_each(model: Architecture, tp: int) -> None:
    fewer = weights_per_rank(model, Ranks(tp), PRECISION).amount.point_bytes
    assert weights_per_rank(model, Ranks(2 * tp), PRECISION).amount.point_bytes <= fewer


@given(hybrids(), VERSIONS, st.floats(8, 192), st.floats(0.3, 0.9), st.floats(0.01, 0.1))
def test_a_larger_share_never_holds_fewer_tokens(
    model: Architecture, version: str, total: float, share: float, more: float
) -> None:
    less = begun(model, version, total, share)
    assert begun(model, version, total, share + more).tokens.point >= less.tokens.point


@given(hybrids(), VERSIONS, st.floats(8, 60), st.floats(1, 9))
def test_a_larger_card_of_the_same_class_never_holds_fewer_tokens(
    model: Architecture, version: str, total: float, more: float
) -> None:
    assert begun(model, version, total + more, 0.9).tokens.point >= begun(model, version, total, 0.9).tokens.point


@given(hybrids(), VERSIONS, st.integers(1, 60000), st.integers(0, 60000))
def test_a_longer_limit_never_serves_more_sequences(
    model: Architecture, version: str, length: int, longer: int
) -> None:
    short = begun(model, version, 80, 0.9, length)
    assert begun(model, version, 80, 0.9, length + longer).concurrency.point <= short.concurrency.point


@given(models(), VERSIONS, st.integers(1, 10**12))
def test_eight_bit_caches_hold_twice_the_tokens_of_plain_attention(
    model: Architecture, version: str, pool_bytes: int
) -> None:
    rules = rules_of(version)
    full = pool_of(model, Ranks(), rules)
    half = pool_of(model, Ranks(), rules, kv_cache_dtype="fp8")
    assert 2 * half.block_bytes == full.block_bytes
    assert half.blocks(pool_bytes) in (2 * full.blocks(pool_bytes), 2 * full.blocks(pool_bytes) + 1)


@given(hybrids(), VERSIONS, st.floats(4, 192))
def test_bounds_are_in_order_and_the_outcome_follows_them(model: Architecture, version: str, total: float) -> None:
    one = begun(model, version, total, 0.9)
    assert one.pool_bytes.lower_bytes <= one.pool_bytes.point_bytes <= one.pool_bytes.upper_bytes
    assert one.tokens.lower <= one.tokens.point <= one.tokens.upper
    starts_at_worst = one.pool_bytes.lower_bytes >= one.needed_bytes
    assert (one.outcome.value == "fits") == starts_at_worst
    assert (one.outcome.value == "does_not_fit") == (one.pool_bytes.upper_bytes < one.needed_bytes)


@given(hybrids(), VERSIONS, st.floats(16, 192))
def test_the_least_share_that_is_named_does_start(model: Architecture, version: str, total: float) -> None:
    least = begun(model, version, total, 0.9).least_utilization
    if least is not None:
        assert begun(model, version, total, least).outcome.value == "fits"


@given(hybrids(), st.sampled_from([1, 2, 4, 8]))
def test_kv_heads_are_never_divided_below_one(model: Architecture, tp: int) -> None:
    for cache, kind in zip(model.caches, kinds_of(model, Ranks(tp)), strict=False):
        assert isinstance(cache, AttentionCache)
        assert kind.token_bytes >= 2 * (cache.key_dim + cache.value_dim)
