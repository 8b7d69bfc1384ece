"""The four precisions, observed on real models built from their config classes."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
import transformers
from architectures import ARCHITECTURES
from measure_plan import make_decoder, make_plan
from model_files import LLAMA, LLAMA_PARAMETERS
from packaging.version import Version

from gpufit.memory.terms import Shape
from gpufit.profile.peaks import Phase
from gpufit.profile.precision import ComputeDtype, DtypeShare, Precision, Quantization
from gpufit.sources.measure.drivers.autocast import Autocast
from gpufit.sources.measure.precision import DtypeTrace, findings, observe, quantization_of
from gpufit.sources.measure.run import measure_cell
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


def said(
    stored: str, resident: str, matmul: ComputeDtype | None = None, quantization: Quantization | None = None
) -> tuple[str, ...]:
    precision = Precision(
        stored=shares(stored),
        resident=shares(resident),
        compute=(matmul,) if matmul else (),
        kv=(),
        quantization=quantization,
    )
    return findings(precision, {}, None)


def test_findings_say_what_differs() -> None:
    assert said("BF16", "bfloat16") == ()
    assert said("F32", "bfloat16") == ("stored F32, resident bfloat16: converted at load",)
    matmul = ComputeDtype(family="matmul", dtypes=("float16",), calls=1)
    assert said("Q4_1", "bfloat16", matmul, Quantization(method="gguf")) == (
        "stored Q4_1, resident bfloat16: blocks dequantised at load",
        "resident bfloat16, matrix products in float16",
    )
    assert said("U8", "bfloat16") == ("stored U8, resident bfloat16: dequantised at load",)
    assert said("I8", "int8") == ()


def test_norms_and_softmax_in_float32_are_how_models_are_written_and_no_finding() -> None:
    config = transformers.LlamaConfig(**LLAMA)
    model = transformers.AutoModelForCausalLM.from_config(
        config, dtype=torch.bfloat16, attn_implementation="eager"
    ).eval()
    precision = observe(model, make_decoder(), shares("BF16"), resident_model(model, "cpu").weights.values(), config)
    seen = {one.family: one for one in precision.compute}
    assert seen["softmax"].dtypes == ("float32",)
    assert seen["norm"].inputs[0] == "float32"
    assert seen["matmul"].inputs == ("bfloat16",)
    assert precision.findings == ()


def test_the_products_inside_a_wrapper_tensor_are_seen() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    wrapped = TwoTensor(torch.zeros(4, 4), torch.zeros(4, 4))
    with DtypeTrace() as trace:
        wrapped @ wrapped
    assert (trace.seen["matmul"].results["float32"], trace.seen["matmul"].inputs["float32"]) == (2, 4)


def test_products_of_positions_in_rotary_tables_are_none_of_weights() -> None:
    class TableRotaryEmbedding(torch.nn.Module):
        def forward(self, positions: torch.Tensor) -> torch.Tensor:
            return positions @ positions

    positions = torch.zeros(4, 4)
    with DtypeTrace() as trace:
        TableRotaryEmbedding()(positions)
    assert set(trace.seen) == {"rotary"}


def test_casts_of_weights_are_counted_in_bytes_and_those_of_anything_else_are_not() -> None:
    weight, other = torch.zeros(10), torch.zeros(10)
    with DtypeTrace([weight.untyped_storage().data_ptr()]) as trace:
        weight.to(torch.bfloat16)
        weight[:5].double()
        weight.to(torch.float32)
        other.to(torch.bfloat16)
        weight + other.double()
    assert dict(trace.casts) == {("float32", "bfloat16"): 20, ("float32", "float64"): 40}


def autocast_precision(dtype: torch.dtype, weights: str = "float32") -> Precision:
    model = transformers.AutoModelForCausalLM.from_config(
        transformers.LlamaConfig(**LLAMA), dtype=getattr(torch, weights)
    ).eval()
    name = str(dtype).removeprefix("torch.")
    driver = Autocast(make_decoder(), "cpu", dtype)
    held = resident_model(model, "cpu").weights.values()
    return observe(model, driver, (), held, model.config, autocast=name)


MULTIPLIED = LLAMA_PARAMETERS - LLAMA["vocab_size"] * LLAMA["hidden_size"] - 5 * LLAMA["hidden_size"]
"""Elements of every weight that is multiplied: all but the embedding and the five norms."""


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast_computes_products_in_its_dtype_and_says_what_it_keeps(dtype: torch.dtype) -> None:
    precision = autocast_precision(dtype)
    name = str(dtype).removeprefix("torch.")
    assert {one.family: one.dtypes for one in precision.compute}["matmul"] == (name,)
    assert [share.dtype for share in precision.resident] == ["float32"]
    # Keys pass the rotary tables in float32. Values come from a product; 5.0's cache turns them into the keys' dtype.
    values = next((share.dtype for share in precision.kv if share.dtype != "float32"), "float32")
    sizes = {"float32": 2 * 16 * 2 * 16 * 4}
    sizes[values] = sizes.get(values, 0) + 2 * 16 * 2 * 16 * (4 if values == "float32" else 2)
    assert {share.dtype: share.size_bytes for share in precision.kv} == sizes
    mixed = (f"KV cache in float32 and {name}: autocast casts only part of what is cached",)
    assert precision.findings == (
        f"autocast to {name}: keeps a copy of every weight it casts until the run ends, "
        f"{MULTIPLIED * 2 / 2**20:.1f} MiB of temporaries",
        *(mixed if values == name else ()),
    )
    if Version(transformers.__version__) >= Version("5.24"):
        assert values == name


def test_autocast_of_weights_that_need_no_cast_says_so() -> None:
    assert autocast_precision(torch.bfloat16, "bfloat16").findings[0] == (
        "autocast to bfloat16: no weight had to be cast"
    )


def test_the_copies_that_autocast_keeps_are_temporaries_of_every_phase() -> None:
    model = transformers.AutoModelForCausalLM.from_config(transformers.LlamaConfig(**LLAMA), dtype=torch.float32).eval()
    resident = resident_model(model, "cpu")
    plain = make_plan()
    cast = replace(plain, driver=Autocast(plain.driver, "cpu", torch.bfloat16))
    phases = {peak.phase: peak for peak in measure_cell(model, cast, Shape(8, 3, 1), resident).phases}
    before = {peak.phase: peak for peak in measure_cell(model, plain, Shape(8, 3, 1), resident).phases}
    assert phases[Phase.DECODE].parts.temporaries_bytes >= MULTIPLIED * 2
    assert before[Phase.DECODE].parts.temporaries_bytes < MULTIPLIED * 2
    for peak in phases.values():
        assert peak.parts.total_bytes == peak.allocated_bytes
        assert peak.parts.weights_bytes == LLAMA_PARAMETERS * 4


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


def test_blocks_in_the_file_say_that_it_was_gguf_though_the_copy_that_runs_does_not() -> None:
    model = ARCHITECTURES["llama"]().build()
    for dtype, method in (("Q4_1", "gguf"), ("BF16", None)):
        found = observe(model, make_decoder(), shares(dtype), [], model.config).quantization
        assert (None if found is None else found.method) == method


def test_the_counters_of_a_sliding_cache_are_no_precision_of_it() -> None:
    model = ARCHITECTURES["mistral"]().build()
    assert [share.dtype for share in observe(model, make_decoder(), (), [], model.config).kv] == ["bfloat16"]
