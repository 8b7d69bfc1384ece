"""transformers' rules against recorded CPU runs of small models of many families (tests/facts/profiles)."""

from __future__ import annotations

from pathlib import Path

import pytest
from architectures import ARCHITECTURES

from gpufit.architecture.quantization.loaded import tensors_of_config
from gpufit.architecture.record import Component
from gpufit.architecture.registry import architecture_of
from gpufit.architecture.tensors import in_loading_order
from gpufit.memory.engines.transformers.model import phases, resident
from gpufit.memory.engines.transformers.passes import Run
from gpufit.memory.engines.transformers.rules import rules_of
from gpufit.memory.predict import predict_untested
from gpufit.memory.terms import Knees, Shape
from gpufit.profile.cells import Measured
from gpufit.profile.evidence import Evidence
from gpufit.profile.store import load_profile

RECORDED = Path(__file__).resolve().parents[2] / "facts" / "profiles" / "architectures"
HALF = 2

WITHIN = {
    "llama": 0.002,
    "mistral": 0.05,
    "gemma3": 0.05,
    "mixtral": 0.03,
    "qwen3_moe": 0.08,
    # GPT-2's layer norms and gpt-oss's eager attention are told as their kin's, which take more.
    "gpt2": 0.11,
    "gpt_oss": 0.19,
    "bert": 0.03,
}
"""How far a peak may be from the recorded one at the largest cell: CPU kernels take scratch of their own, of some KiB a
token here, where hidden states are 64 numbers wide."""


@pytest.mark.model
@pytest.mark.parametrize("name", WITHIN)
def test_a_recorded_model_lies_within_its_interval(name: str) -> None:
    profile = load_profile(RECORDED / f"{name}.json")
    config = ARCHITECTURES[name]().config.to_dict() | {
        "torch_dtype": "bfloat16",
        "architectures": [profile.model.architecture],
    }
    model = architecture_of(config, name)
    run = Run(rules_of(profile.engine.version), HALF, HALF, profile.engine.attention, True, on_card=False)
    loaded = [
        one
        for one in tensors_of_config(model, None, "BF16")
        if one.weight is not None and one.weight.component is not Component.PREDICTOR
    ]
    kept = resident(model, run, [one.size_bytes for one in in_loading_order(loaded)]).parts
    cell = max(profile.measured_cells, key=lambda one: one.context_tokens * one.concurrency)
    assert isinstance(cell.outcome, Measured)
    assert {kept.weights_bytes} == {one.parts.weights_bytes for one in cell.outcome.phases}
    measured = {one.phase: one.allocated_bytes for one in cell.outcome.phases}
    for one in phases(model, run, kept):
        told = predict_untested(one, Shape(*cell.key), Knees(window=model.sliding_window or 0), Evidence.COMPUTED)
        assert told.lower_bytes <= measured[one.phase] <= told.upper_bytes
        assert told.allocated_bytes == pytest.approx(measured[one.phase], rel=WITHIN[name])
