"""How close the vLLM rules come to what real cards printed: a row a figure, from the starts in tests/facts/vllm.

It prints nothing. No figure of the data is ever corrected: where a source is known to differ from what the rules
describe, the start says why.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.accuracy_record import Comparison
from gpufit.architecture.record import Architecture
from gpufit.architecture.registry import architecture_of
from gpufit.errors import GpufitError
from gpufit.memory.allocator import parse_settings
from gpufit.memory.engines.base import Outcome, total
from gpufit.memory.engines.vllm import (
    Device,
    Lora,
    Precision,
    Ranks,
    Sampler,
    Settings,
    VllmStart,
    of_config,
    plain,
    quantised,
    rules_of,
    start,
)
from gpufit.memory.engines.vllm.precision import mxfp4_kernel
from gpufit.units import GIB

FACTS = Path(__file__).resolve().parent.parent / "tests" / "facts"
_NO_CARD_BYTES = 2**50
"""Stands for a card whose total no source states: what depends on it is not compared."""


@dataclass(frozen=True)
class Verdict:
    """A start's outcome beside the predicted one."""

    start: str
    model: str
    started: bool
    predicted: Outcome
    why: str

    @property
    def false_refusal(self) -> bool:
        """Said not to start, and it did."""
        return self.started and self.predicted is Outcome.DOES_NOT_FIT

    @property
    def false_promise(self) -> bool:
        """Said to start, and it did not."""
        return not self.started and self.predicted is Outcome.FITS


@dataclass(frozen=True)
class Line:
    """One figure over all starts."""

    figure: str
    rows: int
    median_error: float
    worst_error: float
    coverage: float
    unexplained: int
    """Rows outside their interval that no reason is known for."""


@dataclass(frozen=True)
class Report:
    """Everything compared, and the starts for which no rule or no shapes exist."""

    comparisons: tuple[Comparison, ...]
    verdicts: tuple[Verdict, ...]
    refused: Mapping[str, str]
    """Start -> why it could not be worked out."""

    def of(self, *figures: str) -> list[Comparison]:
        """The comparisons of some figures."""
        return [one for one in self.comparisons if one.figure in figures]

    def median_error(self, *figures: str) -> float:
        """The median of absolute relative errors."""
        return statistics.median(abs(one.error) for one in self.of(*figures))

    def coverage(self, *figures: str) -> float:
        """The share of printed figures inside their intervals."""
        found = self.of(*figures)
        return sum(one.inside for one in found) / len(found)

    def worst(self, count: int, *figures: str) -> list[Comparison]:
        """The largest errors of some figures, or of all, with their reasons."""
        found = self.of(*figures) if figures else list(self.comparisons)
        return sorted(found, key=lambda one: -abs(one.error))[:count]

    def summary(self) -> list[Line]:
        """A line a figure."""
        figures = dict.fromkeys(one.figure for one in self.comparisons)
        return [
            Line(
                figure=figure,
                rows=len(self.of(figure)),
                median_error=self.median_error(figure),
                worst_error=abs(self.worst(1, figure)[0].error),
                coverage=self.coverage(figure),
                unexplained=sum(not one.inside and not one.why for one in self.of(figure)),
            )
            for figure in figures
        ]

    @property
    def false_refusals(self) -> list[Verdict]:
        """Starts that ran although they were refused."""
        return [one for one in self.verdicts if one.false_refusal]


def compare(folder: Path = FACTS) -> Report:
    """Every start of the data, worked out from its config, card and flags alone."""
    public = json.loads((folder / "configs.json").read_text(encoding="utf-8"))
    configs = {one["name"]: one["config"] for one in public}
    rows = json.loads((folder / "vllm" / "starts.json").read_text(encoding="utf-8"))
    comparisons: list[Comparison] = []
    verdicts: list[Verdict] = []
    refused: dict[str, str] = {}
    for row in rows:
        try:
            predicted = predict(row, configs)
        except GpufitError as error:
            refused[row["id"]] = str(error)
            continue
        comparisons.extend(_compared(row, predicted))
        verdicts.extend(_judged(row, predicted))
    return Report(tuple(comparisons), tuple(verdicts), refused)


def predict(row: Mapping[str, Any], configs: Mapping[str, Any]) -> VllmStart:
    """The start of one row of the data. Raises GpufitError where no rule covers it."""
    values = merged(configs[row["config"]], row.get("overrides", {}))
    architecture = architecture_of(values, row["config"])
    card = row["card"]
    total_gib = card["total_gib"]
    device = Device(
        name=card["name"],
        total_bytes=_NO_CARD_BYTES if total_gib is None else int(total_gib * GIB),
        compute_capability=card.get("capability"),
        fast_links=card.get("fast_links", False),
    )
    given = dict(row["settings"])
    # One source prints a utilization that its own parts contradict: both stay in the data.
    given["utilization"] = row.get("utilization_by_parts", given.get("utilization"))
    sampler = given.pop("sampler", None)
    lora = Lora(**given.pop("lora")) if "lora" in given else None
    allocator = parse_settings(given.pop("allocator", ""))
    given.setdefault("max_model_len", min(architecture.position_limit or 4096, 4096))
    settings = Settings(
        **given,
        ranks=Ranks(row["tensor_parallel"]),
        sampler=None if sampler is None else Sampler(sampler),
        lora=lora,
        allocator=allocator,
    )
    return start(
        architecture,
        _precision(row, values, architecture, device),
        device,
        settings,
        rules_of(row["version"], v1=row["v1"]),
        row["model"],
    )


