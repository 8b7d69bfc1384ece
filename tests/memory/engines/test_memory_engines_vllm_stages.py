"""A stage of a pipeline in vLLM, by arithmetic over public models, and against how vLLM spreads layers."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from public_models import CONFIGS

from gpufit.architecture.record import Architecture
from gpufit.architecture.registry import architecture_of
from gpufit.errors import UsageError
from gpufit.memory.engines.vllm import Device, Ranks, Settings, plain, rules_of, serve_flags, start
from gpufit.memory.engines.vllm.stages import fullest_stage
from gpufit.memory.engines.vllm.weights import weights_per_rank
from gpufit.units import GIB

RULES = rules_of("0.29.0")
LLAMA = architecture_of(CONFIGS["meta-llama/Meta-Llama-3.1-405B"], "405B")
DEEPSEEK = architecture_of(CONFIGS["deepseek-ai/DeepSeek-V3"], "V3")
H100 = Device("NVIDIA H100", int(79.1 * GIB), 9.0, fast_links=True, in_machine=8)
WIDTH, INNER, VOCABULARY, LAYERS = 16384, 53248, 128256, 126
LAYER = 2 * WIDTH * WIDTH + 2 * WIDTH * 1024 + 3 * WIDTH * INNER
"""Elements of a layer's matrices: queries and output, keys and values of 8 heads of 128, the MLP."""


def partitions(layers: int, stages: int) -> list[int]:
    """Layers of each stage as get_pp_indices in vllm/distributed/utils.py has them: the rest goes to the last but one
    stage and those before it."""
    found = [layers // stages] * stages
    for place in range(2, layers % stages + 2):
        found[-place] += 1
    return found


def elements(model: Architecture) -> int:
    return sum(one.elements * one.copies for one in model.weights)


def test_half_of_405b_over_eight_ranks_is_63_layers_and_the_head() -> None:
    stage = fullest_stage(LLAMA, 2, RULES)
    assert (stage.layers, stage.caches[0].layers) == (63, 63)
    # Norms, two a layer and the last one, are whole on each rank; of the rest each has an eighth.
    expected = 2 * ((63 * LAYER + VOCABULARY * WIDTH) // 8 + (2 * 63 + 1) * WIDTH)
    tables = 131072 * 128 * 2
    weights = weights_per_rank(stage, Ranks(8, stages=2), plain("BF16")).amount
    assert weights.point_bytes == pytest.approx(expected + tables, rel=0.001)


def test_a_start_over_two_stages_of_eight_has_a_sixteenth_of_the_cache_and_buffers_between_them() -> None:
    flags = {"max_model_len": 32768, "max_num_seqs": 16, "max_num_batched_tokens": 8192}
    one = start(LLAMA, plain("BF16"), H100, Settings(ranks=Ranks(8), **flags), RULES)
    staged = start(LLAMA, plain("BF16"), H100, Settings(ranks=Ranks(8, stages=2), **flags), RULES)
    # 126 layers x one KV head of 128, keys and values, two bytes.
    assert one.sequence_bytes == 32768 * LAYERS * 2 * 128 * 2
    assert staged.sequence_bytes * 2 == one.sequence_bytes
    # Hidden states and residual of 8,192 tokens.
    kept = 2 * 8192 * WIDTH * 2
    activation = staged.part("activation").amount.point_bytes
    assert activation == one.part("activation").amount.point_bytes + kept
    assert staged.part("non_torch").amount.upper_bytes > one.part("non_torch").amount.upper_bytes
    assert staged.holds_for.endswith("16 x NVIDIA H100")
    command = " ".join(serve_flags(staged))
    assert "--tensor-parallel-size 8 --pipeline-parallel-size 2 --distributed-executor-backend ray" in command
    assert "--pipeline" not in " ".join(serve_flags(one))
    assert "ray" not in " ".join(serve_flags(one))


def test_stages_inside_a_machine_need_no_ray() -> None:
    flags = Settings(ranks=Ranks(2, stages=4), max_model_len=1024)
    assert "ray" not in serve_flags(start(LLAMA, plain("BF16"), H100, flags, RULES))


@given(st.sampled_from([LLAMA, DEEPSEEK]), st.integers(2, 16))
def test_no_stage_of_vllm_holds_more_than_the_fullest(model: Architecture, stages: int) -> None:
    stage = fullest_stage(model, stages, RULES)
    spread = partitions(model.layers, stages)
    assert sum(spread) == model.layers
    assert stage.layers == max(spread)
    # All stages together hold the whole model, which none holds more than its even share of.
    assert stages * elements(stage) >= elements(model) - elements(model) // 50
    assert math.ceil(model.layers / stages) == stage.layers


def test_the_dense_layers_of_deepseek_are_on_no_fullest_stage() -> None:
    # Its first three layers have no experts, and are far smaller.
    stage = fullest_stage(DEEPSEEK, 4, RULES)
    held = {layer for one in stage.weights for layer in one.layers}
    assert not held & {0, 1, 2}
    assert stage.layers == 16 == math.ceil(61 / 4)


@pytest.mark.parametrize(
    ("model", "stages", "version", "why"),
    [
        ("google/gemma-3-27b-it", 2, "0.29.0", "do not all cache alike"),
        ("openai/gpt-oss-20b", 2, "0.29.0", "do not all cache alike"),
        ("meta-llama/Meta-Llama-3.1-70B", 2, "0.7.3", "the V1 engine runs them from 0.8 on"),
        ("meta-llama/Meta-Llama-3.1-70B", 81, "0.29.0", "80 layers cannot be spread over 81 stages"),
    ],
)
def test_what_no_rule_covers_is_refused(model: str, stages: int, version: str, why: str) -> None:
    architecture = architecture_of(CONFIGS[model], model)
    with pytest.raises(UsageError, match=why):
        fullest_stage(architecture, stages, rules_of(version))
    assert fullest_stage(architecture, 1, rules_of(version)) is architecture
