"""Small model directories for tests: real architectures from their config classes, seeded random weights."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
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


def safetensors_bytes(tensors: Mapping[str, tuple[str, Sequence[int]]]) -> tuple[bytes, int]:
    """Length and header of a safetensors file of these dtypes and shapes, and how many bytes of data follow."""
    header: dict[str, object] = {}
    begin = 0
    for name, (dtype, shape) in tensors.items():
        end = begin + math.prod(shape) * BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}
        begin = end
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text, begin


BYTES = {"F32": 4, "I32": 4, "BF16": 2, "F16": 2, "F8_E4M3": 1, "F8_E8M0": 1, "U8": 1, "I8": 1}
"""Bytes of an element, for the dtypes that tests write."""


def write_sparse(path: Path, tensors: Mapping[str, tuple[str, Sequence[int]]]) -> None:
    """A safetensors file with a true header and a hole for the data: the size is right, the disk stays empty."""
    head, data_bytes = safetensors_bytes(tensors)
    with path.open("wb") as file:
        file.write(head)
        file.truncate(len(head) + data_bytes)


def write_model(
    folder: Path,
    config: Mapping[str, object],
    tensors: Mapping[str, tuple[str, Sequence[int]]],
    shards: int = 1,
) -> Path:
    """A model directory with config, true headers and no data: one file, or shards and the index that names them."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    if shards == 1:
        write_sparse(folder / "model.safetensors", tensors)
        return folder
    every = -(-len(tensors) // shards)
    names = list(tensors)
    index = {}
    for number in range(shards):
        shard = f"model-{number + 1:05}-of-{shards:05}.safetensors"
        part = names[number * every : (number + 1) * every]
        write_sparse(folder / shard, {name: tensors[name] for name in part})
        index.update(dict.fromkeys(part, shard))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}))
    return folder
