"""How tests drive a model on the CPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from model_files import LLAMA

from gpufit.memory.replay import Category
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured
from gpufit.profile.peaks import Phase
from gpufit.sources.measure.cpu import CpuRecorder
from gpufit.sources.measure.drivers.base import Driver
from gpufit.sources.measure.drivers.decoder import Decoder
from gpufit.sources.measure.run import RunPlan, measure_cell
from gpufit.sources.measure.sites import site_names
from gpufit.sources.measure.storages import resident_model, storages_within


def make_decoder(**changes: object) -> Decoder:
    settings: dict[str, object] = {
        "device": torch.device("cpu"),
        "vocabulary": LLAMA["vocab_size"],
        "seed": 0,
        "logits_kept": "last",
    }
    return Decoder(**(settings | changes))


def plan_for(driver: Driver, sites: Mapping[object, str] | None = None) -> RunPlan:
    return RunPlan(
        driver=driver,
        make_recorder=CpuRecorder,
        synchronize=lambda: None,
        entering=lambda phase: None,
        sites=sites or {},
    )


def make_plan(sites: Mapping[object, str] | None = None, **changes: object) -> RunPlan:
    return plan_for(make_decoder(**changes), sites)


def measure(model: Any, driver: Driver, shape: Shape) -> Measured:
    return measure_cell(model, plan_for(driver, site_names(model)), shape, resident_model(model, "cpu"))


@dataclass
class Kept:
    """A watch that notes what stands in each category when a phase ends: bytes by dtype, each storage once."""

    ended: dict[Phase, dict[Category, dict[str, int]]] = field(default_factory=dict)
    cached_tokens: dict[Phase, int] = field(default_factory=dict)
    _last: dict[Category, dict[int, tuple[str, int]]] = field(default_factory=dict)

    def label(self, thing: Any, category: Category) -> None:
        found = {one.address: (one.dtype, one.size_bytes) for one in storages_within(thing).values()}
        if category == "kv_cache":
            self._last[category] = found
        else:
            self._last.setdefault(category, {}).update(found)

    def phase_began(self, phase: Phase) -> None:
        """Nothing to note."""

    def step_began(self) -> None:
        """Nothing to note."""

    def phase_ended(self, phase: Phase, cached_tokens: int) -> None:
        self.cached_tokens[phase] = cached_tokens
        self.ended[phase] = {category: _by_dtype(found) for category, found in self._last.items()}


def _by_dtype(found: dict[int, tuple[str, int]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for dtype, size in found.values():
        sizes[dtype] = sizes.get(dtype, 0) + size
    return sizes


def kept(model: Any, driver: Driver, shape: Shape) -> Kept:
    """What stands at the end of each phase of one run."""
    watch = Kept()
    driver.run(model, shape, watch)
    return watch


def cached(model: Any, driver: Driver, shape: Shape) -> dict[Phase, dict[str, int]]:
    """The cache alone."""
    return {phase: found["kv_cache"] for phase, found in kept(model, driver, shape).ended.items()}


def lengths(layers: int) -> dict[str, int]:
    """What so many static layers keep of their own length: an int64 each, in recent releases of transformers."""
    from transformers.cache_utils import StaticLayer

    return {"int64": layers * 8} if isinstance(vars(StaticLayer(1)).get("cumulative_length"), torch.Tensor) else {}
