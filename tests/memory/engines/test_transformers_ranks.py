"""What a rank and a layer hold in transformers: against its own plans, against simulated ranks, and by arithmetic."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from model_files import REPOSITORY
from model_variants import VARIANTS
from releases import needs_release_read

from gpufit.architecture.quantization.loaded import tensors_of_config
from gpufit.architecture.record import Architecture
from gpufit.architecture.registry import FAMILIES, architecture_of
from gpufit.architecture.tensors import total_bytes
from gpufit.memory.engines.transformers.layout import layout_of
from gpufit.memory.engines.transformers.ranks import PLANS, Part, kv_share, refusal
from gpufit.memory.engines.transformers.rules import rules_of
from gpufit.profile.layout import Layout
from gpufit.sources.estimate.weights import weights_in_memory
from gpufit.sources.model_files.headers import open_headers

LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "vocab_size": 256,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}
LINEAR = 64 * 64 * 2 + 64 * 32 * 2 + 3 * 64 * 128
"""Elements of a layer: q and o, k and v, three matrices of the MLP."""
NORMS = 2 * 64


def told(**changes: Any) -> tuple[Architecture, Layout]:
    model = architecture_of(LLAMA | changes, "a test")
    return model, layout_of(model, tensors_of_config(model, None, "BF16"), rules_of("5.24.0"))


@pytest.mark.parametrize("tied", [False, True])
def test_a_llama_by_hand(tied: bool) -> None:
    _, layout = told(tie_word_embeddings=tied)
    vocabulary = 256 * 64
    assert layout.layers == 3
    assert layout.largest_layer_bytes == 2 * (LINEAR + NORMS)
    assert layout.first_bytes == 2 * vocabulary
    assert layout.last_bytes == 2 * (vocabulary + 64), "the head, of its own or not, and the last norm"
    assert layout.linear_elements == 3 * LINEAR
    assert layout.linear_bytes == 2 * 3 * LINEAR
    assert layout.largest_linear_elements == 64 * 128
    two, four, eight = layout.shards
    divided = 3 * LINEAR + vocabulary * (1 if tied else 2)
    whole = 3 * NORMS + 64
    assert (two.weights_bytes, two.kv_share) == (2 * (divided // 2 + whole), 0.5)
    assert (four.weights_bytes, four.kv_share) == (2 * (divided // 4 + whole), 0.25)
    assert eight.refusal == "4 KV heads cannot be divided over 8 ranks"
    assert layout.largest_layer_rest_bytes == 2 * NORMS
    assert layout.largest_layer_linear_elements == LINEAR
    rank = two.layout
    assert rank is not None
    assert (rank.largest_layer_bytes, rank.largest_layer_rest_bytes) == (LINEAR + 2 * NORMS, 2 * NORMS)
    assert (rank.first_bytes, rank.last_bytes) == (vocabulary, vocabulary + 2 * 64)
    assert (rank.linear_bytes, rank.linear_elements) == (3 * LINEAR, 3 * LINEAR // 2)
    assert eight.layout is None


@pytest.mark.parametrize(
    ("changes", "ranks", "why"),
    [
        ({"num_attention_heads": 6, "head_dim": 16, "num_key_value_heads": 2}, 4, "6 attention heads cannot be"),
        ({"num_key_value_heads": 2}, 4, "2 KV heads cannot be divided over 4 ranks"),
        ({"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]}, 2, "no plan that divides the layers of gpt2"),
    ],
)
def test_what_cannot_be_divided_says_why(changes: dict[str, Any], ranks: int, why: str) -> None:
    assert why in refusal(architecture_of(LLAMA | changes, "a test"), ranks)


def test_only_families_that_are_told_have_a_plan() -> None:
    assert set(PLANS) <= set(FAMILIES)


def test_gathered_keys_and_values_are_whole_on_each_rank() -> None:
    phi = architecture_of(LLAMA | {"model_type": "phi3", "architectures": ["Phi3ForCausalLM"]}, "a test")
    assert kv_share(phi, 2, latent_cache=True) == 1.0
    layout = layout_of(phi, tensors_of_config(phi, None, "BF16"), rules_of("5.24.0"))
    whole = 2 * (3 * NORMS + 64)
    assert layout.shards[0].weights_bytes - whole == (total_bytes(tensors_of_config(phi, None, "BF16")) - whole) // 2


_NAMED = {
    Part.ATTENTION | Part.GATHERED: (".q_proj", ".query_key_value", ".qkv_proj"),
    Part.LATENT: (".q_b_proj", ".kv_b_proj"),
    Part.SHARED: (".shared_experts.up_proj", ".shared_expert.up_proj"),
    Part.EXPERTS: (".experts.down_proj",),
    Part.MLP: (".mlp.up_proj", ".mlp.gate_up_proj", ".mlp.fc1", ".mlp.fc_in", ".mlp.c_fc", ".mlp.dense_h_to_4h"),
}
_NAMED_OTHERWISE = {Part.MLP: (".feed_forward.up_proj",)}


def _parts_of(plan: dict[str, str]) -> Part:
    found = Part(0)
    for module, style in plan.items():
        for part, suffixes in (*_NAMED.items(), *_NAMED_OTHERWISE.items()):
            if not module.endswith(suffixes):
                continue
            if part & Part.ATTENTION:
                found |= Part.GATHERED if style == "colwise_gather_output" else Part.ATTENTION
            else:
                found |= part
    # Latent attention has q_proj of its own where queries are not compressed.
    return found & ~Part.ATTENTION if found & Part.LATENT else found


def _families() -> Iterator[tuple[str, str, dict[str, Any]]]:
    seen = set()
    for family, class_name, settings in VARIANTS:
        if family not in seen and "For" in class_name:
            seen.add(family)
            yield family, class_name, settings


@needs_release_read
@pytest.mark.model
@pytest.mark.parametrize(("family", "class_name", "settings"), list(_families()))
def test_plans_are_those_of_transformers(family: str, class_name: str, settings: dict[str, Any]) -> None:
    import torch
    import transformers

    config = transformers.AutoConfig.for_model(family, **settings)
    if hasattr(config, "thinker_config"):
        config, class_name = config.thinker_config, class_name.replace("OmniFor", "OmniThinkerFor")
    with torch.device("meta"):
        model = getattr(transformers, class_name)(config)
    theirs = _parts_of(getattr(model, "tp_plan", None) or {})
    recurrent = any("linear_attn" in name or "mamba" in name or "mixer" in name for name, _ in model.named_modules())
    assert PLANS.get(family, Part(0)) == (Part(0) if recurrent and family not in PLANS else theirs)


SIMULATED = ("llama", "gemma3", "qwen3_moe", "mixtral", "deepseek_v3", "qwen2_5_vl")
CORRECTIONS = {"deepseek_v3": 4 * 8}
"""What transformers holds as buffers and checkpoints as weights: a float32 for each of eight experts."""


@needs_release_read
@pytest.mark.model
def test_a_rank_holds_what_a_simulated_one_holds_to_the_byte(tmp_path: Path) -> None:
    from simulated import save_config

    folders = {name: save_config(tmp_path / name, name) for name in SIMULATED}
    script = Path(__file__).with_name("held_by_a_rank.py")
    done = subprocess.run(
        [sys.executable, str(script), *map(str, folders.values())],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": "", "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}", "HF_HUB_OFFLINE": "1"},
    )
    held = json.loads(done.stdout.splitlines()[-1])
    for name, folder in folders.items():
        headers = open_headers(str(folder))
        model = architecture_of(headers.config, name)
        weights = weights_in_memory(headers, model, "BF16")
        layout = layout_of(model, weights.tensors, rules_of("5.24.0"))
        assert layout.shards[0].weights_bytes - CORRECTIONS.get(name, 0) == held[str(folder)], name
