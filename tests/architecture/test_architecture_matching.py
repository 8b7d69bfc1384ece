"""Stored tensors laid beside the weights of an architecture: names of every kind, and what nothing knows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import pytest
from model_files import SMOLLM2, need

from gpufit.architecture.config import Config
from gpufit.architecture.gguf_names import transformers_names
from gpufit.architecture.quantization.loaded import tensors_of_config
from gpufit.architecture.quantization.matching import tensors_of_files
from gpufit.architecture.quantization.registry import NAMED, method_of
from gpufit.architecture.record import Architecture, Component, Kind, Split, Weight
from gpufit.architecture.registry import architecture_of
from gpufit.architecture.tensors import Axis, total_bytes
from gpufit.sources.model_files.headers import open_headers

LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "torch_dtype": "bfloat16",
}


@dataclass(frozen=True)
class Stored:
    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int


def llama(**changes: Any) -> Architecture:
    return architecture_of(LLAMA | changes, "config.json")


def checkpoint(architecture: Architecture, method: dict[str, Any] | None = None, prefix: str = "") -> list[Stored]:
    """Every tensor of a checkpoint one by one, as its files would list them."""
    found = method_of(Config(method, "q"), "BF16") if method is not None else None
    return [
        Stored(prefix + _numbered(one.name, layer, expert), one.dtype, one.shape, one.size_bytes)
        for one in tensors_of_config(architecture, found)
        for layer in one.layers or (0,)
        for expert in range(one.experts)
    ]


def _numbered(name: str, layer: int, expert: int) -> str:
    return name.replace("{layer}", str(layer)).replace("{expert}", str(expert))


@pytest.mark.parametrize("method", [None, *NAMED.values()], ids=lambda one: str(one)[:50])
def test_what_a_config_tells_is_found_again_in_the_files(method: dict[str, Any] | None) -> None:
    architecture = llama()
    found = method_of(Config(method, "q"), "BF16") if method is not None else None
    told = tensors_of_config(architecture, found)
    matched = tensors_of_files(architecture, checkpoint(architecture, method), found)
    assert (matched.unknown, matched.tied, matched.missing) == ((), (), ())
    assert set(matched.tensors) == set(told)


@pytest.mark.parametrize("prefix", ["model.", "model.language_model.", "language_model.", "language_model.model."])
def test_a_wrapper_around_the_model_is_seen_through(prefix: str) -> None:
    architecture = llama()
    stored = [replace(one, name=one.name.replace("model.", prefix)) for one in checkpoint(architecture)]
    matched = tensors_of_files(architecture, stored)
    assert (matched.unknown, matched.missing) == ((), ())
    assert total_bytes(matched.tensors) == sum(one.size_bytes for one in stored)


def test_the_inner_model_alone_is_the_same_model() -> None:
    architecture = llama(tie_word_embeddings=True)
    stored = [replace(one, name=one.name.removeprefix("model.")) for one in checkpoint(architecture)]
    assert tensors_of_files(architecture, stored).unknown == ()


def test_quantised_tensors_stand_for_their_weight_with_layers_and_axes() -> None:
    architecture = llama()
    method = {"quant_method": "gptq", "bits": 4, "group_size": 32}
    found = tensors_of_files(
        architecture, checkpoint(architecture, method, "language_model."), method_of(Config(method, "q"), "BF16")
    )
    packed = next(one for one in found.tensors if one.name == "model.layers.{layer}.self_attn.q_proj.qweight")
    assert packed.weight is not None
    assert packed.weight.name == "model.layers.{layer}.self_attn.q_proj.weight"
    assert (packed.weight.split, packed.layers, packed.copies) == (Split.COLUMN, (0, 1, 2), 3)
    # Eight codes of four bits a word.
    assert (packed.shape, packed.size_bytes, packed.axes) == ((8, 64), 8 * 64 * 4, (Axis.IN, Axis.OUT))


def test_a_tensor_that_no_rule_knows_counts_and_is_named() -> None:
    architecture = llama()
    odd = Stored("model.layers.0.self_attn.novelty.weight", "F32", (10,), 40)
    found = tensors_of_files(architecture, [*checkpoint(architecture), odd])
    assert found.unknown == (odd.name,)
    assert found.tensors[-1].weight is None
    assert total_bytes(found.tensors) == architecture.parameters * 2 + 40


def test_a_layer_beyond_the_stack_is_not_one_of_its_layers() -> None:
    architecture = llama()
    beyond = Stored("model.layers.3.mlp.up_proj.weight", "BF16", (128, 64), 128 * 64 * 2)
    assert tensors_of_files(architecture, [*checkpoint(architecture), beyond]).unknown == (beyond.name,)


def test_layers_of_another_stack_are_not_the_models() -> None:
    # Qwen3-Next's layer for multi-token prediction: https://huggingface.co/Qwen/Qwen3-Next-80B-A3B-Instruct
    other = Stored("mtp.layers.0.mlp.up_proj.weight", "BF16", (128, 64), 128 * 64 * 2)
    assert tensors_of_files(llama(), [other]).unknown == (other.name,)


def test_a_second_copy_of_tied_weights_does_not_count() -> None:
    tied, apart = llama(tie_word_embeddings=True), llama()
    stored = checkpoint(apart)
    found = tensors_of_files(tied, stored)
    assert (found.tied, found.unknown) == (("lm_head.weight",), ())
    assert total_bytes(found.tensors) == tied.parameters * 2
    assert tensors_of_files(apart, stored).tied == ()


def test_weights_that_no_file_holds_are_named() -> None:
    architecture = llama()
    stored = [one for one in checkpoint(architecture) if "norm" not in one.name]
    assert "model.norm.weight" in tensors_of_files(architecture, stored).missing


def test_numbers_in_a_weights_own_name_are_told_from_those_of_layers() -> None:
    first = Weight("merger.mlp.0.weight", (8, 8), Kind.LINEAR, Split.COLUMN, component=Component.PROJECTOR)
    second = Weight("merger.mlp.2.weight", (8, 4), Kind.LINEAR, Split.ROW, component=Component.PROJECTOR)
    architecture = replace(llama(), weights=(first, second))
    stored = [
        Stored("model.merger.mlp.2.weight", "BF16", (8, 4), 64),
        Stored("merger.mlp.0.weight", "BF16", (8, 8), 128),
    ]
    found = tensors_of_files(architecture, stored)
    assert [one.weight for one in found.tensors] == [second, first]
    assert tensors_of_files(architecture, [Stored("merger.mlp.1.weight", "BF16", (8, 8), 128)]).unknown


def test_experts_are_counted_by_layer() -> None:
    expert = Weight(
        "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight",
        (32, 64),
        Kind.EXPERT,
        Split.COLUMN,
        layers=(1, 2),
        experts=4,
    )
    architecture = replace(llama(), weights=(expert,))
    found = tensors_of_files(architecture, checkpoint(architecture))
    assert [(one.layers, one.experts, one.copies) for one in found.tensors] == [((1, 2), 4, 8)]
    # A checkpoint that lost an expert of one layer shows it.
    lost = tensors_of_files(architecture, checkpoint(architecture)[:-1])
    assert sorted((one.layers, one.experts) for one in lost.tensors) == [((1,), 4), ((2,), 3)]


def test_every_block_of_a_gguf_file_finds_its_weight() -> None:
    headers = open_headers(str(need(SMOLLM2)))
    architecture = architecture_of(headers.config, headers.config_where)
    found = tensors_of_files(architecture, headers.tensors, gguf=True)
    assert (found.unknown, found.missing) == ((), ())
    assert total_bytes(found.tensors) == headers.weight_bytes
    down = next(one for one in found.tensors if one.name.endswith("down_proj.weight"))
    assert (down.dtype, down.shape, down.copies) == ("Q4_1", (576, 1536), 30)


def test_names_of_llama_cpp_are_those_of_its_own_table() -> None:
    import gguf

    from gpufit.architecture.gguf_names import _OUTSIDE, _PARTS

    ours = {f"blk.{{bid}}.{part}" for part in _PARTS} | set(_OUTSIDE)
    unknown = ours - set(gguf.TENSOR_NAMES.values())
    # Releases before 0.19 lack the names of architectures that came later.
    assert not unknown or tuple(int(part) for part in version("gguf").split(".")[:2]) < (0, 19)
    assert len(unknown) < len(ours) / 2
    assert "model.layers.7.mlp.experts.*.gate_proj.weight" in transformers_names("blk.7.ffn_gate_exps.weight")
    assert "model.layers.7.self_attn.sinks" in transformers_names("blk.7.attn_sinks.weight")
    assert transformers_names("rope_freqs.weight") == ()


def test_a_stack_of_experts_in_gguf_stands_for_all_of_them() -> None:
    expert = Weight(
        "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight",
        (32, 64),
        Kind.EXPERT,
        Split.COLUMN,
        layers=(0,),
        experts=4,
    )
    architecture = replace(llama(), weights=(expert,))
    found = tensors_of_files(architecture, [Stored("blk.0.ffn_up_exps.weight", "Q8_0", (4, 32, 64), 8704)], gguf=True)
    assert found.unknown == ()
    assert (found.tensors[0].weight, found.tensors[0].copies, found.tensors[0].size_bytes) == (expert, 1, 8704)
