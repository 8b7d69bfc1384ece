"""What stands in memory after transformers has loaded a model: rules by method and card, and real loads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from model_files import LLAMA, LLAMA_PARAMETERS, save_llama

from gpufit.architecture.config import Config
from gpufit.architecture.quantization.loaded import tensors_of_config
from gpufit.architecture.quantization.matching import tensors_of_files
from gpufit.architecture.quantization.registry import declared, method_of, named
from gpufit.architecture.quantization.transformers_load import Resident, resident
from gpufit.architecture.record import Architecture, Component, Kind, Split, Weight
from gpufit.architecture.registry import architecture_of
from gpufit.architecture.tensors import LoadedTensor, total_bytes
from gpufit.sources.model_files.headers import open_headers

AMPERE, ADA, HOPPER, TURING, VOLTA = (8, 0), (8, 9), (9, 0), (7, 5), (7, 0)


def model(**changes: Any) -> Architecture:
    return architecture_of({"model_type": "llama", "torch_dtype": "bfloat16"} | LLAMA | changes, "config.json")


def loaded(config: Config | None, architecture: Architecture | None = None, **options: Any) -> Resident:
    architecture = architecture or model()
    method = method_of(config, architecture.dtype)
    return resident(architecture, tensors_of_config(architecture, method), config, **options)


@pytest.mark.parametrize(("dtype", "size"), [(None, 2), ("F16", 2), ("F32", 4), ("BF16", 2)])
def test_what_is_not_quantised_is_in_the_dtype_asked_for(dtype: str | None, size: int) -> None:
    assert total_bytes(loaded(None, dtype=dtype).tensors) == LLAMA_PARAMETERS * size


def test_what_a_model_keeps_in_float32_stays_so() -> None:
    kept = Weight("model.layers.{layer}.mixer.A_log", (16,), Kind.STATE, Split.COLUMN, layers=(0, 1), dtype="F32")
    architecture = replace(model(), weights=(kept,))
    assert [one.dtype for one in loaded(None, architecture, dtype="F16").tensors] == ["F32"]


def test_layers_for_prediction_and_buffers_of_old_checkpoints_are_not_loaded() -> None:
    predictor = Weight("mtp.up.weight", (8, 8), Kind.LINEAR, Split.COLUMN, component=Component.PREDICTOR)
    buffer = Weight("model.layers.{layer}.rotary_emb.inv_freq", (8,), Kind.STATE, Split.REPLICATED, parameter=False)
    architecture = replace(model(), weights=(predictor, buffer))
    assert loaded(None, architecture).tensors == ()


@pytest.mark.parametrize(
    ("name", "options", "stays"),
    [
        ("fp8", {"capability": HOPPER}, True),
        ("fp8", {"capability": ADA}, True),
        ("fp8", {"capability": AMPERE}, False),
        ("fp8", {"capability": AMPERE, "kernels": True}, False),
        ("fp8", {}, False),
        ("gptq", {"capability": TURING}, True),
        ("awq", {"capability": AMPERE}, True),
        ("bitsandbytes-nf4", {"capability": AMPERE}, True),
        ("bitsandbytes-int8", {}, True),
        ("torchao-int8wo", {"capability": AMPERE}, True),
        ("hqq-int4", {"capability": AMPERE}, True),
        ("quanto-int4", {"capability": AMPERE}, True),
    ],
)
def test_quantised_weights_stay_or_not_by_method_and_card(name: str, options: dict[str, Any], stays: bool) -> None:
    found = loaded(named(name), **options)
    stored = total_bytes(tensors_of_config(model(), method_of(named(name), "BF16")))
    assert total_bytes(found.tensors) == (stored if stays else LLAMA_PARAMETERS * 2)
    assert bool(found.notes) is not stays
    assert found.refused == ""


def test_dequantised_weights_are_in_the_dtype_asked_for() -> None:
    found = loaded(named("fp8"), capability=AMPERE, dtype="F32")
    assert total_bytes(found.tensors) == LLAMA_PARAMETERS * 4
    assert "dequantised to F32" in found.notes[0]


# gpt-oss-20b: 24 layers of 32 experts of 2,880; https://huggingface.co/openai/gpt-oss-20b/blob/main/config.json
LAYERS = tuple(range(24))
GATE_UP = Weight(
    "model.layers.{layer}.mlp.experts.gate_up_proj", (32, 2880, 5760), Kind.EXPERT, Split.COLUMN, layers=LAYERS
)
ROUTER = Weight("model.layers.{layer}.mlp.router.weight", (32, 2880), Kind.ROUTER, Split.REPLICATED, layers=LAYERS)
WEIGHTS = 24 * 32 * 2880 * 5760


@pytest.mark.parametrize(
    ("capability", "kernels", "experts_bytes"),
    [
        # Half a byte a code and a byte for 32; without kernels or on an old card two bytes each.
        (AMPERE, True, WEIGHTS // 2 + WEIGHTS // 32),
        (TURING, True, WEIGHTS // 2 + WEIGHTS // 32),
        # Rows of 2,880 codes become 3,072 in the layout for Hopper.
        (HOPPER, True, WEIGHTS // 2880 * 3072 // 2 + WEIGHTS // 32),
        (HOPPER, False, WEIGHTS * 2),
        (VOLTA, True, WEIGHTS * 2),
        (None, True, WEIGHTS * 2),
    ],
)
def test_mxfp4_stays_with_kernels_on_a_card_that_can(
    capability: tuple[int, int] | None, kernels: bool, experts_bytes: int
) -> None:
    architecture = replace(model(), weights=(GATE_UP, ROUTER))
    found = loaded(named("mxfp4"), architecture, capability=capability, kernels=kernels)
    assert total_bytes(found.tensors) == experts_bytes + 24 * 32 * 2880 * 2


def test_compressed_tensors_are_dense_after_the_first_forward() -> None:
    weights = {"num_bits": 4, "type": "int", "group_size": 32}
    values = {
        "quant_method": "compressed-tensors",
        "format": "pack-quantized",
        "config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}},
        "ignore": ["lm_head"],
    }
    found = loaded(Config(values, "q"), capability=HOPPER)
    assert total_bytes(found.tensors) == LLAMA_PARAMETERS * 2
    assert "by the first forward" in found.notes[0]


@pytest.mark.parametrize(
    ("name", "capability", "said"),
    [("fbgemm_fp8", ADA, "compute capability 9.0"), ("fbgemm_fp8", None, "9.0"), ("fbgemm_fp8", HOPPER, "")],
)
def test_a_card_that_a_method_refuses_is_said(name: str, capability: tuple[int, int] | None, said: str) -> None:
    refused = loaded(named(name), capability=capability).refused
    assert said in refused
    assert bool(refused) is bool(said)


def test_transformers_has_no_loader_for_modelopt() -> None:
    assert (
        "ModelOpt" in loaded(Config({"quant_method": "modelopt", "quant_algo": "FP8"}, "q"), capability=HOPPER).refused
    )


def test_gguf_blocks_are_dequantised_unless_kernels_keep_them() -> None:
    architecture = model()
    config = declared({"quantization_config": {"quant_method": "gguf"}}, "f.gguf")
    blocks = [_block(weight) for weight in architecture.weights]
    found = resident(architecture, blocks, config, dtype="F16")
    assert total_bytes(found.tensors) == LLAMA_PARAMETERS * 2
    assert "kernels package" in found.notes[0]
    assert total_bytes(resident(architecture, blocks, config, kernels=True).tensors) == total_bytes(blocks)


def _block(weight: Weight) -> LoadedTensor:
    """The weight in Q8_0: blocks of 32 of 34 bytes."""
    size = weight.elements // 32 * 34
    return LoadedTensor(weight.name, "Q8_0", weight.shape, size, weight.layers, weight.experts, weight)


@pytest.mark.model
@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_a_saved_model_loads_to_what_its_headers_tell(tmp_path: Path, dtype: str) -> None:
    import torch
    import transformers

    folder = save_llama(tmp_path / "model")
    headers = open_headers(str(folder))
    architecture = architecture_of(headers.config, headers.config_where)
    tensors = tensors_of_files(architecture, headers.tensors).tensors
    found = resident(architecture, tensors, None, dtype={"bfloat16": "BF16", "float32": "F32"}[dtype])
    real = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype))
    assert total_bytes(found.tensors) == sum(one.nbytes for one in real.parameters())


@pytest.mark.model
@pytest.mark.parametrize("bits", [4, 8])
def test_bitsandbytes_loads_to_what_its_rule_tells(tmp_path: Path, bits: int) -> None:
    import torch
    import transformers

    folder = save_llama(tmp_path / "model", hidden_size=256, intermediate_size=512)
    name = "bitsandbytes-nf4" if bits == 4 else "bitsandbytes-int8"
    headers = open_headers(str(folder))
    architecture = architecture_of(headers.config, headers.config_where)
    tensors = tensors_of_config(architecture, method_of(named(name), architecture.dtype), experts=False)
    config = transformers.BitsAndBytesConfig(
        **{f"load_in_{bits}bit": True}, **({"bnb_4bit_quant_type": "nf4"} if bits == 4 else {})
    )
    real = transformers.AutoModelForCausalLM.from_pretrained(folder, quantization_config=config, dtype=torch.bfloat16)
    held = 0
    for parameter in real.parameters():
        held += parameter.nbytes
        state, scales = getattr(parameter, "quant_state", None), getattr(parameter, "SCB", None)
        held += sum(one.nbytes for one in (state.absmax, state.code)) if state is not None else 0
        held += scales.nbytes if scales is not None else 0
    assert total_bytes(resident(architecture, tensors, named(name)).tensors) == held
