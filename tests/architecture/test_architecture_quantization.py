"""Quantised layouts: against arithmetic from the published layouts, and against tensors that the libraries made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpufit.architecture.blocks import embedding, gated_mlp, norm
from gpufit.architecture.config import Config
from gpufit.architecture.quantization import mxfp4
from gpufit.architecture.quantization.loaded import tensors_of_config
from gpufit.architecture.quantization.method import Method, Names
from gpufit.architecture.quantization.registry import METHODS, NAMED, declared, method_of, named
from gpufit.architecture.record import Architecture, Component, Kind, Split, Weight
from gpufit.architecture.registry import architecture_of
from gpufit.architecture.tensors import Axis, StoredAs, total_bytes
from gpufit.errors import UnreadableInputError, UsageError

OUT, INTO = 512, 1024
MATRIX = Weight("model.layers.{layer}.mlp.up_proj.weight", (OUT, INTO), Kind.LINEAR, Split.COLUMN, layers=(0, 1, 2))
HEAD = Weight("lm_head.weight", (2000, INTO), Kind.HEAD, Split.VOCABULARY)
TOWER = Weight("visual.blocks.0.fc.weight", (64, 64), Kind.LINEAR, Split.COLUMN, component=Component.VISION)


def method(**values: Any) -> Method:
    found = method_of(Config(values, "quantization_config"), "BF16")
    assert found is not None
    return found


def layout(weight: Weight, module: str = "model.layers.0.mlp.up_proj", **values: Any) -> dict[str, tuple[str, tuple]]:
    stored = method(**values).stands_for(weight, module)
    return {one.suffix: (one.dtype, one.shape) for one in stored or ()}


def bits_a_weight(**values: Any) -> float:
    stored = method(**values).stands_for(MATRIX, "model.layers.0.mlp.up_proj")
    assert stored is not None
    return sum(one.size_bytes for one in stored) * 8 / (OUT * INTO)


# One row a layout: what stands for a matrix of 512 outputs and 1,024 inputs.
LAYOUTS: list[tuple[dict[str, Any], dict[str, tuple[str, tuple[int, ...]]]]] = [
    (
        # Eight codes of four bits a word, down the inputs; groups of 128: eight.
        {"quant_method": "gptq", "bits": 4, "group_size": 128},
        {
            ".qweight": ("I32", (INTO // 8, OUT)),
            ".qzeros": ("I32", (8, OUT // 8)),
            ".scales": ("F16", (8, OUT)),
            ".g_idx": ("I32", (INTO,)),
        },
    ),
    (
        {"quant_method": "gptq", "bits": 8, "group_size": -1},
        {
            ".qweight": ("I32", (INTO // 4, OUT)),
            ".qzeros": ("I32", (1, OUT // 4)),
            ".scales": ("F16", (1, OUT)),
            ".g_idx": ("I32", (INTO,)),
        },
    ),
    (
        # Three bits: 32 codes in three words.
        {"quant_method": "gptq", "bits": 3, "group_size": 64},
        {
            ".qweight": ("I32", (INTO // 32 * 3, OUT)),
            ".qzeros": ("I32", (16, OUT // 32 * 3)),
            ".scales": ("F16", (16, OUT)),
            ".g_idx": ("I32", (INTO,)),
        },
    ),
    (
        {"quant_method": "gptq", "bits": 4, "group_size": 128, "checkpoint_format": "marlin"},
        {".B": ("I32", (INTO // 16, OUT * 2)), ".s": ("F16", (8, OUT))},
    ),
    (
        {"quant_method": "auto-round", "bits": 4, "group_size": 128, "packing_format": "auto_round:auto_gptq"},
        {
            ".qweight": ("I32", (INTO // 8, OUT)),
            ".qzeros": ("I32", (8, OUT // 8)),
            ".scales": ("F16", (8, OUT)),
        },
    ),
    (
        {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemm", "zero_point": True},
        {
            ".qweight": ("I32", (INTO, OUT // 8)),
            ".qzeros": ("I32", (8, OUT // 8)),
            ".scales": ("F16", (8, OUT)),
        },
    ),
    (
        # A word of zero points for eight groups, and a scale for each place in it.
        {"quant_method": "awq", "bits": 4, "group_size": 128, "version": "gemv"},
        {
            ".qweight": ("I32", (OUT, INTO // 8)),
            ".qzeros": ("I32", (OUT, 1)),
            ".scales": ("F16", (OUT, 8)),
        },
    ),
    (
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"},
        {
            ".weight": ("U8", (OUT * INTO // 2, 1)),
            ".weight.absmax": ("F32", (OUT * INTO // 64,)),
            ".weight.quant_map": ("F32", (16,)),
        },
    ),
    (
        {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
        {
            ".weight": ("U8", (OUT * INTO // 2, 1)),
            ".weight.absmax": ("U8", (OUT * INTO // 64,)),
            ".weight.nested_absmax": ("F32", (OUT * INTO // 64 // 256,)),
            ".weight.nested_quant_map": ("F32", (256,)),
            ".weight.quant_map": ("F32", (16,)),
        },
    ),
    (
        {"quant_method": "bitsandbytes", "load_in_8bit": True},
        {".weight": ("I8", (OUT, INTO)), ".SCB": ("F32", (OUT,))},
    ),
    (
        {"quant_method": "fp8", "weight_block_size": [128, 128]},
        {".weight": ("F8_E4M3", (OUT, INTO)), ".weight_scale_inv": ("F32", (4, 8))},
    ),
    (
        {"quant_method": "fp8", "activation_scheme": "static"},
        {".weight": ("F8_E4M3", (OUT, INTO)), ".weight_scale": ("F32", ()), ".activation_scale": ("F32", ())},
    ),
    (
        {"quant_method": "mxfp8"},
        {".weight": ("F8_E4M3", (OUT, INTO)), ".weight_scale_inv": ("F8_E8M0", (OUT, 32))},
    ),
    (
        {"quant_method": "fbgemm_fp8"},
        {".weight": ("F8_E4M3", (OUT, INTO)), ".weight_scale": ("F32", (OUT, 1))},
    ),
    (
        {"quant_method": "modelopt", "quant_algo": "FP8"},
        {".weight": ("F8_E4M3", (OUT, INTO)), ".weight_scale": ("F32", ()), ".input_scale": ("F32", ())},
    ),
    (
        {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16},
        {
            ".weight": ("U8", (OUT, INTO // 2)),
            ".weight_scale": ("F8_E4M3", (OUT, INTO // 16)),
            ".weight_scale_2": ("F32", ()),
            ".input_scale": ("F32", ()),
        },
    ),
    (
        {"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}},
        {
            ".weight": ("U8", (OUT, INTO // 2)),
            ".weight.scale": ("BF16", (OUT, INTO // 64)),
            ".weight.zero_point": ("BF16", (OUT, INTO // 64)),
        },
    ),
]


@pytest.mark.parametrize(("values", "expected"), LAYOUTS, ids=lambda one: "-".join(map(str, one.values()))[:40])
def test_a_matrix_is_stored_as_its_method_publishes(
    values: dict[str, Any], expected: dict[str, tuple[str, tuple[int, ...]]]
) -> None:
    assert layout(MATRIX, **values) == expected


def compressed(weights: dict[str, Any], form: str, **group: Any) -> dict[str, Any]:
    return {
        "quant_method": "compressed-tensors",
        "format": form,
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights, **group}},
        "ignore": ["lm_head"],
    }


COMPRESSED: list[tuple[dict[str, Any], str, dict[str, Any], dict[str, tuple[str, tuple[int, ...]]]]] = [
    (
        {"num_bits": 8, "type": "float", "strategy": "channel"},
        "float-quantized",
        {"input_activations": {"dynamic": True, "num_bits": 8}},
        {".weight": ("F8_E4M3", (OUT, INTO)), ".weight_scale": ("BF16", (OUT, 1))},
    ),
    (
        {"num_bits": 8, "type": "float", "strategy": "tensor"},
        "float-quantized",
        {"input_activations": {"dynamic": False, "num_bits": 8}},
        {".weight": ("F8_E4M3", (OUT, INTO)), ".weight_scale": ("BF16", (1,)), ".input_scale": ("BF16", (1,))},
    ),
    (
        {"num_bits": 8, "type": "float", "strategy": "block", "block_structure": [128, 128]},
        "float-quantized",
        {},
        {".weight": ("F8_E4M3", (OUT, INTO)), ".weight_scale": ("BF16", (4, 8))},
    ),
    (
        {"num_bits": 8, "type": "int", "strategy": "channel", "symmetric": False},
        "int-quantized",
        {},
        {
            ".weight": ("I8", (OUT, INTO)),
            ".weight_scale": ("BF16", (OUT, 1)),
            ".weight_zero_point": ("I8", (OUT, 1)),
        },
    ),
    (
        {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 128, "symmetric": False, "actorder": "group"},
        "pack-quantized",
        {},
        {
            ".weight_packed": ("I32", (OUT, INTO // 8)),
            ".weight_scale": ("BF16", (OUT, 8)),
            ".weight_shape": ("I64", (2,)),
            ".weight_zero_point": ("I32", (OUT // 8, 8)),
            ".weight_g_idx": ("I32", (INTO,)),
        },
    ),
    (
        {"num_bits": 4, "type": "float", "strategy": "tensor_group", "group_size": 16},
        "nvfp4-pack-quantized",
        {"input_activations": {"dynamic": "local", "num_bits": 4}},
        {
            ".weight_packed": ("U8", (OUT, INTO // 2)),
            ".weight_scale": ("F8_E4M3", (OUT, INTO // 16)),
            ".weight_global_scale": ("F32", (1,)),
            ".input_global_scale": ("F32", (1,)),
        },
    ),
    (
        {"num_bits": 4, "type": "float", "strategy": "group", "group_size": 32},
        "mxfp4-pack-quantized",
        {},
        {".weight_packed": ("U8", (OUT, INTO // 2)), ".weight_scale": ("U8", (OUT, INTO // 32))},
    ),
]


@pytest.mark.parametrize(("weights", "form", "group", "expected"), COMPRESSED)
def test_compressed_tensors_by_scheme(
    weights: dict[str, Any], form: str, group: dict[str, Any], expected: dict[str, tuple[str, tuple[int, ...]]]
) -> None:
    assert layout(MATRIX, **compressed(weights, form, **group)) == expected


def test_bits_a_weight_are_the_known_ones() -> None:
    # 4 bits of code, 16 of scale and 4 of zero point for 128 weights; NF4 32 for 64; NVFP4 8 for 16, MXFP4 8 for 32.
    assert bits_a_weight(quant_method="awq") == 4 + (16 + 4) / 128
    nf4 = bits_a_weight(quant_method="bitsandbytes", load_in_4bit=True)
    assert nf4 == 4 + 32 / 64 + 16 * 32 / (OUT * INTO)
    assert bits_a_weight(quant_method="modelopt", quant_algo="W4A16_NVFP4") == 4.5 + 32 / (OUT * INTO)


STACKED = Weight(
    "model.layers.{layer}.mlp.experts.gate_up_proj", (32, 2880, 5760), Kind.EXPERT, Split.COLUMN, layers=(0,)
)
DOWN = Weight("model.layers.{layer}.mlp.experts.down_proj", (32, 2880, 2880), Kind.EXPERT, Split.ROW, layers=(0,))


def test_mxfp4_as_gpt_oss_20b_stores_it_and_nothing_but_experts() -> None:
    # https://huggingface.co/openai/gpt-oss-20b/blob/main/model.safetensors.index.json: shapes of layer 0.
    values = {"quant_method": "mxfp4", "modules_to_not_convert": ["model.layers.*.self_attn", "lm_head"]}
    assert layout(STACKED, "model.layers.0.mlp.experts.gate_up_proj", **values) == {
        "_blocks": ("U8", (32, 5760, 90, 16)),
        "_scales": ("U8", (32, 5760, 90)),
    }
    assert layout(DOWN, "model.layers.0.mlp.experts.down_proj", **values)["_blocks"] == ("U8", (32, 2880, 90, 16))
    assert layout(MATRIX, **values) == {}


def test_kernels_pad_what_is_no_whole_tile_of_theirs() -> None:
    assert mxfp4.padded(STACKED, mxfp4.MARLIN).shape == (32, 3072, 2 * 2944)
    assert mxfp4.padded(DOWN, mxfp4.MARLIN).shape == (32, 2944, 3072)
    assert mxfp4.padded(STACKED, mxfp4.TRITON_HOPPER).shape == (32, 3072, 5760)
    assert mxfp4.padded(DOWN, mxfp4.TRITON_HOPPER).shape == (32, 3072, 2880)
    single = Weight("model.layers.{layer}.mlp.experts.{expert}.up_proj.weight", (2880, 2880), Kind.EXPERT, Split.COLUMN)
    assert mxfp4.padded(single, mxfp4.MARLIN).shape == (2944, 3072)


def test_axes_tell_where_a_rank_divides() -> None:
    stored = method(quant_method="gptq", bits=4, group_size=128).stands_for(MATRIX, "model.layers.0.mlp.up_proj")
    assert stored is not None
    by_suffix = {one.suffix: one.axes for one in stored}
    assert by_suffix[".qweight"] == (Axis.IN, Axis.OUT)
    assert by_suffix[".g_idx"] == (Axis.IN,)
    stored = method(quant_method="awq").stands_for(MATRIX, "model.layers.0.mlp.up_proj")
    assert stored is not None
    assert [one.axes for one in stored] == [(Axis.IN, Axis.OUT)] * 3
    moe = method(quant_method="mxfp4").stands_for(STACKED, "model.layers.0.mlp.experts.gate_up_proj")
    assert moe is not None
    assert moe[0].axes == (Axis.EXPERTS, Axis.OUT, Axis.IN, Axis.OTHER)


@pytest.mark.parametrize(
    ("values", "quantised"),
    [
        ({"quant_method": "gptq"}, False),
        ({"quant_method": "gptq", "lm_head": True}, True),
        ({"quant_method": "awq"}, False),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, False),
        # A list takes the place of the default: get_modules_to_not_convert in transformers' quantizers/base.py.
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "llm_int8_skip_modules": ["visual"]}, True),
        ({"quant_method": "bitsandbytes", "load_in_8bit": True, "llm_int8_skip_modules": ["lm_head"]}, False),
        ({"quant_method": "fp8"}, False),
        (compressed({"num_bits": 8, "type": "float"}, "float-quantized"), False),
        (compressed({"num_bits": 8, "type": "float"}, "float-quantized") | {"ignore": []}, True),
        ({"quant_method": "modelopt", "quant_algo": "FP8", "exclude_modules": ["lm_head"]}, False),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, True),
        ({"quant_method": "hqq", "nbits": 4}, False),
        ({"quant_method": "quanto", "weights": "int8"}, False),
    ],
)
def test_the_head_is_quantised_where_the_method_does(values: dict[str, Any], quantised: bool) -> None:
    assert bool(layout(HEAD, "lm_head", **values)) is quantised


def test_calibrated_methods_leave_towers_alone_and_others_do_not() -> None:
    for values in ({"quant_method": "gptq"}, {"quant_method": "awq"}):
        assert layout(TOWER, "visual.blocks.0.fc", **values) == {}
    assert layout(TOWER, "visual.blocks.0.fc", quant_method="bitsandbytes", load_in_8bit=True)


@pytest.mark.parametrize(
    ("patterns", "module", "named_there"),
    [
        (["lm_head"], "lm_head", True),
        (["model.layers.1.mlp"], "model.layers.1.mlp.up_proj", True),
        (["model.layers.1"], "model.layers.11.mlp", False),
        (["mlp.gate"], "model.layers.3.mlp.gate", True),
        (["mlp.gate"], "model.layers.3.mlp.gate_proj", False),
        (["model.layers.*.self_attn"], "model.layers.17.self_attn.q_proj", True),
        (["model.layers.*.self_attn"], "model.layers.17.mlp.up_proj", False),
        (["model.language_model.layers.2.self_attn*"], "model.layers.2.self_attn.q_proj", True),
        (["model.layers.2.self_attn"], "language_model.model.layers.2.self_attn.q_proj", True),
        (["mtp*"], "mtp.layers.0.mlp", True),
        (["mtp*"], "model.layers.0.mlp", False),
        (["re:.*lm_head"], "lm_head", True),
        (["re:visual.*"], "model.visual.blocks.0.fc", True),
        (["re:.*self_attn.q_proj$"], "model.layers.0.self_attn.q_proj", True),
        ([], "lm_head", False),
    ],
)
def test_modules_are_named_as_configs_name_them(patterns: list[str], module: str, named_there: bool) -> None:
    assert (module in Names(patterns, "config")) is named_there


def test_single_layers_that_stay_are_counted_apart() -> None:
    architecture = tiny()
    found = tensors_of_config(
        architecture,
        method(quant_method="fp8", weight_block_size=[128, 128], modules_to_not_convert=["model.layers.1.mlp"]),
    )
    up = {one.dtype: one.layers for one in found if one.name == "model.layers.{layer}.mlp.up_proj.weight"}
    assert up == {"F8_E4M3": (0, 2), "BF16": (1,)}
    scales = next(one for one in found if one.name.endswith("up_proj.weight_scale_inv"))
    assert (scales.shape, scales.size_bytes, scales.copies) == ((1, 1), 4, 2)


def tiny() -> Architecture:
    """Three layers of an MLP of 64 by 128, in bfloat16."""
    layers = (0, 1, 2)
    base = architecture_of(
        {
            "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3,
            "num_attention_heads": 4, "vocab_size": 256, "torch_dtype": "bfloat16",
        },
        "config.json",
    )  # fmt: skip
    assert set(gated_mlp("model.layers.{layer}.mlp", layers, hidden=64, intermediate=128)) <= set(base.weights)
    assert {embedding("model.embed_tokens", 256, 64), *norm("model.norm", 64)} <= set(base.weights)
    return base


def test_gptqmodels_own_packing_of_single_modules() -> None:
    values = {
        "quant_method": "gptq", "bits": 4, "group_size": 128,
        "dynamic": {r"-:.*\.0\..*": {}, r"+:.*\.1\..*up_proj": {"bits": 8, "group_size": 64}},
    }  # fmt: skip
    assert layout(MATRIX, "model.layers.0.mlp.up_proj", **values) == {}
    assert layout(MATRIX, "model.layers.1.mlp.up_proj", **values)[".qweight"] == ("I32", (INTO // 4, OUT))
    assert layout(MATRIX, "model.layers.1.mlp.up_proj", **values)[".scales"] == ("F16", (16, OUT))
    assert layout(MATRIX, "model.layers.2.mlp.up_proj", **values)[".qweight"] == ("I32", (INTO // 8, OUT))


def test_modelopt_with_an_algorithm_a_layer() -> None:
    # As https://huggingface.co/nvidia/Qwen3.6-27B-NVFP4/blob/main/config.json names them.
    values = {
        "quant_method": "modelopt", "quant_algo": "MIXED_PRECISION", "ignore": ["mtp*"],
        "quantized_layers": {
            "model.language_model.layers.0.mlp.up_proj": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
            "model.language_model.layers.1.mlp.up_proj": {"quant_algo": "FP8"},
            "lm_head": {"quant_algo": "W4A16_NVFP4", "group_size": 16},
        },
    }  # fmt: skip
    assert layout(MATRIX, "model.layers.0.mlp.up_proj", **values)[".weight"] == ("U8", (OUT, INTO // 2))
    assert layout(MATRIX, "model.layers.1.mlp.up_proj", **values)[".weight"] == ("F8_E4M3", (OUT, INTO))
    assert layout(MATRIX, "model.layers.2.mlp.up_proj", **values) == {}
    assert layout(HEAD, "lm_head", **values)[".weight"] == ("U8", (2000, INTO // 2))


def test_deepseek_v4_names_its_experts_format_beside_the_section() -> None:
    config = declared(
        {
            "expert_dtype": "fp4",
            "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128], "scale_fmt": "ue8m0"},
        },
        "config.json",
    )
    found = method_of(config, "BF16")
    assert found is not None
    expert = Weight("model.layers.{layer}.mlp.experts.{expert}.up_proj.weight", (OUT, INTO), Kind.EXPERT, Split.COLUMN)
    stored = found.stands_for(expert, "model.layers.0.mlp.experts.0.up_proj")
    assert stored is not None
    assert [(one.dtype, one.shape) for one in stored] == [("U8", (OUT, INTO // 2)), ("F8_E8M0", (OUT, INTO // 32))]
    dense = found.stands_for(MATRIX, "model.layers.0.mlp.up_proj")
    assert dense is not None
    assert [(one.dtype, one.shape) for one in dense] == [("F8_E4M3", (OUT, INTO)), ("F8_E8M0", (4, 8))]


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"quant_method": "aqlm"}, "does not know the sizes of quantisation 'aqlm'"),
        ({"quant_method": "vptq"}, "'vptq'"),
        ({"quant_method": "exl3"}, "'exl3'"),
        ({"bits": 4}, "names no quant_method"),
        ({"quant_method": 4}, "quant_method"),
        ({"quant_method": "gptq", "bits": "four"}, "bits"),
        ({"quant_method": "gptq", "bits": 9}, "bits 9"),
        ({"quant_method": "gptq", "group_size": 1.5}, "group_size"),
        ({"quant_method": "gptq", "dynamic": {"+:(": {}}}, "no regular expression"),
        ({"quant_method": "gptq", "dynamic": {"+:a": 4}}, "not an object"),
        ({"quant_method": "awq", "bits": 3}, "bits 3"),
        ({"quant_method": "awq", "version": "x"}, "version 'x'"),
        ({"quant_method": "awq", "modules_to_not_convert": [1]}, "names a module by 1"),
        ({"quant_method": "fp8", "modules_to_not_convert": ["re:("]}, "no regular expression"),
        ({"quant_method": "fp8", "weight_block_size": [128]}, "weight_block_size"),
        ({"quant_method": "fp8", "weight_block_size": [0, 128]}, "weight_block_size"),
        ({"quant_method": "fp8", "weight_block_size": "128"}, "weight_block_size"),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, "'W4A8_AWQ'"),
        ({"quant_method": "modelopt"}, "names no quant_algo"),
        ({"quant_method": "modelopt", "quant_algo": "MIXED_PRECISION"}, "quantized_layers"),
        ({"quant_method": "torchao", "quant_type": {"default": {"_type": "UIntXConfig"}}}, "'UIntXConfig'"),
        ({"quant_method": "torchao"}, "quant_type"),
        ({"quant_method": "quanto", "weights": "int3"}, "'int3'"),
        ({"quant_method": "hqq", "nbits": 3}, "nbits 3"),
        (compressed({"num_bits": 8, "type": "float"}, "marlin-24"), "'marlin-24'"),
        (compressed({"num_bits": 12, "type": "float"}, "float-quantized"), "num_bits 12"),
        ({"quant_method": "compressed-tensors", "config_groups": {"group_0": []}}, "not an object"),
    ],
)  # fmt: skip
def test_what_is_not_known_or_damaged_is_refused_in_one_line(values: dict[str, Any], said: str) -> None:
    with pytest.raises(UnreadableInputError) as refused:
        method(**values)
    message = str(refused.value)
    assert said in message
    assert "\n" not in message
    assert message.startswith("quantization_config")


def test_a_config_without_quantisation_and_one_of_gguf_have_no_method() -> None:
    assert declared({"model_type": "llama"}, "config.json") is None
    assert method_of(None, "BF16") is None
    assert method_of(declared({"quantization_config": {"quant_method": "gguf"}}, "f.gguf"), "BF16") is None
    nested = declared({"text_config": {"quantization_config": {"quant_method": "awq"}}}, "config.json")
    assert nested is not None
    assert nested.where == "config.json: text_config: quantization_config"
    with pytest.raises(UnreadableInputError, match="quantization_config is 'awq', not an object"):
        declared({"quantization_config": "awq"}, "config.json")


@pytest.mark.parametrize("name", [*NAMED, "bitsandbytes", "bitsandbytes-4bit", "bitsandbytes-8bit", "nf4"])
def test_every_name_of_the_command_line_makes_a_smaller_model(name: str) -> None:
    plain, found = tensors_of_config(tiny(), None), method_of(named(name), "BF16")
    assert found is not None
    quantised = total_bytes(tensors_of_config(tiny(), found))
    # MXFP4 is for experts, of which there are none here.
    assert quantised < total_bytes(plain) if name != "mxfp4" else quantised == total_bytes(plain)


def test_an_unknown_name_is_refused_with_those_known() -> None:
    with pytest.raises(UsageError, match="--quantization int3: not a name that is known here; use one of gptq"):
        named("int3")


def test_every_method_of_the_registry_is_read_by_its_function() -> None:
    import importlib

    for module, function in METHODS.values():
        assert callable(getattr(importlib.import_module(f"gpufit.architecture.quantization.{module}"), function))


def test_experts_stay_where_a_library_does_not_reach_them() -> None:
    expert = Weight(
        "model.layers.{layer}.mlp.experts.{expert}.up_proj.weight",
        (64, 64),
        Kind.EXPERT,
        Split.COLUMN,
        layers=(0,),
        experts=4,
    )
    model = tiny()
    model = replace(model, weights=(expert,))
    int8 = method(quant_method="bitsandbytes", load_in_8bit=True)
    assert total_bytes(tensors_of_config(model, int8, experts=False)) == 4 * 64 * 64 * 2
    assert total_bytes(tensors_of_config(model, int8)) == 4 * (64 * 64 + 64 * 4)


@pytest.mark.parametrize("nested", [False, True])
def test_bitsandbytes_makes_tensors_of_these_sizes_at_four_bits(nested: bool) -> None:
    import bitsandbytes.functional
    import torch

    weight = torch.randn(OUT, INTO, dtype=torch.bfloat16)
    packed, state = bitsandbytes.functional.quantize_4bit(weight, quant_type="nf4", compress_statistics=nested)
    made = {".weight": packed, **{f".weight.{key}": one for key, one in state.as_dict().items()}}
    sizes = {name: one.nbytes for name, one in made.items() if isinstance(one, torch.Tensor)}
    found = method(quant_method="bitsandbytes", load_in_4bit=True, bnb_4bit_use_double_quant=nested)
    stored = found.stands_for(MATRIX, "model.layers.0.mlp.up_proj")
    assert stored is not None
    assert {one.suffix: one.size_bytes for one in stored} == sizes


def test_bitsandbytes_makes_tensors_of_these_sizes_at_eight_bits() -> None:
    import bitsandbytes.functional
    import torch

    packed, scales, _ = bitsandbytes.functional.int8_vectorwise_quant(torch.randn(OUT, INTO, dtype=torch.float16))
    stored = method(quant_method="bitsandbytes", load_in_8bit=True).stands_for(MATRIX, "model.layers.0.mlp.up_proj")
    assert stored is not None
    assert [one.size_bytes for one in stored] == [packed.nbytes, scales.nbytes]


@pytest.mark.parametrize("name", ["Int8WeightOnlyConfig", "Float8WeightOnlyConfig"])
def test_torchao_makes_tensors_of_these_sizes(name: str) -> None:
    import torch
    import torchao.quantization

    layer = torch.nn.Sequential(torch.nn.Linear(INTO, OUT, bias=False, dtype=torch.bfloat16))
    torchao.quantization.quantize_(layer, getattr(torchao.quantization, name)())
    found = method(quant_method="torchao", quant_type={"default": {"_type": name}})
    stored = found.stands_for(MATRIX, "model.layers.0.mlp.up_proj")
    assert stored is not None
    assert sum(one.size_bytes for one in stored) == sum(one.nbytes for one in _plain_tensors(layer[0].weight))


def _plain_tensors(tensor: Any) -> list[Any]:
    """The tensors that a wrapping one is made of."""
    import torch

    if type(tensor) in (torch.Tensor, torch.nn.Parameter) and not hasattr(tensor, "__tensor_flatten__"):
        return [tensor]
    names, _ = tensor.__tensor_flatten__()
    return [one for name in names for one in _plain_tensors(getattr(tensor, name))]


def test_sizes_of_a_stored_tensor_are_whole_bytes() -> None:
    assert StoredAs(".x", "F4", (3,), (Axis.OUT,)).size_bytes == 2
    assert StoredAs(".x", "F32", (), ()).size_bytes == 4


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 200) | st.floats() | st.text(max_size=6) | st.just("float"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=5,
)
_KEYS = (
    "bits", "w_bit", "group_size", "q_group_size", "desc_act", "lm_head", "dynamic", "checkpoint_format", "version",
    "modules_to_not_convert", "llm_int8_skip_modules", "load_in_4bit", "load_in_8bit", "bnb_4bit_quant_type",
    "weight_block_size", "activation_scheme", "scale_fmt", "expert_dtype", "ignored_layers", "config_groups", "format",
    "ignore", "sparsity_config", "quant_algo", "exclude_modules", "quantized_layers", "quant_type", "weights",
    "quant_config", "nbits", "skip_modules", "extra_config", "packing_format", "quant_type_kwargs",
)  # fmt: skip


@settings(max_examples=600)
@example("modelopt", {"config_groups": {"\n": None}})
@given(st.sampled_from([*METHODS, "compressed-tensors"]), st.dictionaries(st.sampled_from(_KEYS), _ANY, max_size=6))
def test_any_config_is_a_method_or_one_clear_line(name: str, values: dict[str, Any]) -> None:
    try:
        found = method_of(Config({"quant_method": name} | values, "quantization_config"), "BF16")
    except UnreadableInputError as error:
        refused = str(error)
    else:
        assert found is not None
        assert total_bytes(tensors_of_config(tiny(), found)) > 0
        return
    assert "\n" not in refused


@settings(max_examples=200)
@given(
    _ANY,
    st.dictionaries(
        st.sampled_from(["num_bits", "type", "strategy", "group_size", "actorder", "block_structure"]), _ANY
    ),
)
def test_any_group_of_compressed_tensors_is_a_scheme_or_one_clear_line(targets: Any, weights: dict[str, Any]) -> None:
    values = compressed(weights, "pack-quantized")
    values["config_groups"]["group_0"]["targets"] = targets
    try:
        found = method_of(Config(values, "quantization_config"), "BF16")
    except UnreadableInputError as error:
        refused = str(error)
    else:
        assert found is not None
        assert total_bytes(tensors_of_config(tiny(), found)) > 0
        return
    assert "\n" not in refused
