"""How close transformers' rules come to what real cards printed, and how close the usual formulas do.

Pure but for reading tests/facts/transformers; `gpufit-accuracy` prints.
"""

from __future__ import annotations

import csv
import functools
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy_record import Comparison
from gpufit.architecture.config import Config
from gpufit.architecture.quantization.loaded import tensors_of_config
from gpufit.architecture.quantization.registry import method_of
from gpufit.architecture.record import Architecture
from gpufit.architecture.registry import architecture_of
from gpufit.architecture.tensors import in_loading_order
from gpufit.memory.carry import CUBLAS_WORKSPACE_BYTES, CUBLAS_WORKSPACE_HOPPER_BYTES
from gpufit.memory.engines.transformers.cache import elements_per_token
from gpufit.memory.engines.transformers.kernels import kernels_of
from gpufit.memory.engines.transformers.model import phases, resident
from gpufit.memory.engines.transformers.passes import Run
from gpufit.memory.engines.transformers.rules import rules_of
from gpufit.memory.predict import (
    ERROR_SAFETY_FACTOR,
    SMALLEST_GROWTH_ERROR,
    PhasePrediction,
    predict_untested,
)
from gpufit.memory.terms import Knees, Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.memory_model import PhaseModel
from gpufit.profile.peaks import Phase
from gpufit.units import GIB, MIB

FACTS = Path(__file__).resolve().parent.parent / "tests" / "facts" / "transformers"
UNITS = {"MB": 10**6, "MiB": MIB, "GiB": GIB}
HALF = 2
"""Bytes of an element: every row ran in float16 or bfloat16."""

METHODS: dict[str, dict[str, Any]] = {
    "GPTQ-Int4": {"quant_method": "gptq", "bits": 4, "group_size": 128, "desc_act": False},
    "GPTQ-Int8": {"quant_method": "gptq", "bits": 8, "group_size": 128, "desc_act": False},
    "AWQ": {"quant_method": "awq", "bits": 4, "group_size": 128},
    "AWQ-INT4": {"quant_method": "awq", "bits": 4, "group_size": 128},
    "FP8": {"quant_method": "fp8", "weight_block_size": [128, 128]},
}
"""What a source's word for a quantisation means, as the models' own configs state it (https://huggingface.co/Qwen)."""

UNSTATED = ("deepseek-llm-7b",)
"""Models whose source does not say what was read: their figures grow as `reserved` does, which is no requirement."""

CAPACITY = {"A100-PCIE-40GB": round(39.38 * GIB)}
"""The lowest torch total seen, from the catalog, of cards that rows ran out of memory on."""


@dataclass(frozen=True)
class Reading:
    """One row of the data."""

    row: str
    model: str
    release: str
    gpu: str
    attention: str
    quantization: str
    shape: Shape
    figure: str
    printed: float | None
    """Bytes; None where the run ended out of memory."""
    resolution: float
    """Half of the last digit printed, in bytes."""

    @property
    def plain(self) -> bool:
        """Whether the weights are as published, in two bytes."""
        return self.quantization == "none"


def readings() -> tuple[Reading, ...]:
    """Every row of the data."""
    with (FACTS / "peaks.csv").open(encoding="utf-8", newline="") as file:
        return tuple(_reading(row) for row in csv.DictReader(file))


def _reading(row: dict[str, str]) -> Reading:
    unit, text = UNITS[row["unit"]], row["value"]
    decimals = len(text.partition(".")[2])
    return Reading(
        row=row["id"],
        model=row["model"],
        release=row["release"],
        gpu=row["gpu"],
        attention=row["attention"],
        quantization=row["quantization"],
        shape=Shape(int(row["prompt"]), int(row["new_tokens"]), int(row["batch"])),
        figure=row["figure"],
        printed=float(text) * unit if text else None,
        resolution=unit / 10**decimals / 2,
    )


@functools.cache
def model_named(name: str) -> Architecture:
    """The architecture of a model of the data."""
    return architecture_of(json.loads((FACTS / "models.json").read_bytes())[name], name)


@functools.cache
def phases_of(name: str, release: str, attention: str, quantization: str) -> tuple[int, tuple[PhaseModel, ...]]:
    """(bytes after load, the model of every phase) of a model whose plain weights take two bytes an element."""
    model = model_named(name)
    config = METHODS.get(quantization)
    method = None if config is None else method_of(Config(config, quantization), "F16")
    tensors = tensors_of_config(model, method, "F16")
    run = Run(rules_of(release), HALF, HALF, attention, kernels=kernels_of(model, tensors, method, HALF, release))
    sizes = [one.size_bytes for one in in_loading_order(tensors)]
    kept = resident(model, run, sizes).parts
    return kept.total_bytes, phases(model, run, kept)


def predicted(reading: Reading) -> PhasePrediction:
    """What the rules say of the phase that a reading is of, the matrix library's workspace apart."""
    model = model_named(reading.model)
    _, found = phases_of(reading.model, reading.release, reading.attention, reading.quantization)
    wanted = {"prefill": (Phase.PREFILL,), "decode": (Phase.DECODE,)}.get(reading.figure, tuple(Phase))
    asked = [
        one for one in found if one.phase in wanted and (one.phase is not Phase.DECODE or reading.shape.new_tokens > 1)
    ]
    knees = Knees(window=model.sliding_window or 0)
    told = [predict_untested(one, reading.shape, knees, Evidence.COMPUTED) for one in asked]
    return max(told, key=lambda one: one.allocated_bytes)


