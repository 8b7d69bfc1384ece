"""vLLM's KV pool: what a layer writes, how layers share blocks, and what the log prints of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpufit.architecture.record import Architecture, AttentionCache, LatentCache, StateCache
from gpufit.architecture.registry import architecture_of
from gpufit.memory.engines.vllm import Ranks, rules_of
from gpufit.memory.engines.vllm.layers import LayerKind, aligned_block_tokens, kinds_of, token_bytes
from gpufit.memory.engines.vllm.pool import pool_of
from gpufit.memory.engines.vllm.settings import Batch
from gpufit.units import GIB


def llama(**changed: object) -> Architecture:
    """A Llama of 32 layers with 8 KV heads of 128."""
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
    }
    return architecture_of({**config, **changed}, "llama")


def test_kv_heads_are_divided_down_to_one_and_a_latent_is_not() -> None:
    # Qwen3-Coder-30B over 8 ranks: one head of four, 24,576 B a token (vllm-project/vllm#22177 prints 24,569).
    coder = llama(num_key_value_heads=4, num_hidden_layers=48, head_dim=128)
    assert token_bytes(kinds_of(coder, Ranks(8))) == 48 * 1 * 256 * 2
    # Kimi-K2: 61 layers x 576 x 2 B = 70,272 B whole on each of 8 ranks.
    latent = replace(llama(), caches=(LatentCache(61, 512, 64),))
    assert token_bytes(kinds_of(latent, Ranks(8))) == 70272


def test_attention_blocks_grow_until_they_hold_a_state() -> None:
    # Printed for Qwen3.6-35B-A3B: 1056 tokens; 2 heads x 256 x 2 x 2 B a token against a state of 2,146,304 B.
    state = 3 * 8192 * 2 + 32 * 128 * 128 * 4
    assert aligned_block_tokens([LayerKind(10, 2048), LayerKind(30, 0, state_bytes=state)]) == 1056


def test_hybrid_layers_share_a_pool_in_groups_as_printed() -> None:
    # Qwen3.6-35B-A3B on 47.55 GiB: 623,040 tokens, 18.44 sequences of 131,072 (0.19.2); 10 layers of attention and
    # 30 of state.
    attention = AttentionCache(10, 2, 256, 256)
    state = StateCache(30, convolution_elements=4 * 8192, recurrent_elements=32 * 128 * 128)
    pool = pool_of(replace(llama(), caches=(attention, state)), Ranks(), rules_of("0.19.2"))
    size = int(47.55 * GIB)
    assert len(pool.groups) == 4
    assert pool.printed_tokens(size, 131072, 8192) == 623040
    assert pool.concurrency(size, 131072, 8192) == pytest.approx(18.44, abs=0.005)


def test_each_running_sequence_needs_a_block_of_state() -> None:
    # 614 blocks were refused for 1,024 sequences (kaito-project/kaito#2319).
    state = StateCache(32, convolution_elements=4 * 8192, recurrent_elements=32 * 128 * 128)
    pool = pool_of(replace(llama(), caches=(llama().caches[0], state)), Ranks(), rules_of())
    batch = Batch(1024, 8192, chunked=True, assumed=frozenset({"sequences", "tokens"}))
    assert pool.blocks(pool.least_bytes(4096, batch, graphs=True)) == 1024
    assert pool.blocks(pool.least_bytes(4096, replace(batch, sequences=4), graphs=True)) < 1024
    assert pool.blocks(pool.least_bytes(4096, batch, graphs=False)) == pool.blocks_per_sequence(4096, 8192)


@pytest.mark.parametrize(("length", "tokens"), [(32768, 78433), (65536, 116025), (131072, 152592)])
def test_sliding_layers_hold_a_window_and_the_batches_in_flight_as_printed(length: int, tokens: int) -> None:
    # gemma-4-26B-A4B on 0.29.0 with 4.25 GiB and 2,496 tokens a step: 5 layers of 2 heads x 512 see everything, 25 of
    # 8 heads x 256 see 1,024 tokens.
    full, sliding = AttentionCache(5, 2, 512, 512), AttentionCache(25, 8, 256, 256, window=1024)
    pool = pool_of(replace(llama(), caches=(full, sliding)), Ranks(), rules_of("0.29.0"))
    assert len(pool.groups) == 6
    assert pool.printed_tokens(int(4.25 * GIB), length, 2496) == tokens


def test_before_groups_a_sliding_layer_took_blocks_for_everything() -> None:
    mixed = replace(llama(), caches=(AttentionCache(32, 8, 128, 128), AttentionCache(32, 8, 128, 128, window=1024)))
    assert len(pool_of(mixed, Ranks(), rules_of("0.8.5")).groups) == 1
    assert len(pool_of(mixed, Ranks(), rules_of("0.11.0")).groups) == 2


def test_the_hybrid_manager_can_be_switched_off_and_once_left_chunks_out() -> None:
    caches = (AttentionCache(12, 8, 128, 128), AttentionCache(36, 8, 128, 128, window=8192))
    sliding, chunked = replace(llama(), caches=caches), replace(llama(), model_type="llama4", caches=caches)
    assert len(pool_of(sliding, Ranks(), rules_of("0.11.0"), one_pool=True).groups) == 1
    assert len(pool_of(sliding, Ranks(), rules_of("0.11.0")).groups) == 4
    assert len(pool_of(chunked, Ranks(), rules_of("0.11.0")).groups) == 1
    assert len(pool_of(chunked, Ranks(), rules_of()).groups) == 4


def test_a_sparse_latent_was_kept_in_fp8_by_default_once() -> None:
    # 61 layers: 656 B of latent in FP8 or 576 x 2 B, and an indexer's key of 128 B with a scale of 4 B.
    sparse = replace(llama(), caches=(LatentCache(61, 512, 64, indexer_dim=128),))
    assert pool_of(sparse, Ranks(), rules_of("0.11.0")).block_bytes == 16 * 61 * (656 + 132)
    assert pool_of(sparse, Ranks(), rules_of("0.13.0")).block_bytes == 16 * 61 * (1152 + 132)
    assert [pool_of(sparse, Ranks(), rules_of(one)).cache_dtype for one in ("0.11.0", "0.13.0")] == ["fp8", "auto"]
