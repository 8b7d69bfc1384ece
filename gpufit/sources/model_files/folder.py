"""The files of a model's directory: which of them hold its weights, and what the JSON among them says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gpufit.errors import UnreadableInputError, unreadable

CONFIG = "config.json"
SINGLE = "model.safetensors"
INDEX = "model.safetensors.index.json"

PICKLED_SUFFIXES = (".bin", ".pt", ".pth")
"""Weights as `torch.save` writes them, which can run code when they are loaded."""

QUANTIZATION_FILES = ("hf_quant_config.json", "quantize_config.json", "quant_config.json")
"""Where checkpoints whose config.json names no quantisation keep it: those of ModelOpt, AutoGPTQ and AutoAWQ."""


def read_json(path: Path, why: str, where: str = "") -> dict[str, Any]:
    """The object in a JSON file. Raises UnreadableInputError; `why` is what a missing one is needed for, and `where`
    what errors about its content call it, where that is not its path.
    """
    try:
        raw = path.read_bytes()
    except FileNotFoundError as error:
        raise UnreadableInputError(f"{path}: no such file; {why}") from error
    except OSError as error:
        raise unreadable(path, error) from error
    return object_of(raw, where or str(path))


def object_of(raw: bytes, where: str) -> dict[str, Any]:
    """The object that JSON text holds. Raises UnreadableInputError; `where` is what errors call the text."""
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UnreadableInputError(f"{where}: not JSON ({error})") from error
    if not isinstance(found, dict):
        raise UnreadableInputError(f"{where}: not a JSON object")
    return found


def shards_of(index: Mapping[str, Any], where: str) -> tuple[str, ...]:
    """The shards that an index names, each once, in the order of their names.

    Raises UnreadableInputError for an index that names none, or names files elsewhere.
    """
    shards = index.get("weight_map")
    if not isinstance(shards, dict) or not shards:
        raise UnreadableInputError(f"{where}: names no shards (no weight_map in it)")
    if not all(isinstance(name, str) for name in shards.values()):
        raise UnreadableInputError(f"{where}: damaged: a shard's name in its weight_map is not text")
    names = tuple(sorted(set(shards.values())))
    for name in names:
        if name.startswith("/") or ".." in name.split("/") or "\0" in name:
            raise UnreadableInputError(f"{where}: names a shard outside the model ({name!a})")
    return names


def safetensors_files(folder: Path) -> tuple[Path, ...]:
    """The safetensors files of a directory that hold the model; empty where there are none.

    Raises UnreadableInputError for a damaged index.
    """
    if (folder / SINGLE).is_file():
        return (folder / SINGLE,)
    index = folder / INDEX
    if not index.is_file():
        return ()
    return tuple(folder / name for name in shards_of(read_json(index, "the shards' index"), str(index)))


def pickled_files(folder: Path) -> tuple[Path, ...]:
    """The files of a directory that are weights by their suffix, as `torch.save` writes them."""
    return tuple(path for suffix in PICKLED_SUFFIXES for path in sorted(folder.glob(f"*{suffix}")))
