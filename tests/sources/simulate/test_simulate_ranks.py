"""A rank simulated in one process against a rank that really runs beside another."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from model_files import REPOSITORY
from releases import needs_release_read
from simulated import save_config

from gpufit.profile.cells import Measured
from gpufit.profile.peaks import Parts
from gpufit.profile.store import load_profile

pytestmark = pytest.mark.model

RANKS = 2
SCRIPT = Path(__file__).with_name("real_rank.py")


def surroundings(**more: object) -> dict[str, str]:
    paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tests")])
    return os.environ | {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"} | {key: str(value) for key, value in more.items()}


def real_ranks(name: str) -> list[dict[str, Parts]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = [
        subprocess.Popen(
            [sys.executable, str(SCRIPT), name, str(RANKS)],
            env=surroundings(RANK=rank, LOCAL_RANK=rank, WORLD_SIZE=RANKS, MASTER_ADDR="127.0.0.1", MASTER_PORT=port),
            stdout=subprocess.PIPE,
            text=True,
        )
        for rank in range(RANKS)
    ]
    outputs = [one.communicate(timeout=120)[0] for one in started]
    found = [json.loads(output.strip().splitlines()[-1]) for output in outputs]
    return [{phase: msgspec.convert(parts, Parts) for phase, parts in rank.items()} for rank in found]


@needs_release_read
def test_a_simulated_rank_holds_what_a_real_one_holds_to_the_byte(tmp_path: Path) -> None:
    model = save_config(tmp_path / "qwen3_moe", "qwen3_moe")
    path = tmp_path / "profile.json"
    subprocess.run(
        [
            *(sys.executable, "-m", "gpufit", "simulate", str(model), "-o", str(path)),
            *("--context", "48", "--concurrency", "2", "--new-tokens", "3", "--tp", str(RANKS)),
            *("--attn-implementation", "cpu"),
        ],
        env=surroundings(),
        check=True,
        capture_output=True,
    )
    (cell,) = load_profile(path).measured_cells
    assert isinstance(cell.outcome, Measured)
    real = real_ranks("qwen3_moe")[0]
    for peak in cell.outcome.phases:
        assert peak.parts == real[str(peak.phase)]