def merged(values: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """A config with some keys replaced, those of objects within it one by one."""
    found = dict(values)
    for key, value in over.items():
        found[key] = merged(found.get(key, {}), value) if isinstance(value, Mapping) else value
    return found


def _precision(
    row: Mapping[str, Any], values: Mapping[str, Any], architecture: Architecture, device: Device
) -> Precision:
    """`plain`, `config` (as the config says), a method's name, or its own quantisation config."""
    asked = row["precision"]
    if asked == "plain":
        return plain(architecture.dtype)
    kernel = row.get("kernel") or mxfp4_kernel(device.compute_capability)
    if asked == "config":
        return of_config(values, row["config"], mxfp4=kernel)
    if isinstance(asked, Mapping):
        return of_config({"quantization_config": asked}, row["config"], mxfp4=kernel)
    return quantised(asked, mxfp4=kernel)


def _compared(row: Mapping[str, Any], one: VllmStart) -> Iterable[Comparison]:
    printed = row["printed"]
    names = {
        "weights_gib": (("weights", "lora"), "weights" if row["precision"] == "plain" else "weights_quantised"),
        "activation_gib": (("activation",), "activation"),
        "non_torch_gib": (("non_torch",), "non_torch"),
    }
    for key, (parts, figure) in names.items():
        if key in printed:
            amount = total(part for part in one.parts if part.name in parts)
            half = GIB * (5e-5 if round(printed[key], 2) != printed[key] else 5e-3)
            yield _row(
                row,
                figure,
                amount.point_bytes,
                printed[key] * GIB,
                amount.lower_bytes - half,
                amount.upper_bytes + half,
            )
    if "utilization" in row["settings"] and row["card"]["total_gib"] is not None:
        yield from _pools(row, one)
    yield from _rates(row, one)


def _pools(row: Mapping[str, Any], one: VllmStart) -> Iterable[Comparison]:
    """The pool and its tokens, from the rules alone."""
    printed, left = row["printed"], one.pool_bytes
    if printed.get("kv_gib", 0) > 0:
        size = printed["kv_gib"] * GIB
        half = GIB * 5e-3
        yield _row(row, "kv_pool", left.point_bytes, size, left.lower_bytes - half, left.upper_bytes + half)
    if tokens := _printed_tokens(row):
        step = max(group.block_tokens for group in one.pool.groups)
        yield _row(row, "kv_tokens", one.tokens.point, tokens, one.tokens.lower - step, one.tokens.upper + step)


def _rates(row: Mapping[str, Any], one: VllmStart) -> Iterable[Comparison]:
    """Tokens and concurrency of the printed pool, which is rounded to a hundredth of a GiB; exact sizes where
    printed."""
    printed = row["printed"]
    if "token_bytes" in printed:
        a_token = one.pool.block_bytes / one.pool.groups[0].block_tokens
        yield _row(row, "kv_bytes", a_token, printed["token_bytes"], a_token, a_token)
    if "sequence_gib" in printed:
        size = one.sequence_bytes / GIB
        yield _row(row, "sequence", size, printed["sequence_gib"], size - 0.005, size + 0.005)
    size = printed.get("kv_gib", 0)
    length, batched = one.settings.max_model_len, one.batch.tokens
    if size <= 0:
        return
    pools = [int((size + add) * GIB) for add in (-0.005, 0, 0.005)]
    grouped = len(one.pool.groups) > 1
    if tokens := _printed_tokens(row):
        low, point, high = (one.pool.printed_tokens(pool, length, batched) for pool in pools)
        yield _row(row, "kv_rate_grouped" if grouped else "kv_rate", point, tokens, low, high)
    if "concurrency" in printed:
        least, likely, most = (one.pool.concurrency(pool, length, batched) for pool in pools)
        yield _row(row, "concurrency", likely, printed["concurrency"], least - 0.005, most + 0.005)


def _printed_tokens(row: Mapping[str, Any]) -> int | None:
    printed = row["printed"]
    if "kv_tokens" in printed:
        return int(printed["kv_tokens"])
    blocks = printed.get("gpu_blocks")
    return blocks * 16 if blocks else None


def _row(
    row: Mapping[str, Any], figure: str, predicted: float, printed: float, lower: float, upper: float
) -> Comparison:
    why = row.get("why", {}).get("weights" if figure == "weights_quantised" else figure, "")
    return Comparison(row["id"], figure, row["model"], predicted, printed, lower, upper, why)


def _judged(row: Mapping[str, Any], one: VllmStart) -> Iterable[Verdict]:
    """Only starts whose card and utilization are stated can be judged."""
    if row["card"]["total_gib"] is None or "utilization" not in row["settings"]:
        return
    started = row.get("outcome") != "does_not_fit"
    yield Verdict(row["id"], row["model"], started, one.outcome, one.binding)
