"""Every kind of cache on a real model: its bytes from the shapes, its parts at their peaks, and what is refused."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
import torch
import transformers
from architectures import ARCHITECTURES, WINDOW
from measure_plan import cached, lengths, make_decoder, measure
from test_loading import make_job, save_config

from gpufit.errors import UsageError
from gpufit.memory.terms import Shape
from gpufit.profile.peaks import Phase, PhasePeak
from gpufit.sources.measure.caches import DEFAULT, CacheChoice
from gpufit.sources.measure.kinds import Kind
from gpufit.sources.measure.precision import observe
from gpufit.sources.measure.session import plan

pytestmark = pytest.mark.model

STATIC, FP8 = CacheChoice("static"), CacheChoice("quantized", "fp8")

LAYERS, NUMBERS_A_TOKEN = 2, 2 * 2 * 2 * 16
"""Layers x (key, value) x KV heads x head size of the small Llama: 128 numbers a token."""

SHAPE = Shape(context_tokens=100, new_tokens=5, concurrency=3)
LONG = Shape(context_tokens=500, new_tokens=5, concurrency=3)
"""Longer than the window of the small models that slide."""

AT_THE_END = 104
"""Tokens of a sequence in its cache: the fifth new one is never fed back."""

needs_fp8 = pytest.mark.skipif(
    not hasattr(transformers.cache_utils, "Fp8QuantizedLayer"),
    reason=f"transformers {transformers.__version__} has no fp8 cache",
)


@pytest.fixture(scope="module")
def llama() -> Any:
    return ARCHITECTURES["llama"]().build()


def peaks(model: Any, cache: CacheChoice) -> dict[Phase, PhasePeak]:
    phases = {peak.phase: peak for peak in measure(model, make_decoder(cache=cache), SHAPE).phases}
    for peak in phases.values():
        assert peak.parts.total_bytes == peak.allocated_bytes
        assert peak.parts.unexplained_bytes == 0
    return phases


def test_a_static_cache_holds_all_tokens_of_the_cell_from_the_first(llama: Any) -> None:
    # Two bytes of bfloat16 a number, and what each layer keeps of its own length.
    whole = {"bfloat16": NUMBERS_A_TOKEN * AT_THE_END * 3 * 2} | lengths(LAYERS)
    found = cached(llama, make_decoder(cache=STATIC), SHAPE)
    assert found == {Phase.PREFILL: whole, Phase.DECODE: whole}
    phases = peaks(llama, STATIC)
    # It stands as KV cache from the first update on, at both peaks, and nothing of it is copied in a step.
    assert {peak.parts.kv_cache_bytes for peak in phases.values()} == {sum(whole.values())}


@needs_fp8
def test_an_fp8_cache_holds_a_byte_a_number_and_two_scales_a_layer(llama: Any) -> None:
    found = cached(llama, make_decoder(cache=FP8), SHAPE)
    scales = LAYERS * 2 * 4
    assert found[Phase.PREFILL] == {"float8_e4m3fn": NUMBERS_A_TOKEN * 100 * 3, "float32": scales}
    assert found[Phase.DECODE] == {"float8_e4m3fn": NUMBERS_A_TOKEN * AT_THE_END * 3, "float32": scales}
    phases = peaks(llama, FP8)
    assert phases[Phase.PREFILL].parts.kv_cache_bytes == NUMBERS_A_TOKEN * 100 * 3 + scales


@needs_fp8
def test_a_step_over_an_fp8_cache_holds_a_layers_keys_and_values_dequantised(llama: Any) -> None:
    dynamic, fp8 = (peaks(llama, cache)[Phase.DECODE].parts for cache in (DEFAULT, FP8))
    assert fp8.kv_cache_bytes < dynamic.kv_cache_bytes
    # One layer's keys and values in bfloat16 again: half of the numbers, two bytes each.
    assert fp8.temporaries_bytes >= NUMBERS_A_TOKEN // 2 * AT_THE_END * 3 * 2


@needs_fp8
def test_the_precision_of_a_quantised_cache_is_what_it_holds(llama: Any) -> None:
    kv = observe(llama, make_decoder(cache=FP8), (), [], llama.config).kv
    assert [share.dtype for share in kv] == ["float8_e4m3fn", "float32"]
    assert kv[0].size_bytes == NUMBERS_A_TOKEN * 16


def test_a_static_cache_holds_no_more_of_a_sliding_layer_than_its_window() -> None:
    gemma = ARCHITECTURES["gemma3"]().build()
    found = cached(gemma, make_decoder(cache=STATIC), LONG)[Phase.PREFILL]
    # Five layers of the window and one of all tokens: (key, value) x 2 KV heads x 32 numbers x two bytes.
    assert found["bfloat16"] == 2 * 2 * 32 * 2 * (5 * WINDOW + LONG.cached_tokens) * 3


def test_what_a_sliding_layer_keeps_of_a_prompt_is_counted_by_storage() -> None:
    mistral = ARCHITECTURES["mistral"]().build()
    found = cached(mistral, make_decoder(), LONG)
    # After prefill a layer looks at its last 383 tokens, but through them holds the storage of all 500. The first step
    # replaces it by one of those 383 and the new token.
    assert found[Phase.PREFILL]["bfloat16"] == NUMBERS_A_TOKEN * 500 * 3 * 2
    assert found[Phase.DECODE]["bfloat16"] == NUMBERS_A_TOKEN * WINDOW * 3 * 2


def test_a_static_cache_keeps_the_states_beside_its_tokens() -> None:
    config = ARCHITECTURES["qwen3_next"]().config
    config.architectures = ["Qwen3NextForCausalLM"]
    if not transformers.Qwen3NextForCausalLM._supports_default_dynamic_cache():
        # Earlier releases of transformers 5 gave it a cache class of its own.
        with pytest.raises(UsageError, match="m has a cache class of its own"):
            STATIC.check("m", Kind.DECODER, config, "cpu")
        return
    model = ARCHITECTURES["qwen3_next"]().build()
    dynamic, static = (cached(model, make_decoder(cache=one), SHAPE)[Phase.DECODE] for one in (DEFAULT, STATIC))
    assert static["bfloat16"] == dynamic["bfloat16"]


def test_a_model_with_a_cache_class_of_its_own_takes_no_other() -> None:
    config = transformers.XLNetConfig(architectures=["XLNetLMHeadModel"])
    with pytest.raises(UsageError, match="--cache-implementation static: m has a cache class of its own"):
        STATIC.check("m", Kind.DECODER, config, "cpu")
    DEFAULT.check("m", Kind.DECODER, config, "cpu")


@pytest.mark.parametrize(
    ("cache", "kind", "device", "said"),
    [
        (
            CacheChoice("offloaded"),
            Kind.DECODER,
            "cpu",
            "--cache-implementation offloaded moves a card's cache to host",
        ),
        (STATIC, Kind.ENCODER, "cpu", "m is an encoder and has no KV cache: leave --cache-implementation static out"),
        (FP8, Kind.ENCODER, "cpu", "m is an encoder and has no KV cache: leave --kv-cache-dtype fp8 out"),
        (CacheChoice("static", "fp8"), Kind.DECODER, "cpu", "--kv-cache-dtype fp8 is a quantised cache, not a static"),
        (FP8, Kind.ENCODER_DECODER, "cpu", "--kv-cache-dtype fp8: transformers has no quantised cache for an encoder-"),
        (FP8, Kind.SPEECH, "cpu", "--kv-cache-dtype fp8: transformers has no quantised cache for an encoder-decoder"),
    ],
)
def test_a_cache_that_cannot_be_had_is_refused_in_one_line(
    cache: CacheChoice, kind: Kind, device: str, said: str
) -> None:
    with pytest.raises(UsageError) as refused:
        cache.check("m", kind, transformers.LlamaConfig(), device)
    assert str(refused.value).startswith(said)
    assert "\n" not in str(refused.value)


@needs_fp8
def test_a_sliding_model_has_no_quantised_cache() -> None:
    config = ARCHITECTURES["mistral"]().config
    with pytest.raises(UsageError, match=r"--kv-cache-dtype fp8: m cannot have it: .* only full attention"):
        FP8.check("m", Kind.DECODER, config, "cpu")


def test_a_transformers_without_the_fp8_cache_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(transformers.cache_utils, "Fp8QuantizedLayer", raising=False)
    with pytest.raises(UsageError, match=f"transformers {transformers.__version__} has no fp8 cache"):
        FP8.check("m", Kind.DECODER, transformers.LlamaConfig(), "cpu")


@pytest.mark.skipif(importlib.util.find_spec("optimum") is None, reason="optimum-quanto is not installed")
def test_quanto_holds_half_a_byte_a_number_and_what_came_last_as_it_was(llama: Any) -> None:
    found = cached(llama, make_decoder(cache=CacheChoice("quantized")), Shape(128, 5, 2))
    numbers = NUMBERS_A_TOKEN * 128 * 2
    # 4 bits a number; a scale and a shift of two bytes for every 64; four new tokens not quantised yet.
    groups, last = numbers // 64 * 2 * 2, NUMBERS_A_TOKEN * 4 * 2 * 2
    assert found[Phase.PREFILL] == {"uint8": numbers // 2, "bfloat16": groups}
    assert found[Phase.DECODE] == {"uint8": numbers // 2, "bfloat16": groups + last}


@pytest.mark.skipif(importlib.util.find_spec("optimum") is not None, reason="optimum is installed here")
def test_a_quantised_cache_needs_its_library() -> None:
    with pytest.raises(
        UsageError, match=r"--cache-implementation quantized: .* optimum-quanto, which is not installed"
    ):
        CacheChoice("quantized").check("m", Kind.DECODER, transformers.LlamaConfig(), "cpu")


@needs_fp8
def test_a_cache_that_can_be_had_is_not_refused() -> None:
    for cache in (DEFAULT, STATIC, FP8):
        cache.check("m", Kind.DECODER, transformers.LlamaConfig(), "cpu")
    CacheChoice("offloaded").check("m", Kind.DECODER, transformers.LlamaConfig(), "cuda")
    DEFAULT.check("m", Kind.ENCODER, transformers.BertConfig(), "cpu")


def test_it_is_refused_before_a_weight_is_read(tmp_path: Any) -> None:
    folder = save_config(tmp_path / "llama", transformers.LlamaConfig(), "LlamaForCausalLM")
    with pytest.raises(UsageError, match="on cpu there is nothing to move"):
        plan(make_job(model_path=folder, cache_implementation="offloaded"))
    assert torch.device("cpu") == plan(make_job(model_path=folder)).device.torch_device
