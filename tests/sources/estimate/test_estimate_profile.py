"""Computed profiles: real models beside their recorded runs, and laws over configs of any size."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from model_files import MINILM, REPOSITORY, SMOLLM2, need

from gpufit.errors import UnreadableInputError, UsageError
from gpufit.memory.check import faults
from gpufit.memory.engines.transformers.rules import default_attention, lacks
from gpufit.memory.predict import predict
from gpufit.memory.terms import Shape
from gpufit.profile import codec
from gpufit.profile.cells import Measured
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase
from gpufit.profile.record import Profile
from gpufit.profile.store import load_profile
from gpufit.sources.estimate.profile import estimate
from gpufit.sources.estimate.request import EstimateRequest

PROFILES = REPOSITORY / "tests" / "facts" / "profiles"


@pytest.mark.parametrize(
    ("model", "recorded", "close", "phases"),
    [
        (SMOLLM2, "SmolLM2-135M-Instruct.Q4_1", 0.001, {Phase.PREFILL, Phase.DECODE}),
        # What MiniLM adds up before each norm goes away with it, and is told as if it stayed.
        (MINILM, "all-MiniLM-L6-v2", 0.03, {Phase.FORWARD}),
    ],
)
def test_a_real_model_is_computed_as_it_was_measured(
    model: Path, recorded: str, close: float, phases: set[Phase]
) -> None:
    measured = load_profile(PROFILES / f"{recorded}.json")
    computed = estimate(EstimateRequest(str(need(model)), engine_version=measured.engine.version))
    assert computed.load.parts.weights_bytes == measured.measured_cells[0].outcome.phases[0].parts.weights_bytes  # type: ignore[union-attr]
    assert computed.model.parameters == measured.model.parameters
    assert computed.precision.stored == measured.precision.stored
    cell = max(measured.measured_cells, key=lambda one: one.context_tokens * one.concurrency)
    assert isinstance(cell.outcome, Measured)
    told = {one.phase: one for one in predict(computed, Shape(*cell.key))}
    for peak in cell.outcome.phases:
        assert told[peak.phase].allocated_bytes == pytest.approx(peak.allocated_bytes, rel=close)
        assert told[peak.phase].lower_bytes <= peak.allocated_bytes <= told[peak.phase].upper_bytes
    assert {one.phase for one in cell.outcome.phases} == phases


@st.composite
def configs(draw: st.DrawFn) -> dict[str, object]:
    """Configs of decoders: grouped heads, windows, experts, ties, of any width."""
    kv_heads = draw(st.sampled_from([1, 2, 4, 8]))
    heads = kv_heads * draw(st.sampled_from([1, 2, 4]))
    config: dict[str, object] = {
        "model_type": draw(st.sampled_from(["llama", "mistral", "qwen2", "qwen3", "mixtral"])),
        "hidden_size": heads * 16,
        "head_dim": 16,
        "intermediate_size": draw(st.integers(8, 4096)),
        "num_hidden_layers": draw(st.integers(1, 9)),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "vocab_size": draw(st.integers(100, 200_000)),
        "max_position_embeddings": 2**20,
        "tie_word_embeddings": draw(st.booleans()),
        "torch_dtype": draw(st.sampled_from(["float16", "bfloat16", "float32"])),
    }
    if config["model_type"] in ("mistral", "mixtral"):
        config["sliding_window"] = draw(st.one_of(st.none(), st.integers(8, 5000)))
    if config["model_type"] == "mixtral":
        config |= {"num_local_experts": draw(st.integers(2, 16)), "num_experts_per_tok": 2}
    return config


RELEASES = ("4.35.2", "4.41.0", "4.46.0", "4.51.3", "4.57.0", "5.24.0")


def computed(folder: Path, config: dict[str, object], **options: str) -> Profile:
    path = folder / "config.json"
    path.write_text(json.dumps(config))
    return estimate(EstimateRequest(str(path), **options))


@given(
    config=configs(),
    release=st.sampled_from(RELEASES),
    attention=st.sampled_from(["sdpa", "eager", "flash_attention_2"]),
    shape=st.builds(Shape, st.integers(1, 30_000), st.integers(2, 3000), st.integers(1, 64)),
    more=st.tuples(st.integers(0, 5000), st.integers(0, 500), st.integers(0, 9)),
)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_more_never_needs_less_and_parts_add_up(
    tmp_path: Path,
    config: dict[str, object],
    release: str,
    attention: str,
    shape: Shape,
    more: tuple[int, int, int],
) -> None:
    assume(not lacks(release, str(config["model_type"])))
    assume(attention != "sdpa" or default_attention(str(config["model_type"]), release) == "sdpa")
    profile = computed(tmp_path, config, engine_version=release, attention=attention)
    larger = Shape(shape.context_tokens + more[0], shape.new_tokens + more[1], shape.concurrency + more[2])
    for one, other in zip(predict(profile, shape), predict(profile, larger), strict=True):
        assert one.evidence is Evidence.COMPUTED
        assert one.parts.total_bytes == one.allocated_bytes
        assert one.lower_bytes <= one.allocated_bytes <= one.upper_bytes
        assert one.upper_bytes <= other.upper_bytes
        # Parts are rounded to whole bytes each.
        assert one.allocated_bytes <= other.allocated_bytes + 16


@given(config=configs(), release=st.sampled_from(RELEASES))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_computed_profile_is_read_back_as_it_was(tmp_path: Path, config: dict[str, object], release: str) -> None:
    assume(not lacks(release, str(config["model_type"])))
    profile = computed(tmp_path, config, engine_version=release)
    assert codec.decode(codec.encode(profile), "file") == profile
    assert list(faults(profile)) == []


def test_a_profile_that_only_says_it_was_computed_is_faulty(tmp_path: Path) -> None:
    profile = computed(tmp_path, {**LLAMA})
    posing = msgspec.structs.replace(profile, evidence=Evidence.MEASURED)
    assert list(faults(posing)) == ["its memory model is made of rules, and it calls itself measured"]


LLAMA = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 256, "torch_dtype": "bfloat16",
}  # fmt: skip


def test_an_fp8_cache_takes_half_of_a_16_bit_one(tmp_path: Path) -> None:
    shape = Shape(1024, 2, 3)
    plain = predict(computed(tmp_path, {**LLAMA}), shape)[1].parts.kv_cache_bytes
    half = predict(computed(tmp_path, {**LLAMA}, kv_cache_dtype="fp8"), shape)[1].parts.kv_cache_bytes
    assert plain == 2 * 2 * 2 * 16 * 2 * 1024 * 3
    assert half * 2 == plain


@pytest.mark.parametrize(
    ("config", "options", "why"),
    [
        (
            {"model_type": "qwen3", "num_key_value_heads": 4},
            {"engine_version": "4.40.0"},
            "transformers 4.40.0 has no qwen3",
        ),
        ({"model_type": "gemma2"}, {"engine_version": "4.46.0"}, "caches gemma2 in a way of its own"),
        ({"model_type": "gemma2"}, {"attention": "sdpa"}, "has no sdpa attention"),
        ({}, {"engine_version": "4.35.0", "attention": "sdpa"}, "has no sdpa attention"),
        ({"head_dim": 512}, {"attention": "flash_attention_2"}, "takes up to 256"),
        ({"torch_dtype": "float64"}, {}, "in float64"),
    ],
)
def test_what_a_release_does_not_run_is_refused(
    tmp_path: Path, config: dict[str, object], options: dict[str, str], why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        computed(tmp_path, LLAMA | config, **options)


def test_before_sdpa_attention_was_eager(tmp_path: Path) -> None:
    assert computed(tmp_path, {**LLAMA}, engine_version="4.35.2").engine.attention == "eager"
    assert computed(tmp_path, {**LLAMA}, engine_version="4.36.0").engine.attention == "sdpa"
    assert computed(tmp_path, LLAMA | {"model_type": "gemma2"}).engine.attention == "eager"


@pytest.mark.parametrize(
    ("scaling", "limit"),
    [
        ({"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768}, 131_072),
        ({"rope_type": "linear", "factor": 2.0}, 65_536),
        ({"rope_type": "llama3", "factor": 8.0, "original_max_position_embeddings": 8192}, 32_768),
        ({"rope_type": "longrope", "factor": 8.0}, 32_768),
        (None, 32_768),
    ],
)
def test_positions_reach_as_far_as_they_are_scaled(
    tmp_path: Path, scaling: dict[str, object] | None, limit: int
) -> None:
    found = computed(tmp_path, LLAMA | {"max_position_embeddings": 32768, "rope_scaling": scaling})
    assert found.model.position_limit == limit


def test_steps_of_experts_gather_weights_on_a_card(tmp_path: Path) -> None:
    config = LLAMA | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
    now, before = (
        predict(computed(tmp_path, config, engine_version=release), Shape(16, 8, 100))[2].parts.temporaries_bytes
        for release in ("5.24.0", "4.57.0")
    )
    # 100 tokens, each with two experts, of each three matrices of 64 x 128 in two bytes
    assert now - before == pytest.approx(100 * 2 * 3 * 64 * 128 * 2, rel=0.01)


@pytest.mark.model
@pytest.mark.parametrize(
    ("name", "why"), [("mamba2", "state-space layers"), ("qwen3_next", "linear-attention"), ("t5", "encoder-decoders")]
)
def test_layers_without_rules_are_refused_by_name(tmp_path: Path, name: str, why: str) -> None:
    from architectures import ARCHITECTURES

    config = ARCHITECTURES[name]().config.to_dict()
    with pytest.raises(UnreadableInputError, match=f"{why}.*gpufit simulate"):
        computed(tmp_path, json.loads(json.dumps(config, default=str)))
