"""KV bytes as llama.cpp, SGLang and others printed them: exact to the digits they gave."""

from __future__ import annotations

import pytest
from public_models import CONFIGS

from benchmarks import accuracy_caches
from benchmarks.accuracy_record import Comparison
from gpufit.architecture.record import Architecture
from gpufit.architecture.registry import architecture_of
from gpufit.errors import UsageError
from gpufit.memory.engines import llamacpp


def shapes(name: str) -> Architecture:
    return architecture_of(CONFIGS[name], name)


@pytest.mark.parametrize("one", list(accuracy_caches.comparisons()), ids=lambda one: one.row)
def test_the_bytes_are_those_printed(one: Comparison) -> None:
    assert one.inside


def test_cells_of_a_sliding_layer_are_a_window_and_a_batch_padded() -> None:
    # 128 + 512 = 640 -> 768; never more than the context; a window a sequence.
    assert llamacpp.sliding_cells(128, 131072) == 768
    assert llamacpp.sliding_cells(1024, 512) == 512
    assert llamacpp.sliding_cells(128, 262144, sequences=2, micro_batch=4096) == 4352


def test_eight_bit_caches_hold_a_scale_for_32_values() -> None:
    architecture = shapes("meta-llama/Meta-Llama-3.1-8B")
    assert llamacpp.token_bytes(architecture, "f16") == 131072
    assert llamacpp.token_bytes(architecture, "q8_0") == 65536 * 34 // 32


def test_an_unknown_cache_type_is_refused() -> None:
    with pytest.raises(UsageError, match="q3_9"):
        llamacpp.token_bytes(shapes("meta-llama/Meta-Llama-3.1-8B"), "q3_9")
