"""transformers' rules against an A100's readings, a recorded run, and sizes worked out by hand."""

from __future__ import annotations

import csv
import statistics
from pathlib import Path
from typing import Any

import pytest

from gpufit.architecture.quantization.loaded import tensors_of_config
from gpufit.architecture.record import Architecture
from gpufit.architecture.registry import architecture_of
from gpufit.architecture.tensors import in_loading_order
from gpufit.errors import UsageError
from gpufit.memory.engines.transformers.model import phases, resident
from gpufit.memory.engines.transformers.passes import Run
from gpufit.memory.engines.transformers.rules import rules_of
from gpufit.memory.predict import highest_moment
from gpufit.memory.terms import Knees, Shape, units_at
from gpufit.profile.memory_model import PhaseModel
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.store import load_profile

FACTS = Path(__file__).resolve().parents[2] / "facts"
HALF = 2
CUBLAS_WORKSPACE_BYTES = 8_519_680
"""`:4096:2:16:8`. https://github.com/pytorch/pytorch/issues/91564"""


def llama(**changes: Any) -> Architecture:
    """Llama-2-7b as NousResearch published it: https://huggingface.co/NousResearch/Llama-2-7b-hf"""
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 32000,
        "max_position_embeddings": 4096,
    }
    return architecture_of(config | changes, "config.json")


LLAMAS = {
    "Llama-2-7b-hf": llama(),
    "Llama-2-13b-hf": llama(hidden_size=5120, intermediate_size=13824, num_hidden_layers=40, num_attention_heads=40),
}
ATTENTION = {"eager": "eager", "sdpa": "sdpa", "flash": "flash_attention_2"}


def model_of(model: Architecture, version: str, attention: str, element_bytes: int = HALF) -> dict[Phase, PhaseModel]:
    run = Run(rules_of(version), element_bytes, element_bytes, attention)
    weights = [one.size_bytes for one in in_loading_order(tensors_of_config(model, None, "F16"))]
    return {one.phase: one for one in phases(model, run, resident(model, run, weights).parts)}


def peak(model: PhaseModel, shape: Shape, window: int = 0) -> tuple[str, Parts]:
    return highest_moment(model.moments, units_at(shape, model.phase, Knees(window=window)))


def test_every_reading_of_an_a100_is_met() -> None:
    with (FACTS / "allocator" / "llama-2-a100.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    errors: dict[Phase, list[float]] = {Phase.PREFILL: [], Phase.DECODE: []}
    for row in rows:
        found = model_of(LLAMAS[row["model"]], "4.35.2", ATTENTION[row["attention"]])
        shape = Shape(256, 512, int(row["batch"]))
        for phase, read in ((Phase.PREFILL, row["prefill_allocated_mb"]), (Phase.DECODE, row["decode_allocated_mb"])):
            predicted = peak(found[phase], shape)[1].total_bytes + CUBLAS_WORKSPACE_BYTES
            errors[phase].append(abs(predicted / (int(read) * 10**6) - 1))
    assert len(rows) == 39
    assert statistics.mean(errors[Phase.PREFILL]) < 0.0001
    assert max(errors[Phase.PREFILL]) < 0.0002
    # What is left in decode is the allocator's: keys and values of 10 MiB or more are rounded up to 2 MiB.
    assert statistics.mean(errors[Phase.DECODE]) < 0.001
    assert max(errors[Phase.DECODE]) < 0.002


def test_a_recorded_llama_of_this_release_is_met_term_by_term() -> None:
    profile = load_profile(FACTS / "profiles" / "architectures" / "llama.json")
    assert profile.engine.version == "5.24.0"
    small = llama(
        hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=256, max_position_embeddings=2048,
    )  # fmt: skip
    found = model_of(small, "5.24.0", "sdpa")
    assert profile.memory_model is not None
    (prefill,) = [one for one in profile.memory_model.phases if one.phase is Phase.PREFILL]
    (recorded,) = [one for one in prefill.moments if one.site == "model.layers.0-1.mlp, after up_proj"]
    seen = {(part.part, one.term): round(one.bytes_per_unit) for part in recorded.parts for one in part.coefficients}
    (told,) = [one for one in found[Phase.PREFILL].moments if one.site == "mlp"]
    for part in told.parts:
        for one in part.coefficients:
            if part.part not in ("buffers_bytes", "rounding_bytes"):  # a CPU rounds nothing up
                assert seen[part.part, one.term] == one.bytes_per_unit, (part.part, one.term)
    for cell in profile.measured_cells:
        shape = Shape(*cell.key)
        measured = {one.phase: one for one in cell.outcome.phases}  # type: ignore[union-attr]
        for phase, model in found.items():
            if cell.context_tokens * cell.concurrency >= 2048:  # below, the CPU kernels' own scratch weighs more
                ratio = peak(model, shape)[1].total_bytes / measured[phase].allocated_bytes
                assert ratio == pytest.approx(1, abs=0.02)


def test_the_cache_is_held_twice_before_it_grows_layer_by_layer() -> None:
    # Long enough an answer that its last step outweighs the first, which still holds the prompt's logits.
    shape = Shape(1000, 500, 4)
    cache = 2 * 32 * 4096 * HALF * shape.cached_tokens * shape.concurrency
    old = peak(model_of(LLAMAS["Llama-2-7b-hf"], "4.41.2", "sdpa")[Phase.DECODE], shape)[1]
    new = peak(model_of(LLAMAS["Llama-2-7b-hf"], "4.42.0", "sdpa")[Phase.DECODE], shape)[1]
    past = cache * (shape.cached_tokens - 1) // shape.cached_tokens
    assert old.kv_cache_bytes + old.temporaries_bytes > cache + past
    assert cache < new.kv_cache_bytes + new.temporaries_bytes < cache * 33 // 32 + 2**20


def test_logits_of_every_position_until_4_45() -> None:
    shape = Shape(512, 2, 2)
    rows = shape.context_tokens * shape.concurrency
    site, parts = peak(model_of(LLAMAS["Llama-2-7b-hf"], "4.44.2", "sdpa")[Phase.PREFILL], shape)
    assert site == "logits"
    assert parts.outputs_bytes == rows * 32000 * 4
    assert parts.activations_bytes >= rows * 32000 * HALF
    _, parts = peak(model_of(LLAMAS["Llama-2-7b-hf"], "4.45.0", "sdpa")[Phase.PREFILL], shape)
    assert parts.outputs_bytes == 0


def test_eager_attention_keeps_every_score() -> None:
    model = model_of(LLAMAS["Llama-2-7b-hf"], "5.24.0", "eager")
    once, twice = (peak(model[Phase.PREFILL], Shape(length, 2, 1))[1].temporaries_bytes for length in (8192, 16384))
    # masked scores in half precision, the softmax in float32 and its cast: eight bytes a head and pair at least
    assert once > 32 * 8192**2 * 8
    assert twice > 3.9 * once


@pytest.mark.parametrize("version", ["", "4", "four.five", "latest", "4.x"])
def test_a_version_is_a_release(version: str) -> None:
    with pytest.raises(UsageError, match="is not a release"):
        rules_of(version)


def test_a_release_nobody_read_is_refused() -> None:
    with pytest.raises(UsageError, match=r"from 4\.33 on"):
        rules_of("4.32.1")
