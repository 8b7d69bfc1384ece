"""What a simulated cell takes in seconds and memory, beside its budget: both processes, from the command to its end.

    python benchmarks/simulate.py

The models are those of https://huggingface.co/meta-llama/Llama-3.1-405B and
https://huggingface.co/deepseek-ai/DeepSeek-V3, by the sizes in their configs.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

SECONDS, MEMORY_MIB = 12.0, 1024
"""The budget of one cell."""

CELL = ("--context", "8k", "--concurrency", "16")

MODELS: dict[str, dict[str, object]] = {
    "Llama-3.1-405B": {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 16384,
        "intermediate_size": 53248,
        "num_hidden_layers": 126,
        "num_attention_heads": 128,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "max_position_embeddings": 131072,
        "dtype": "bfloat16",
    },
    "DeepSeek-V3": {
        "model_type": "deepseek_v3",
        "architectures": ["DeepseekV3ForCausalLM"],
        "hidden_size": 7168,
        "intermediate_size": 18432,
        "moe_intermediate_size": 2048,
        "num_hidden_layers": 61,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "first_k_dense_replace": 3,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "n_group": 8,
        "topk_group": 4,
        "q_lora_rank": 1536,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64,
        "v_head_dim": 128,
        "vocab_size": 129280,
        "max_position_embeddings": 163840,
        "dtype": "bfloat16",
    },
}


def run(model: Path, output: Path) -> tuple[float, float]:
    """(seconds, most MiB that both processes held) of one simulated cell."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "gpufit", "simulate", str(model), "-o", str(output), "--force", *CELL]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as started:
        highest = 0
        while started.poll() is None:
            highest = max(highest, _held(psutil.Process(started.pid)))
            time.sleep(0.05)
    if started.returncode:
        raise SystemExit(f"{model.name}: gpufit simulate ended with status {started.returncode}")
    return time.perf_counter() - begin, highest / 2**20


def _held(process: psutil.Process) -> int:
    """Resident bytes of a process and its children; 0 once it is gone."""
    try:
        return sum(one.memory_info().rss for one in (process, *process.children(recursive=True)))
    except psutil.Error:
        return 0


def main() -> None:
    """Simulate each model once and print a line a model."""
    with tempfile.TemporaryDirectory() as folder:
        for name, config in MODELS.items():
            model = Path(folder) / name
            model.mkdir()
            (model / "config.json").write_text(json.dumps(config))
            seconds, memory = run(model, Path(folder) / "profile.json")
            kept = "kept" if seconds <= SECONDS and memory <= MEMORY_MIB else "MISSED"
            print(f"{name}: {seconds:.1f} s of {SECONDS:.0f}, {memory:.0f} MiB of {MEMORY_MIB}: {kept}")


if __name__ == "__main__":
    main()
