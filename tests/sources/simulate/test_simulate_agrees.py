"""A run on fake tensors against the run of the same model on the CPU, both seen by the dispatch feeder."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import torch
from architectures import ARCHITECTURES
from releases import needs_release_read
from simulated import open_simulation, save_config

from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import PhasePeak
from gpufit.sources.measure.dispatch import DispatchRecorder
from gpufit.sources.measure.run import RunPlan, timed_run, tracked_run
from gpufit.sources.measure.sites import site_names
from gpufit.sources.measure.storages import resident_model

pytestmark = pytest.mark.model

EAGER_TOO = ("llama", "gemma3")
IMAGES = ("qwen2_5_vl", "llava")
"""Families whose code looked for the tokens of images by their values before."""


def on_the_cpu(name: str, opened: object, shape: Shape, eager: bool) -> tuple[PhasePeak, ...]:
    """The phases of a real run with random weights, driven as the simulated one."""
    options = {"attn_implementation": "eager"} if eager else {}
    model = ARCHITECTURES[name]().build(**options)
    driver = opened._driver  # type: ignore[attr-defined]
    plan = RunPlan(driver, DispatchRecorder, lambda: None, lambda phase: None, site_names(model))
    with torch.no_grad():
        timed_run(model, plan, driver.probe)  # what is made once and kept is not this run's
    phases = tracked_run(model, plan, shape, resident_model(model, "cpu"))
    return tuple(msgspec.structs.replace(peak, evidence=Evidence.SIMULATED) for peak in phases)


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        *(pytest.param(name, "cpu", marks=needs_release_read if name in IMAGES else ()) for name in ARCHITECTURES),
        *((name, "eager") for name in EAGER_TOO),
    ],
)
def test_every_moment_of_a_fake_run_is_that_of_the_real_one_to_the_byte(name: str, kernel: str, tmp_path: Path) -> None:
    opened = open_simulation(save_config(tmp_path / name, name), kernel)
    images = opened._driver.images.tokens if hasattr(opened._driver, "images") else 0
    shape = Shape(48 + images, 3 if opened._driver.generates else 0, 2)
    simulated = opened.run(shape).phases
    real = on_the_cpu(name, opened, shape, eager=kernel == "eager")
    assert [peak.phase for peak in simulated] == [peak.phase for peak in real]
    for one, other in zip(simulated, real, strict=True):
        assert {moment.site: moment.parts for moment in one.moments} == {
            moment.site: moment.parts for moment in other.moments
        }
        assert len(one.moments) > 5
        assert (one.allocated_bytes, one.parts, one.site, one.cached_tokens) == (
            other.allocated_bytes, other.parts, other.site, other.cached_tokens
        )  # fmt: skip
        assert one.parts.unexplained_bytes == 0
