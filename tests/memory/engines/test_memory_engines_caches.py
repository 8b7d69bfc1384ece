"""KV bytes as llama.cpp, SGLang and others printed them: exact to the digits they gave."""

from __future__ import annotations

import json

import pytest
from public_models import CONFIGS, FACTS

from gpufit.architecture.record import Architecture
from gpufit.architecture.registry import architecture_of
from gpufit.errors import UsageError
from gpufit.memory.engines import llamacpp
from gpufit.memory.engines.vllm.layers import kinds_of, token_bytes
from gpufit.memory.engines.vllm.weights import Ranks
from gpufit.units import MIB

ROWS = json.loads((FACTS / "vllm" / "caches.json").read_text(encoding="utf-8"))


def shapes(row: dict) -> Architecture:
    return architecture_of({**CONFIGS[row["config"]], **row.get("overrides", {})}, row["config"])


def predicted_bytes(row: dict) -> int:
    architecture = shapes(row)
    if row["buffer"] == "state":
        return llamacpp.state_bytes(architecture, row["cells"])
    if row["engine"] == "llama.cpp":
        return llamacpp.full_bytes(architecture, row["cells"])
    dtype = "fp8" if row["buffer"] == "fp8 pool" else "auto"
    return row["cells"] * token_bytes(kinds_of(architecture, Ranks(), dtype))


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_the_bytes_are_those_printed(row: dict) -> None:
    printed = row["printed_mib"]
    # Printed with one or two decimals of MiB, or with two decimals of GiB, each of two halves in SGLang's case.
    rounding = 0.01 if row["engine"] == "llama.cpp" else 2 * 0.005 * 1024
    assert predicted_bytes(row) / MIB == pytest.approx(printed, abs=rounding)


def test_cells_of_a_sliding_layer_are_a_window_and_a_batch_padded() -> None:
    # 128 + 512 = 640 -> 768; never more than the context; a window a sequence.
    assert llamacpp.sliding_cells(128, 131072) == 768
    assert llamacpp.sliding_cells(1024, 512) == 512
    assert llamacpp.sliding_cells(128, 262144, sequences=2, micro_batch=4096) == 4352


def test_eight_bit_caches_hold_a_scale_for_32_values() -> None:
    architecture = shapes({"config": "meta-llama/Meta-Llama-3.1-8B"})
    assert llamacpp.token_bytes(architecture, "f16") == 131072
    assert llamacpp.token_bytes(architecture, "q8_0") == 65536 * 34 // 32


def test_an_unknown_cache_type_is_refused() -> None:
    with pytest.raises(UsageError, match="q3_9"):
        llamacpp.token_bytes(shapes({"config": "meta-llama/Meta-Llama-3.1-8B"}), "q3_9")
