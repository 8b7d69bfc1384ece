"""Small model directories for tests: real architectures from their config classes, seeded random weights."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SMOLLM2 = REPOSITORY / "models" / "SmolLM2-135M-Instruct.Q4_1.gguf"
MINILM = REPOSITORY / "models" / "all-MiniLM-L6-v2"

LLAMA = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 256,
    "max_position_embeddings": 512,
    "tie_word_embeddings": False,
}
LLAMA_PARAMETERS = 2 * 256 * 64 + 2 * (64 * 64 + 2 * 64 * 32 + 64 * 64 + 3 * 64 * 128 + 2 * 64) + 64
"""Embedding and head, then per layer q, k and v, o, three MLP matrices, two norms; the final norm."""

LLAMA_KV_BYTES_PER_TOKEN = 2 * 2 * 2 * 16 * 2
"""Layers x (key, value) x KV heads x head size x two bytes of bfloat16."""


def save_llama(folder: Path, **changes: object) -> Path:
    """A two-layer Llama in bfloat16, written as transformers writes it."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(**(LLAMA | changes))
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16)
    model.save_pretrained(folder)
    return folder


OWN_CODE = """
import ctypes, os, sys
from transformers import LlamaConfig, LlamaForCausalLM

class OwnConfig(LlamaConfig):
    model_type = "own-llama"

class OwnLlama(LlamaForCausalLM):
    config_class = OwnConfig

    def forward(self, input_ids=None, **options):
        sequences, tokens = input_ids.shape
        {statement}
        return super().forward(input_ids=input_ids, **options)
"""


def save_own_llama(folder: Path, statement: str, **changes: object) -> Path:
    """A Llama that brings code of its own: `statement` runs before each forward, and sees `sequences` and `tokens`.

    It is loaded with --trust-remote-code, and does what no real model does on demand: fail, hang, or die.
    """
    save_llama(folder, **changes)
    rewrite_config(
        folder,
        model_type="own-llama",
        architectures=["OwnLlama"],
        auto_map={"AutoConfig": "own.OwnConfig", "AutoModelForCausalLM": "own.OwnLlama"},
    )
    (folder / "own.py").write_text(OWN_CODE.format(statement=statement))
    return folder


def need(path: Path) -> Path:
    """A model that `scripts/fetch_models.py` obtains; its absence is a failure, not a skip."""
    if not path.exists():
        pytest.fail(f"{path} is missing; `make models` obtains it")
    return path


def rewrite_config(folder: Path, **changes: object) -> None:
    """Change keys of a model directory's config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
