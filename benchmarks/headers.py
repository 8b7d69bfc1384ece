"""Reading the headers of a 70B directory of 30 shards, and sizing it, measured in fresh processes.

    python benchmarks/headers.py

The directory has the true names and shapes of Llama-3.1-70B in files with holes for data, a few kilobytes of disk. The
budget of the whole `gpufit estimate` on it is 0.3 s, of which this is the part that reads and matches.
"""

from __future__ import annotations

import json
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

from gpufit.architecture.registry import architecture_of

REPEATS = 7
SHARDS = 30

LLAMA_70B = {
    "model_type": "llama",
    "hidden_size": 8192,
    "intermediate_size": 28672,
    "num_hidden_layers": 80,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "torch_dtype": "bfloat16",
}

READ = """
import sys, time
begin = time.perf_counter()
from gpufit.sources.model_files.headers import open_headers
from gpufit.architecture.registry import architecture_of
from gpufit.architecture.quantization.matching import tensors_of_files
from gpufit.architecture.quantization.registry import declared, method_of
imported = time.perf_counter()
headers = open_headers(sys.argv[1])
read = time.perf_counter()
architecture = architecture_of(headers.config, headers.config_where)
method = method_of(declared(headers.config, headers.config_where), architecture.dtype)
found = tensors_of_files(architecture, headers.tensors, method)
matched = time.perf_counter()
assert not found.unknown and not found.missing
print(imported - begin, read - imported, matched - read, len(sys.modules), len(headers.tensors))
"""


def write(folder: Path) -> None:
    """The directory."""
    (folder / "config.json").write_text(json.dumps(LLAMA_70B))
    weights = [(name, one) for one in architecture_of(LLAMA_70B, "config.json").weights for name in one.names()]
    each = -(-len(weights) // SHARDS)
    index = {}
    for number in range(SHARDS):
        shard, header, end = f"model-{number + 1:05}-of-{SHARDS:05}.safetensors", {}, 0
        for name, one in weights[number * each : (number + 1) * each]:
            begin, end = end, end + one.elements * 2
            header[name] = {"dtype": "BF16", "shape": one.shape, "data_offsets": [begin, end]}
            index[name] = shard
        text = json.dumps(header).encode()
        with (folder / shard).open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            file.truncate(8 + len(text) + end)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))


def main() -> None:
    """Print the best of several runs."""
    with tempfile.TemporaryDirectory() as name:
        write(Path(name))
        runs = []
        for _ in range(REPEATS):
            done = subprocess.run([sys.executable, "-c", READ, name], check=True, capture_output=True, text=True)
            runs.append([float(one) for one in done.stdout.split()])
    best = min(runs, key=lambda run: sum(run[:3]))
    print(f"imports {best[0]:.3f} s, headers {best[1]:.4f} s, matching {best[2]:.4f} s")
    print(f"{best[3]:.0f} modules, {best[4]:.0f} tensors in {SHARDS} shards")


if __name__ == "__main__":
    main()
