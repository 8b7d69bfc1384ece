"""How close KV bytes come to what llama.cpp, SGLang and others printed: tests/facts/vllm/caches.json."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.accuracy_record import Comparison
from gpufit.architecture.record import Architecture
from gpufit.architecture.registry import architecture_of
from gpufit.memory.engines import llamacpp
from gpufit.memory.engines.vllm import Ranks
from gpufit.memory.engines.vllm.layers import kinds_of, token_bytes
from gpufit.units import MIB

FACTS = Path(__file__).resolve().parent.parent / "tests" / "facts"


@cache
def rows() -> tuple[dict[str, Any], ...]:
    """Every row of the data."""
    return tuple(json.loads((FACTS / "vllm" / "caches.json").read_text(encoding="utf-8")))


@cache
def _configs() -> dict[str, Any]:
    return {row["name"]: row["config"] for row in json.loads((FACTS / "configs.json").read_text(encoding="utf-8"))}


def predicted_bytes(row: Mapping[str, Any]) -> int:
    """What the cache of a row takes, by its engine's rules."""
    architecture = _shapes(row)
    if row["buffer"] == "state":
        return llamacpp.state_bytes(architecture, row["cells"])
    if row["engine"] == "llama.cpp":
        return llamacpp.full_bytes(architecture, row["cells"])
    dtype = "fp8" if row["buffer"] == "fp8 pool" else "auto"
    cells: int = row["cells"]
    return cells * token_bytes(kinds_of(architecture, Ranks(), dtype))


def comparisons() -> Iterator[Comparison]:
    """Every cache beside the printed one: to one or two decimals of MiB, or two of GiB for each of two halves."""
    for row in rows():
        half = (0.005 if row["engine"] == "llama.cpp" else 0.005 * 1024) * MIB
        size = predicted_bytes(row)
        yield Comparison(
            row["id"], "KV cache", row["model"], size, row["printed_mib"] * MIB, size, size, resolution=2 * half
        )


def _shapes(row: Mapping[str, Any]) -> Architecture:
    return architecture_of({**_configs()[row["config"]], **row.get("overrides", {})}, row["config"])
