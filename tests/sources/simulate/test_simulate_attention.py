"""What each attention kernel allocates, by the arithmetic of its sizes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.nn import functional

from gpufit.errors import UsageError
from gpufit.memory.replay import Window, replay
from gpufit.sources.measure.dispatch import DispatchRecorder
from gpufit.sources.measure.kernels import CPU, EFFICIENT, SDPA, kernel_named
from gpufit.sources.simulate import attention

pytestmark = pytest.mark.model

SEQUENCES, HEADS, KEY_HEADS, TOKENS, WIDTH = 2, 32, 8, 2048, 128
RESULT = SEQUENCES * HEADS * TOKENS * WIDTH * 2
"""33,554,432 bytes in a 16-bit dtype."""
LOG_SUMS = SEQUENCES * HEADS * TOKENS * 4
"""A float32 a query: 524,288 bytes."""
SCORES = SEQUENCES * HEADS * TOKENS * TOKENS
KEYS = SEQUENCES * KEY_HEADS * TOKENS * WIDTH * 2


def highest(kernel: str, call: Callable[..., torch.Tensor], dtype: torch.dtype = torch.bfloat16) -> int:
    """The most that a call allocates beside its query, keys and values."""
    with FakeTensorMode(), torch.no_grad():
        query = torch.empty(SEQUENCES, HEADS, TOKENS, WIDTH, dtype=dtype)
        key, value = (torch.empty(SEQUENCES, KEY_HEADS, TOKENS, WIDTH, dtype=dtype) for _ in range(2))
        mask = torch.empty(SEQUENCES, 1, TOKENS, TOKENS, dtype=torch.bool)
        recorder = DispatchRecorder()
        with attention.running(kernel):
            recorder.start()
            kept = call(query, key, value, mask)
            recording = recorder.stop()
        assert kept.shape == (SEQUENCES, HEADS, TOKENS, WIDTH)
    (peak,) = replay([], recording.events, [], [Window(0, len(recording.events))])
    return peak.live_bytes


def causal(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    return functional.scaled_dot_product_attention(query, key, value, is_causal=True, enable_gqa=True)


def masked(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    repeated = [one.repeat_interleave(HEADS // KEY_HEADS, 1) for one in (key, value)]
    return functional.scaled_dot_product_attention(query, *repeated, attn_mask=mask)


def test_without_a_mask_the_flash_kernel_keeps_its_result_and_a_number_a_query() -> None:
    small = highest(SDPA, causal) - RESULT - LOG_SUMS
    assert 0 <= small < 100, "the state of its random numbers"


def test_with_a_mask_the_efficient_kernel_takes_the_mask_as_numbers() -> None:
    repeated = 2 * KEYS * HEADS // KEY_HEADS
    numbers = SEQUENCES * TOKENS * TOKENS * 2
    small = highest(SDPA, masked) - repeated - numbers - RESULT
    assert 0 <= small < 100


def test_where_flash_cannot_and_heads_are_grouped_all_scores_are_kept() -> None:
    assert highest(SDPA, causal, torch.float32) > SCORES * 4
    assert highest(EFFICIENT, causal, torch.float32) < SCORES


def test_the_cpus_own_is_left_alone() -> None:
    assert highest(CPU, causal) == RESULT + LOG_SUMS


@pytest.mark.parametrize(
    ("written", "meant"), [("flash", "flash_attention_2"), ("fa2", "flash_attention_2"), ("eager",) * 2]
)
def test_a_kernel_has_other_names(written: str, meant: str) -> None:
    assert kernel_named(written) == meant


def test_a_name_that_is_none_is_refused() -> None:
    with pytest.raises(UsageError, match="--attn-implementation flex: not a kernel that is simulated; use sdpa, "):
        kernel_named("flex")
