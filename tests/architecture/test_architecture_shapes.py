"""Every family's tensors against those of the same model as transformers builds it, and against published counts."""

import math
import time

import pytest
from public_models import (
    CONFIGS,
    COUNTS,
    built_on_meta,
    by_shape,
    config_of,
    fewer_experts,
    tensors_of,
    tensors_of_model,
)
from releases import needs_release_read

from gpufit.architecture.record import Architecture, Component, Kind
from gpufit.architecture.registry import FAMILIES, architecture_of

REMOTE = {"chatglm", "deepseek", "nemotron-nas", "phi3_v", "qwen", "internlm2", "internvl_chat"}
"""Families whose code comes with the checkpoint: transformers has no class to compare with."""


def _distinct() -> list[str]:
    """One name for each distinct shape: several checkpoints share one."""
    found: dict[str, str] = {}
    for name, values in CONFIGS.items():
        left = {key: one for key, one in values.items() if key not in ("quantization_config", "torch_dtype")}
        found.setdefault(repr(sorted(left.items(), key=lambda item: item[0])), name)
    return [name for name in found.values() if CONFIGS[name].get("model_type") not in REMOTE]


@needs_release_read
@pytest.mark.parametrize("name", _distinct())
def test_a_public_model_has_the_tensors_that_transformers_makes(name: str) -> None:
    values = fewer_experts(CONFIGS[name])
    architecture = architecture_of(values, name)
    ours = tensors_of(architecture)
    theirs = tensors_of_model(built_on_meta(config_of(values), architecture.class_name))
    if architecture.model_type == "deepseek_v4":
        # DeepSeek's own names have no `model.`; only shapes can be compared.
        ours, theirs = by_shape(ours), by_shape(theirs)
    assert ours - theirs == {}
    assert theirs - ours == {}


@pytest.mark.parametrize("name", sorted(CONFIGS))
def test_every_public_config_is_told(name: str) -> None:
    architecture = architecture_of(CONFIGS[name], name)
    assert architecture.parameters > 0
    assert bool(architecture.caches) == architecture.generates
    names = [one.name for one in architecture.weights]
    per_layer = [(one.name, layer) for one in architecture.weights for layer in one.layers or (-1,)]
    assert len(set(per_layer)) == len(per_layer), "no tensor twice"
    assert all("{layer}" in one.name for one in architecture.weights if one.layers)
    assert all(("{expert}" in one.name) == (one.experts > 1) for one in architecture.weights)
    assert any(one.kind is Kind.EMBEDDING for one in architecture.weights), names


SAME_SHAPE = {
    # Each pair has one shape; their configs differ in positions or training alone.
    "Qwen/Qwen2.5-0.5B-Instruct": "Qwen/Qwen2-0.5B",
    "Qwen/Qwen2.5-1.5B-Instruct": "Qwen/Qwen2.5-1.5B",
    "Qwen/Qwen2.5-3B-Instruct": "Qwen/Qwen2.5-3B",
    "Qwen/Qwen2.5-72B-Instruct": "Qwen/Qwen2-72B-Instruct",
    "meta-llama/Llama-3.1-8B": "meta-llama/Meta-Llama-3.1-8B",
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "meta-llama/Llama-3.1-405B": "meta-llama/Meta-Llama-3.1-405B",
}


def _in_facts(name: str) -> bool:
    return SAME_SHAPE.get(name, name) in CONFIGS


@pytest.mark.parametrize("name", [name for name in COUNTS if _in_facts(name)])
def test_a_published_count_is_met_to_the_element(name: str) -> None:
    # The hub counts every stored tensor, and so Llama 2's rotary frequencies: 32 x 64, 40 x 64 and 80 x 64.
    assert architecture_of(CONFIGS[SAME_SHAPE.get(name, name)], name).stored_elements == COUNTS[name]


def test_rotary_frequencies_of_llama_2_are_no_parameters() -> None:
    architecture = architecture_of(CONFIGS["meta-llama/Llama-2-70b-hf"], "config.json")
    assert architecture.stored_elements - architecture.parameters == 80 * 64
    assert not any(one.name.endswith("inv_freq") for one in _llama_3().weights)


def _llama_3() -> Architecture:
    return architecture_of(CONFIGS["meta-llama/Meta-Llama-3.1-8B"], "config.json")


@pytest.mark.parametrize(
    ("name", "total"),
    [
        # https://huggingface.co/deepseek-ai/DeepSeek-V3/blob/main/README_WEIGHTS.md : 671 billion in the main model,
        # 14 billion in the layer for multi-token prediction: 11.5 of its own, and copies of embeddings and head of
        # 0.9 billion each, which are counted with the main model's there.
        ("deepseek-ai/DeepSeek-V3", 11_500_000_000),
    ],
)
def test_the_layer_for_multi_token_prediction_is_as_large_as_stated(name: str, total: int) -> None:
    architecture = architecture_of(CONFIGS[name], name)
    predictor = [one for one in architecture.weights if one.component is Component.PREDICTOR]
    copies = 2 * 129280 * 7168
    size = sum(one.elements * one.copies for one in predictor)
    assert size - copies == pytest.approx(total, rel=0.01)


