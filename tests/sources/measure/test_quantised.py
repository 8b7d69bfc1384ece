"""Quantised models, really quantised: what their storages hold, by arithmetic, and what they compute in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from model_files import rewrite_config
from packaging.version import Version
from quantised_models import (
    LAYERS,
    LINEAR_ROWS,
    LINEAR_WEIGHTS,
    LINEARS,
    OTHER_WEIGHTS,
    ROTARY_BUFFERS,
    save_wide_llama,
)
from safetensors.torch import load_file, save_file
from test_loading import make_job

from gpufit.errors import MeasurementError, UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.peaks import Phase
from gpufit.profile.precision import Precision
from gpufit.sources.measure.loading import load, plan_load
from gpufit.sources.measure.quantization import check_quantization
from gpufit.sources.measure.session import Session, open_session, plan
from gpufit.sources.measure.storages import ResidentModel, resident_model
from gpufit.sources.model_files.find import find_model

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_wide_llama(tmp_path_factory.mktemp("wide") / "llama")


def loaded(saved: Path, quantization: str | None) -> Any:
    job = make_job(model_path=str(saved), quantization=quantization)
    return load(job, plan_load(job), torch.device("cpu"))


def opened(folder: Path, **changes: object) -> Session:
    settings: dict[str, object] = {"model_path": str(folder), "stored": find_model(str(folder), None).stored}
    return open_session(plan(make_job(**(settings | changes))))


def held(resident: ResidentModel) -> tuple[int, int]:
    """(bytes of weights, bytes of buffers and of all else that is kept)."""
    return (
        sum(storage.size_bytes for storage in resident.weights.values()),
        sum(storage.size_bytes for storage in resident.buffers.values()),
    )


PLAIN = (LINEAR_WEIGHTS + OTHER_WEIGHTS) * 2 + ROTARY_BUFFERS
"""What `get_memory_footprint()` says of a wrapper tensor: as if it were bfloat16."""

METHODS = [
    # Rows have one float32 scale each; torchao's int8 has a zero point of one byte each beside it.
    ("torchao-int8wo", LINEAR_WEIGHTS + LINEAR_ROWS * (4 + 1), 0, PLAIN),
    ("torchao-float8wo", LINEAR_WEIGHTS + LINEAR_ROWS * 4, 0, PLAIN),
    # bitsandbytes keeps scales outside of parameters and buffers, where the footprint does not look.
    ("bitsandbytes-int8", LINEAR_WEIGHTS, LINEAR_ROWS * 4, LINEAR_WEIGHTS + OTHER_WEIGHTS * 2 + ROTARY_BUFFERS),
    # Two weights a byte; a float32 absmax for 64 weights, and for each layer the table of 16 float32 values.
    (
        "bitsandbytes-nf4",
        LINEAR_WEIGHTS // 2,
        LINEAR_WEIGHTS // 64 * 4 + LINEARS * 16 * 4,
        LINEAR_WEIGHTS // 2 + OTHER_WEIGHTS * 2 + ROTARY_BUFFERS,
    ),
]


@pytest.mark.parametrize(("method", "weights", "kept_beside", "footprint"), METHODS)
def test_storages_are_those_of_the_arithmetic_and_the_footprint_is_not(
    saved: Path, method: str, weights: int, kept_beside: int, footprint: int
) -> None:
    model = loaded(saved, method)
    assert held(resident_model(model, "cpu")) == (weights + OTHER_WEIGHTS * 2, kept_beside + ROTARY_BUFFERS)
    assert model.get_memory_footprint() == footprint
    assert footprint != sum(held(resident_model(model, "cpu")))


def test_without_quantisation_storages_and_footprint_agree(saved: Path) -> None:
    model = loaded(saved, None)
    assert sum(held(resident_model(model, "cpu"))) == PLAIN == model.get_memory_footprint()


def test_absmax_within_a_quant_state_is_found_where_it_is_nested_and_quantised_itself(saved: Path) -> None:
    config = transformers.BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True
    )
    model = transformers.AutoModelForCausalLM.from_pretrained(saved, dtype="auto", quantization_config=config)
    absmaxes = LINEAR_WEIGHTS // 64
    # Each absmax is a byte, and 256 of them share a float32: q, k, v and o have up to 256, the MLP's three 512 each.
    shared = LAYERS * (4 * 1 + 3 * 2)
    # Beside them each linear layer keeps an offset and the table of 16 float32; the table of 256 that turns bytes
    # back is left out here, since releases differ in how many layers share one.
    kept = [storage.size_bytes for storage in resident_model(model, "cpu").buffers.values()]
    without_tables = sum(size for size in kept if size != 256 * 4)
    assert without_tables == absmaxes + shared * 4 + LINEARS * (4 + 16 * 4) + ROTARY_BUFFERS
    assert 256 * 4 in kept


@pytest.mark.parametrize("method", [method for method, *_ in METHODS])
def test_a_quantised_models_parts_add_up_with_its_weights_whole_in_every_phase(saved: Path, method: str) -> None:
    session = opened(saved, quantization=method)
    phases = {peak.phase: peak for peak in session.run(Shape(24, 3, 2)).phases}
    weights, kept_beside = next((weights, beside) for name, weights, beside, _ in METHODS if name == method)
    for phase in (Phase.PREFILL, Phase.DECODE):
        parts = phases[phase].parts
        assert parts.total_bytes == phases[phase].allocated_bytes
        assert parts.unexplained_bytes == 0
        assert parts.weights_bytes == weights + OTHER_WEIGHTS * 2
    if method == "bitsandbytes-nf4":
        # The first forward lays the weights out for the processor, and turns each absmax into bfloat16.
        kept_beside -= LINEAR_WEIGHTS // 64 * 2
    assert phases[Phase.DECODE].parts.buffers_bytes == kept_beside + ROTARY_BUFFERS


def precision_of(folder: Path, **changes: object) -> Precision:
    return opened(folder, **changes).loaded.precision


def matmul_of(precision: Precision) -> tuple[tuple[str, ...], tuple[str, ...]]:
    (found,) = [one for one in precision.compute if one.family == "matmul"]
    return found.inputs, found.dtypes


def mib(size_bytes: int) -> str:
    return f"{size_bytes / 2**20:.1f} MiB"


def test_weight_only_quantisation_is_said_to_be_dequantised_in_every_forward(saved: Path) -> None:
    int8 = precision_of(saved, quantization="torchao-int8wo")
    assert matmul_of(int8) == (("bfloat16",), ("bfloat16",))
    assert int8.findings == (
        "stored BF16, resident int8: quantised at load by torchao",
        # Every weight once as bfloat16.
        "weights int8, matrix products in bfloat16: dequantised in every forward "
        f"({mib(LINEAR_WEIGHTS * 2)} as bfloat16)",
    )
    float8 = precision_of(saved, quantization="torchao-float8wo")
    assert float8.findings == (
        "stored BF16, resident float8_e4m3fn: quantised at load by torchao",
        # torchao multiplies by the scale in float32 before it casts to bfloat16.
        "weights float8_e4m3fn, matrix products in bfloat16: dequantised in every forward "
        f"({mib(LINEAR_WEIGHTS * 4)} as float32)",
    )
    nf4 = precision_of(saved, quantization="bitsandbytes-nf4")
    assert nf4.findings == (
        "stored BF16, resident uint8: quantised at load by bitsandbytes",
        "weights uint8, matrix products in bfloat16: dequantised in every forward",
    )
    assert nf4.quantization is not None
    assert nf4.quantization.parameters["bnb_4bit_compute_dtype"] == "bfloat16"


def test_products_that_are_really_in_int8_are_not_called_dequantised(saved: Path) -> None:
    precision = precision_of(saved, quantization="bitsandbytes-int8")
    assert "int8" in matmul_of(precision)[0]
    assert precision.findings == ("stored BF16, resident int8: quantised at load by bitsandbytes",)


def test_four_bit_products_follow_the_dtype_of_the_weights_and_nothing_else(saved: Path) -> None:
    precision = precision_of(saved, quantization="bitsandbytes-nf4", dtype="float16")
    assert precision.quantization is not None
    assert precision.quantization.parameters["bnb_4bit_compute_dtype"] == "float16"
    assert matmul_of(precision)[1] == ("float16",)


def test_quanto_tensors_are_unfolded_where_quanto_is_installed(saved: Path) -> None:
    pytest.importorskip("optimum.quanto", reason="optimum-quanto brings a compiler's build tool: not required")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        saved, dtype="auto", quantization_config=transformers.QuantoConfig(weights="int8")
    )
    # A bfloat16 scale for each row; an input and an output scale of one float32 for each linear layer.
    weights, beside = held(resident_model(model, "cpu"))
    assert weights == LINEAR_WEIGHTS + LINEAR_ROWS * 2 + OTHER_WEIGHTS * 2
    assert beside == LINEARS * 2 * 4 + ROTARY_BUFFERS


def test_the_parameters_of_a_method_are_told_however_deep_they_stand(saved: Path) -> None:
    quantization = precision_of(saved, quantization="torchao-int8wo").quantization
    assert quantization is not None
    assert quantization.method == "torchao"
    assert quantization.parameters["quant_type.default"] == "Int8WeightOnlyConfig"
    assert quantization.parameters["quant_type.default.granularity"] == "PerRow"
    assert not any("_" in (key[0], key.rpartition(".")[2][0]) for key in quantization.parameters)


def save_fp8(saved: Path, folder: Path) -> Path:
    """The model in fine-grained FP8, as DeepSeek-V3 is published: blocks of 128 x 128, one inverse scale each.

    https://huggingface.co/deepseek-ai/DeepSeek-V3/blob/main/README_WEIGHTS.md
    """
    model = transformers.AutoModelForCausalLM.from_pretrained(saved)
    model.save_pretrained(folder)
    tensors = load_file(folder / "model.safetensors")
    for name, tensor in list(tensors.items()):
        if "_proj" not in name:
            continue
        blocks = tuple(-(-size // 128) for size in tensor.shape)
        tensors[name] = tensor.to(torch.float8_e4m3fn)
        tensors[name.replace("weight", "weight_scale_inv")] = torch.ones(blocks)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    rewrite_config(
        folder,
        quantization_config={
            "quant_method": "fp8",
            "weight_block_size": [128, 128],
            "activation_scheme": "dynamic",
            "fmt": "e4m3",
        },
    )
    return folder


@pytest.mark.skipif(torch.cuda.is_available(), reason="a card may multiply in FP8")
@pytest.mark.skipif(
    Version(transformers.__version__) < Version("5.24"), reason="transformers 5.0 asks for triton even to dequantise"
)
def test_an_fp8_checkpoint_is_dequantised_where_no_fp8_product_exists_and_a_finding_says_so(
    saved: Path, tmp_path: Path
) -> None:
    session = opened(save_fp8(saved, tmp_path / "fp8"))
    precision = session.loaded.precision
    assert {share.dtype: share.size_bytes for share in precision.stored}["F8_E4M3"] == LINEAR_WEIGHTS
    assert [share.dtype for share in precision.resident] == ["bfloat16"]
    assert precision.findings == (
        "stored F8_E4M3, resident bfloat16: dequantised at load, as transformers does on a device without FP8 matrix "
        "products (none below compute capability 8.9)",
    )
    (peak,) = session.run(Shape(8, 1, 1)).phases
    assert peak.parts.weights_bytes == (LINEAR_WEIGHTS + OTHER_WEIGHTS) * 2


@pytest.mark.parametrize(
    ("declared", "cause"),
    [
        ({"quant_method": "gptq", "bits": 4, "group_size": 128}, "optimum"),
        ({"quant_method": "awq", "bits": 4, "group_size": 128}, "AWQ quantized model requires"),
        ({"quant_method": "compressed-tensors", "format": "pack-quantized"}, "compressed-tensors"),
    ],
)
def test_a_checkpoint_whose_method_is_not_installed_is_refused_in_one_line(
    saved: Path, tmp_path: Path, declared: dict[str, object], cause: str
) -> None:
    folder = save_wide_llama(tmp_path / "declared")
    rewrite_config(folder, quantization_config=declared)
    with pytest.raises(MeasurementError, match=cause) as refused:
        opened(folder)
    assert "\n" not in str(refused.value)
    assert str(refused.value).startswith("some/model: transformers cannot load it: ")


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("gptq", "calibrates on data and needs a checkpoint quantised beforehand"),
        ("awq", "calibrates on data and needs a checkpoint quantised beforehand"),
        ("fp8", "needs a checkpoint quantised beforehand"),
        ("mxfp4", "needs a checkpoint quantised beforehand"),
        ("torchao-int4wo", "runs only on a card"),
        ("int3", "use one of torchao-int8wo, torchao-float8wo, bitsandbytes-int8, bitsandbytes-nf4"),
    ],
)
def test_what_cannot_be_asked_for_is_refused_in_one_line_with_its_cause(saved: Path, name: str, cause: str) -> None:
    with pytest.raises(UsageError, match=cause) as refused:
        check_quantization(name, find_model(str(saved), None))
    assert str(refused.value).startswith(f"--quantization {name}: ")
    assert "\n" not in str(refused.value)


def test_a_missing_package_is_named_with_what_installs_it(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = find_model(str(saved), None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MeasurementError, match=r"needs torchao, .*pip install 'gpufit\[measure,quant\]'"):
        check_quantization("torchao-int8wo", files)
    check_quantization(None, files)


def test_a_model_that_is_quantised_already_is_not_quantised_again(saved: Path, tmp_path: Path) -> None:
    folder = save_fp8(saved, tmp_path / "fp8")
    with pytest.raises(UsageError, match=r"--quantization torchao-int8wo: fp8 is quantised already \(fp8\)"):
        check_quantization("torchao-int8wo", find_model(str(folder), None))


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(
            "torchao-int8wo",
            marks=pytest.mark.skipif(
                Version(transformers.__version__) < Version("5.24"),
                reason="transformers 5.0 reads such checkpoints through a module that torchao 0.18 no longer has",
            ),
        ),
        "bitsandbytes-nf4",
    ],
)
def test_a_checkpoint_that_was_quantised_beforehand_is_measured_as_it_is(
    saved: Path, tmp_path: Path, method: str
) -> None:
    loaded(saved, method).save_pretrained(tmp_path / "quantised")
    session = opened(tmp_path / "quantised")
    weights = next(weights for name, weights, *_ in METHODS if name == method)
    assert sum(share.size_bytes for share in session.loaded.precision.resident) == weights + OTHER_WEIGHTS * 2
    (finding,) = session.loaded.precision.findings
    assert "dequantised in every forward" in finding


def test_nothing_is_quantised_unless_asked(saved: Path) -> None:
    precision = precision_of(saved)
    assert precision.quantization is None
    assert precision.findings == ()