def workspace(reading: Reading) -> int:
    """The matrix library's workspace on the card of a reading, in bytes."""
    hopper = any(name in reading.gpu for name in ("H100", "H200", "H20 "))
    return CUBLAS_WORKSPACE_HOPPER_BYTES if hopper else CUBLAS_WORKSPACE_BYTES


def comparisons() -> Iterator[Comparison]:
    """Every figure whose source says what was read, beside the predicted one."""
    for reading in readings():
        known = reading.plain or reading.quantization in METHODS
        if not known or reading.printed is None or reading.figure == "process" or reading.model in UNSTATED:
            continue
        if reading.figure == "load":
            load, _ = phases_of(reading.model, reading.release, reading.attention, reading.quantization)
            point = lower = upper = load
        else:
            told, extra = predicted(reading), workspace(reading)
            point, lower, upper = (size + extra for size in (told.allocated_bytes, told.lower_bytes, told.upper_bytes))
        yield Comparison(
            row=reading.row,
            figure=_kind(reading),
            model=f"{reading.model} {reading.release} {reading.shape.context_tokens} x {reading.shape.concurrency}",
            predicted=point,
            printed=reading.printed,
            lower=lower,
            upper=upper,
            why=_why(reading),
            resolution=reading.resolution,
        )


def _kind(reading: Reading) -> str:
    family = "Llama" if reading.model.lower().startswith("llama") else reading.model.partition("-")[0]
    stored = "" if reading.plain else f", {reading.quantization}"
    return f"{family} {reading.release.rpartition('.')[0]} {reading.figure}{stored}"


def slopes() -> Iterator[Comparison]:
    """What one more sequence takes under quantised weights, from pairs of rows of one run: it does not depend on how
    the weights are stored."""
    groups: dict[tuple[str, ...], list[Reading]] = defaultdict(list)
    for one in readings():
        if not one.plain and one.row.startswith("llm-perf") and one.figure != "load":
            groups[one.model, one.release, one.quantization, one.figure].append(one)
    for key, found in sorted(groups.items()):
        by_batch = {one.shape.concurrency: one for one in found}
        few, many = by_batch[min(by_batch)], by_batch[max(by_batch)]
        if few is many or few.printed is None or many.printed is None:
            continue
        sequences = many.shape.concurrency - few.shape.concurrency
        slope = (predicted(many).allocated_bytes - predicted(few).allocated_bytes) / sequences
        yield Comparison(
            row=f"{few.row}..{many.row}",
            figure="slope a sequence, quantised",
            model=" ".join(key),
            predicted=slope,
            printed=(many.printed - few.printed) / sequences,
            lower=slope * (1 - ERROR_SAFETY_FACTOR * SMALLEST_GROWTH_ERROR),
            upper=slope * (1 + ERROR_SAFETY_FACTOR * SMALLEST_GROWTH_ERROR),
            resolution=2 * few.resolution / sequences,
        )


def refused() -> Iterator[tuple[Reading, bool]]:
    """Every run that ended out of memory, with whether the rules would have called it a fit."""
    for reading in readings():
        if reading.printed is None:
            told = predicted(reading)
            yield reading, told.upper_bytes + workspace(reading) <= CAPACITY[reading.gpu]


def _why(reading: Reading) -> str:
    """Why a figure may differ, where that is known."""
    tied = model_named(reading.model).tied
    if reading.release == "4.51.3" and reading.shape.context_tokens == 1:
        return "fewer tokens than asked for: the printed figure is below weights and a cache of 2,048 new tokens"
    if reading.quantization == "AWQ-INT4":
        return "grows by an eighth more than KV holds; nothing known in this release does"
    if reading.quantization == "FP8" and tied:
        return "head and embeddings are held apart, by as much as one table; the upper bound has it"
    if reading.quantization == "AWQ" and tied and reading.shape.context_tokens == 1:
        return "the highest figure is that of loading, where the head has a table of its own; the upper bound has it"
    if reading.release == "4.51.3":
        return "the copy of one layer's keys while the cache grows is not in the printed figure"
    if reading.model == "Qwen2-57B-A14B-Instruct":
        return "the checkpoint is smaller than GPTQ with groups of 128 for all experts would be"
    return ""


FORMULAS = ("weights", "weights x 1.2", "weights + KV", "(weights + KV) x 1.2")
"""What people use: https://github.com/alvarobartt/hf-mem, https://huggingface.co/docs/accelerate/usage_guides/model_size_estimator."""


def by_formula(name: str, reading: Reading) -> float:
    """What one of the usual formulas says a reading should be, in bytes."""
    model = model_named(reading.model)
    weights = model.parameters * HALF
    run = Run(rules_of(reading.release), HALF, HALF, reading.attention)
    tokens = reading.shape.context_tokens if reading.figure == "prefill" else reading.shape.cached_tokens
    cache = sum(elements_per_token(one, model, run.rules) for one in model.caches) * HALF
    cached = cache * tokens * reading.shape.concurrency
    return {
        "weights": weights,
        "weights x 1.2": weights * 1.2,
        "weights + KV": weights + cached,
        "(weights + KV) x 1.2": (weights + cached) * 1.2,
    }[name]


def formula_comparisons(name: str, found: Iterable[Reading]) -> Iterator[Comparison]:
    """A formula's figures beside the printed ones; it states no interval, so a bound is its point."""
    for one in found:
        if one.printed is not None:
            size = by_formula(name, one)
            yield Comparison(one.row, name, one.model, size, one.printed, size, size, resolution=one.resolution)