@needs_release_read
@pytest.mark.parametrize(
    "name",
    [
        "deepseek-ai/DeepSeek-V3",
        "deepseek-ai/DeepSeek-V3.2",
        "zai-org/GLM-5",
        "Qwen/Qwen3-Next-80B-A3B",
        "Qwen/Qwen3.5-27B",
        "Qwen/Qwen3.5-35B-A3B",
    ],
)
def test_predictors_are_those_that_transformers_makes(name: str) -> None:
    import torch
    from transformers.modeling_layers import MtpModel

    values = fewer_experts(CONFIGS[name])
    architecture = architecture_of(values, name)
    config = config_of(values)
    main = built_on_meta(config, architecture.class_name)
    # transformers takes the kind of the predicting layers from keys that these configs do not have.
    text = config.get_text_config()
    text.num_mtp_layers = 1
    text.mtp_layer_types, text.mtp_mlp_layer_types = ["full_attention"], ["sparse"]
    with torch.device("meta"):
        predictor = MtpModel(main, 1).layers
    theirs = sum(one.numel() for one in (*predictor.parameters(), *predictor.buffers()))
    ours = sum(
        one.elements * one.copies
        for one in architecture.weights
        if one.component is Component.PREDICTOR and one.kind not in (Kind.EMBEDDING, Kind.HEAD)
    )
    assert ours == theirs


def test_a_model_of_many_experts_is_told_in_a_moment() -> None:
    values = CONFIGS["deepseek-ai/DeepSeek-V3"]
    architecture_of(values, "config.json")
    took = []
    for _ in range(9):
        begin = time.perf_counter()
        architecture_of(values, "config.json")
        took.append(time.perf_counter() - begin)
    assert min(took) < 0.005


def test_the_registry_names_modules_that_are_there() -> None:
    import importlib

    for family, module in FAMILIES.items():
        assert callable(importlib.import_module(f"gpufit.architecture.families.{module}").build), family


@pytest.mark.parametrize(
    ("name", "told"),
    [
        # Latent attention: a head's key has 128 elements without positions and 64 with them.
        ("deepseek-ai/DeepSeek-V3", ("BF16", 192, 163840, 64, 4096)),
        ("openai/gpt-oss-120b", ("BF16", 64, 131072, 64, 4096)),
        ("meta-llama/Llama-3.2-11B-Vision-Instruct", ("BF16", 128, 131072, 128, 8192)),
        ("microsoft/phi-2", ("F16", 80, 2048, 32, None)),
        # A quarter of a head's 256 dimensions.
        ("Qwen/Qwen3.5-27B", ("BF16", 256, 262144, 64, None)),
    ],
)
def test_widths_beside_the_shapes(name: str, told: tuple[object, ...]) -> None:
    it = architecture_of(CONFIGS[name], name)
    assert it.rotary is not None
    assert (it.dtype, it.head_dim, it.position_limit, it.rotary.dim, it.rotary.original_positions) == told


def test_the_widest_mlp_is_told() -> None:
    # Llama 4 Maverick: dense layers of 16,384 among layers of experts of 8,192; Scout has experts alone.
    assert architecture_of(CONFIGS["meta-llama/Llama-4-Maverick-17B-128E-Instruct"], "").intermediate == 16384
    assert architecture_of(CONFIGS["meta-llama/Llama-4-Scout-17B-16E-Instruct"], "").intermediate == 8192


def test_code_of_their_own_has_the_counts_of_the_same_models_elsewhere() -> None:
    def count(name: str) -> int:
        return architecture_of(CONFIGS[name], name).parameters

    # Qwen 1.5 changed names and not shapes.
    assert count("Qwen/Qwen-7B-Chat") == count("Qwen/Qwen1.5-7B-Chat")
    assert count("Qwen/Qwen-1_8B-preset") == count("Qwen/Qwen1.5-1.8B-Chat")
    # ChatGLM 2: 28 layers of (32 + 2 x 2) x 128 rows of queries, keys and values with biases, an output projection, a
    # gated MLP and two norms; two tables of 65,024 rows; a last norm.
    layer = 36 * 128 * 4097 + 4096 * 4096 + 3 * 13696 * 4096 + 2 * 4096
    assert count("THUDM/chatglm2-6b") == 28 * layer + 2 * 65024 * 4096 + 4096
    # GLM 4 9B is told twice, by its own code's config and by the defaults of transformers' class.
    glm = {"model_type": "glm", "hidden_size": 4096, "num_hidden_layers": 40, "num_attention_heads": 32}
    own = glm | {"intermediate_size": 13696, "vocab_size": 151552, "num_key_value_heads": 2, "head_dim": 128}
    assert count("THUDM/glm-4-9b-chat") == architecture_of(own, "config.json").parameters
    # DeepSeek MoE 16B: 28 layers of four square projections and two norms; one dense MLP, 27 layers of a router, 64
    # experts and two shared ones.
    expert = 3 * 1408 * 2048
    inside = 28 * (4 * 2048 * 2048 + 2 * 2048) + 3 * 10944 * 2048 + 27 * (64 * 2048 + 66 * expert)
    assert count("deepseek-ai/deepseek-moe-16b") == inside + 2 * 102400 * 2048 + 2048


def test_each_block_of_a_searched_architecture_counts() -> None:
    name = "nvidia/Llama-3_3-Nemotron-Super-49B-v1"
    total = 2 * 128256 * 8192 + 8192
    for block in CONFIGS[name]["block_configs"]:
        if not block["attention"].get("no_op") and not block["attention"].get("replace_with_linear"):
            kv = 64 // block["attention"]["n_heads_in_group"] * 128
            total += 2 * 8192 * 8192 + 2 * kv * 8192 + 8192
        if not block["ffn"].get("no_op"):
            # Two thirds of the multiple of the hidden width, up to a multiple of 256.
            inner = math.ceil(int(2 * block["ffn"]["ffn_mult"] * 8192 / 3) / 256) * 256
            total += 3 * inner * 8192 + 8192
    assert architecture_of(CONFIGS[name], name).parameters == total
