"""The four precisions, observed on real models built from their config classes."""

from __future__ import annotations

import pytest
import torch
import transformers
from measure_plan import make_decoder
from model_files import LLAMA

from gpufit.profile.record import ComputeDtype, DtypeShare, Quantization
from gpufit.sources.measure.precision import findings, observe, quantization_of
from gpufit.sources.measure.storages import plain_tensors, resident_model, storages_within, tensors_within

pytestmark = pytest.mark.model


def families(dtype: torch.dtype, **options: object) -> dict[str, tuple[str, ...]]:
    config = transformers.LlamaConfig(**LLAMA)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=dtype, **options).eval()
    weights = resident_model(model, "cpu").weights.values()
    precision = observe(model, make_decoder(), (), weights, model.config)
    assert [share.dtype for share in precision.kv] == [str(dtype).removeprefix("torch.")]
    return {one.family: one.dtypes for one in precision.compute}


def test_float32_computes_in_float32() -> None:
    assert set(families(torch.float32).values()) == {("float32",)}


def test_bfloat16_norms_and_rotary_tables_compute_in_float32() -> None:
    seen = families(torch.bfloat16)
    assert seen["matmul"][0] == "bfloat16"
    assert seen["attention"][0] == "bfloat16"
    assert seen["norm"][0] == "float32"
    assert seen["rotary"][0] == "float32"
    assert seen["logits"] == ("bfloat16",)


def test_eager_attention_shows_its_softmax_in_float32() -> None:
    seen = families(torch.bfloat16, attn_implementation="eager")
    assert seen["softmax"] == ("float32",)
    assert "attention" not in seen


def shares(dtype: str) -> tuple[DtypeShare, ...]:
    return (DtypeShare(dtype=dtype, size_bytes=100, tensors=1),)


def test_findings_say_what_differs() -> None:
    matmul = (ComputeDtype(family="matmul", dtypes=("float16",), calls=1),)
    assert findings(shares("BF16"), shares("bfloat16"), (), None) == ()
    assert findings(shares("F32"), shares("bfloat16"), (), None) == (
        "stored F32, resident bfloat16: converted at load",
    )
    said = findings(shares("Q4_1"), shares("bfloat16"), matmul, None)
    assert said == (
        "stored Q4_1, resident bfloat16: blocks dequantised at load",
        "resident bfloat16, matrix products in float16",
    )


def test_quantisation_is_read_from_the_config() -> None:
    config = transformers.LlamaConfig(quantization_config={"quant_method": "gptq", "bits": 4, "group_size": 128})
    assert quantization_of(config) == Quantization(method="gptq", parameters={"bits": "4", "group_size": "128"})
    assert quantization_of(transformers.LlamaConfig()) is None


def test_tensors_are_found_in_any_nesting_and_modules_are_not_entered() -> None:
    class Layer:
        def __init__(self) -> None:
            self.keys = torch.zeros(4)
            self.states = {0: [torch.zeros(2), None], "loop": self}
            self.module = torch.nn.Linear(3, 3)

    assert sorted(tensor.numel() for tensor in tensors_within(Layer())) == [2, 4]


def test_empty_and_meta_tensors_hold_nothing() -> None:
    assert storages_within([torch.empty(0), torch.empty(5, device="meta")]) == {}


def test_a_wrapper_tensor_is_unfolded() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    wrapped = TwoTensor(torch.zeros(8), torch.zeros(8))
    assert [tensor.numel() for tensor in plain_tensors(wrapped)] == [8, 8]
    assert sum(storage.size_bytes for storage in storages_within(wrapped).values()) == 64


def test_tensors_that_a_module_keeps_unregistered_count_as_buffers() -> None:
    module = torch.nn.Linear(4, 4, bias=False)
    module.register_buffer("table", torch.zeros(16))
    module.scales = [torch.zeros(32)]
    resident = resident_model(module, "cpu")
    assert sum(one.size_bytes for one in resident.weights.values()) == 4 * 4 * 4
    assert sum(one.size_bytes for one in resident.buffers.values()) == 16 * 4 + 32 * 4
