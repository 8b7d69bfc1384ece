"""What a rank of a tensor-parallel model holds, where `get_memory_footprint()` tells of the whole model."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import transformers
from model_files import LLAMA_PARAMETERS, REPOSITORY, save_llama
from packaging.version import Version

RANKS = 2
SCRIPT = Path(__file__).with_name("tensor_parallel_rank.py")

EMBEDDING_AND_HEAD = 2 * 256 * 64 * 2
COLUMNS = 64 * 64 * 2 + 2 * 32 * 64 * 2 + 2 * 128 * 64 * 2
"""Of a layer: q; k and v; gate and up."""
ROWS = 64 * 64 * 2 + 64 * 128 * 2
"""Of a layer: o and down."""
NORMS = (2 * 2 + 1) * 64 * 2
"""Of all layers and the last, whole on every rank."""

COMPACT = (EMBEDDING_AND_HEAD + 2 * COLUMNS + 2 * ROWS) // RANKS + NORMS
"""What a rank holds when each shard is a storage of its own."""
VIEWS = EMBEDDING_AND_HEAD + 2 * COLUMNS + 2 * ROWS // RANKS + NORMS
"""The same where the shards of columns are views of the whole tensors, as transformers 5.24 leaves them on a CPU: the
whole tensors then stay in memory."""
WHOLE = EMBEDDING_AND_HEAD + 2 * COLUMNS + 2 * ROWS + NORMS
"""The same where the shards of rows are views, too, as in transformers 5.0."""
HELD = (VIEWS, COMPACT) if Version(transformers.__version__) >= Version("5.24") else (VIEWS, COMPACT, WHOLE)


@pytest.mark.model
def test_a_rank_holds_what_its_storages_say_not_the_whole_model(tmp_path: Path) -> None:
    model = save_llama(tmp_path / "llama")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = []
    for rank in range(RANKS):
        where = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": RANKS, "MASTER_PORT": port, "OMP_NUM_THREADS": 1}
        surroundings = {name: str(value) for name, value in where.items()} | {
            "MASTER_ADDR": "127.0.0.1",
            "PYTHONPATH": str(REPOSITORY),
        }
        ranks.append(
            subprocess.Popen(
                [sys.executable, str(SCRIPT), str(model)],
                env=os.environ | surroundings,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        )
    assert WHOLE == 2 * LLAMA_PARAMETERS
    for one in ranks:
        output, _ = one.communicate(timeout=300)
        assert one.returncode == 0
        held = json.loads(output.splitlines()[-1])
        assert held["footprint_bytes"] >= 2 * LLAMA_PARAMETERS  # the whole model, on either rank
        assert held["weights_bytes"] in HELD
