"""What two profiles record differently: each topic, and the order in which it is named."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from builders import WEIGHTS, make_profile

from gpufit.advice.differences import Difference, Topic, differences
from gpufit.profile.environment import DeviceInfo, Environment
from gpufit.profile.evidence import Evidence
from gpufit.profile.precision import ComputeDtype, DtypeShare, Quantization
from gpufit.profile.record import Profile


def changed(record: str, **fields: Any) -> Profile:
    """The default profile with fields of one of its records changed."""
    profile = make_profile()
    return msgspec.structs.replace(profile, **{record: msgspec.structs.replace(getattr(profile, record), **fields)})


def only(other: Profile, one: Profile | None = None) -> Difference:
    (found,) = differences(one or make_profile(), other)
    return found


def test_a_profile_differs_from_itself_in_nothing() -> None:
    assert differences(make_profile(), make_profile()) == ()


@pytest.mark.parametrize(
    ("record", "fields", "topic", "words"),
    [
        (
            "model",
            {"architecture": "GPT2LMHeadModel"},
            Topic.MODEL,
            "architecture: LlamaForCausalLM against GPT2LMHeadModel",
        ),
        ("model", {"parameters": 129_000_000}, Topic.MODEL, "parameters: 128,000,000 against 129,000,000"),
        ("model", {"revision": "abc"}, Topic.MODEL, "revision: none against abc"),
        ("model", {"fingerprint": "f" * 64}, Topic.MODEL, "hash of the files: 000000000000 against ffffffffffff"),
        ("model", {"sliding_window": 4096}, Topic.MODEL, "sliding window: none against 4,096"),
        (
            "precision",
            {"resident": (DtypeShare(dtype="float32", size_bytes=2 * WEIGHTS, tensors=200),)},
            Topic.PRECISION,
            "resident: float16 against float32",
        ),
        (
            "precision",
            {"compute": (ComputeDtype(family="matmul", dtypes=("bfloat16",), calls=1),)},
            Topic.PRECISION,
            "computed (matmul): float16 against bfloat16",
        ),
        (
            "precision",
            {"kv": (DtypeShare(dtype="float8_e4m3fn", size_bytes=1, tensors=1),)},
            Topic.PRECISION,
            "KV cache: float16 against float8_e4m3fn",
        ),
        ("workload", {"dtype_requested": "float16"}, Topic.PRECISION, "--dtype asked for: auto against float16"),
        (
            "workload",
            {"compute_dtype": "bfloat16"},
            Topic.PRECISION,
            "autocast (--compute-dtype): none against bfloat16",
        ),
        ("workload", {"logits_kept": "all"}, Topic.WORKLOAD, "logits kept: last against all"),
        (
            "workload",
            {"cache_implementation": "static"},
            Topic.WORKLOAD,
            "cache implementation: dynamic against static",
        ),
        ("workload", {"image_size": (448, 336)}, Topic.WORKLOAD, "image size: none against 448 x 336"),
        ("workload", {"tensor_parallel_size": 2}, Topic.WORKLOAD, "cards that share the model: 1 against 2"),
        ("workload", {"memory_limit_bytes": 2**30}, Topic.WORKLOAD, "memory limit of the run: none against 1.00 GiB"),
        ("engine", {"version": "5.25.0"}, Topic.ENGINE, "transformers release: 5.24.0 against 5.25.0"),
        ("engine", {"name": "vllm"}, Topic.ENGINE, "engine: transformers against vllm"),
        ("engine", {"attention": "eager"}, Topic.ENGINE, "attention: sdpa against eager"),
    ],
)
def test_a_difference_is_named_under_its_topic(record: str, fields: dict[str, Any], topic: Topic, words: str) -> None:
    found = only(changed(record, **fields))
    assert (found.topic, found.words) == (topic, words)


def on(device: dict[str, Any] | None = None, **fields: Any) -> Profile:
    card = {"kind": "cuda", "name": "NVIDIA H100", "total_bytes": 79 * 2**30, "compute_capability": "9.0"}
    environment = {
        "device": DeviceInfo(**(card | (device or {}))),
        "versions": {"torch": "2.13.0", "transformers": "5.24.0", "python": "3.11"},
    }
    return make_profile(environment=Environment(**(environment | fields)))


@pytest.mark.parametrize(
    ("other", "topic", "words"),
    [
        (
            on(versions={"torch": "2.14.0", "transformers": "5.24.0", "python": "3.11"}),
            Topic.ENVIRONMENT,
            "version of torch: 2.13.0 against 2.14.0",
        ),
        (
            on(settings={"PYTORCH_ALLOC_CONF": "expandable_segments:True"}),
            Topic.ENVIRONMENT,
            "PYTORCH_ALLOC_CONF: none against expandable_segments:True",
        ),
        (on({"driver": "580.65"}), Topic.ENVIRONMENT, "driver: none against 580.65"),
        (on({"runtime": "13.0"}), Topic.ENVIRONMENT, "CUDA or HIP of torch: none against 13.0"),
        (on(flags=("another process held 3 GiB",)), Topic.DEVICE, "flagged: none against another process held 3 GiB"),
        (on({"compute_capability": "9.1"}), Topic.DEVICE, "compute capability: 9.0 against 9.1"),
        (on({"context_bytes": 2**29}), Topic.DEVICE, "driver context and kernels: none against 512.0 MiB"),
        (on({"name": "NVIDIA H200"}), Topic.DEVICE, "device: NVIDIA H100 (cuda) against NVIDIA H200 (cuda)"),
    ],
)
def test_where_it_ran_is_told_apart_from_what_it_ran_on(other: Profile, topic: Topic, words: str) -> None:
    found = only(other, on())
    assert (found.topic, found.words) == (topic, words)


def test_the_model_comes_first_and_the_device_last() -> None:
    other = msgspec.structs.replace(
        on({"name": "NVIDIA H200"}, versions={"torch": "2.14.0"}, settings={"A": "1"}),
        model=msgspec.structs.replace(make_profile().model, parameters=1),
        engine=msgspec.structs.replace(make_profile().engine, attention="eager"),
        workload=msgspec.structs.replace(make_profile().workload, logits_kept="all", dtype_requested="float32"),
        evidence=Evidence.SIMULATED,
    )
    topics = list(dict.fromkeys(one.topic for one in differences(on(), other)))
    assert topics == list(Topic)


def test_nothing_that_ran_nowhere_differs_in_its_environment() -> None:
    computed = msgspec.structs.replace(
        make_profile(),
        evidence=Evidence.COMPUTED,
        model=msgspec.structs.replace(make_profile().model, fingerprint="f" * 64),
        environment=Environment(
            device=DeviceInfo(kind="none", name="no device (arithmetic)", total_bytes=0), versions={}
        ),
    )
    # A hash of headers is never that of the files, and no device has no driver, no libraries and no memory.
    assert [(one.topic, one.what) for one in differences(make_profile(), computed)] == [
        (Topic.EVIDENCE, "evidence"),
        (Topic.DEVICE, "device"),
    ]


def test_the_same_files_do_not_differ_in_their_quantisation() -> None:
    def quantised(method: str | None, stored: str) -> Profile:
        return changed(
            "precision",
            stored=(DtypeShare(dtype=stored, size_bytes=1, tensors=1),),
            quantization=None if method is None else Quantization(method=method),
        )

    assert differences(quantised("gguf", "Q4_1"), quantised(None, "Q4_1")) == ()
    found = differences(quantised("gptq", "I32"), quantised(None, "F16"))
    assert [one.words for one in found] == ["stored: I32 against F16", "quantised in the files: gptq against none"]


def test_shares_tell_a_mixture_whatever_the_size() -> None:
    def resident(**sizes: int) -> Profile:
        shares = (DtypeShare(dtype=dtype, size_bytes=size, tensors=1) for dtype, size in sizes.items())
        return changed("precision", resident=tuple(shares))

    assert only(resident(bfloat16=97, float32=3)).b == "bfloat16 97%, float32 3%"
    assert differences(resident(bfloat16=97, float32=3), resident(bfloat16=9700, float32=300)) == ()


def test_families_of_one_difference_stand_together_and_the_mixed_one_bears_on_nothing() -> None:
    def computed(dtype: str, mixed: str) -> Profile:
        families = {"matmul": dtype, "attention": dtype, "norm": "float32", "other": mixed}
        return changed(
            "precision",
            compute=tuple(ComputeDtype(family=name, dtypes=(one,), calls=1) for name, one in families.items()),
        )

    together, mixed = differences(computed("float16", "float16"), computed("float32", "int8"))
    assert together.words == "computed (matmul, attention): float16 against float32"
    assert "temporaries_bytes" in together.bears_on
    assert (mixed.what, mixed.bears_on) == ("computed (other)", ())


def test_packed_weights_are_no_other_model() -> None:
    """Four numbers in a byte are counted as one parameter: fewer of them are another precision, not another model."""
    packed = msgspec.structs.replace(
        changed("model", parameters=40_000_000),
        workload=msgspec.structs.replace(make_profile().workload, quantization="bitsandbytes-nf4"),
        precision=msgspec.structs.replace(
            make_profile().precision, resident=(DtypeShare(dtype="uint8", size_bytes=WEIGHTS // 4, tensors=200),)
        ),
    )
    assert [one.words for one in differences(make_profile(), packed)] == [
        "resident: float16 against uint8",
        "--quantization asked for: none against bitsandbytes-nf4",
    ]


def test_counts_of_numbers_are_told_whatever_the_files_are_quantised_by() -> None:
    """A config that names MXFP4, dequantised at load, beside one of plain numbers: nothing is packed in memory, so both
    counts are of numbers, and the method is told where neither names what its files hold."""
    plain = changed("precision", stored=(), quantization=None)
    mxfp4 = changed("precision", stored=(), quantization=Quantization(method="MXFP4 (experts)"))
    mxfp4 = msgspec.structs.replace(mxfp4, model=msgspec.structs.replace(mxfp4.model, parameters=116_829_156_672))
    found = differences(plain, mxfp4)
    assert [one.words for one in found] == [
        "parameters: 128,000,000 against 116,829,156,672",
        "quantised in the files: none against MXFP4 (experts)",
    ]
    assert differences(mxfp4, mxfp4) == ()
