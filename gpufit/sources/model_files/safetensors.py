"""The header of a safetensors file: eight bytes of length, then JSON with dtype, shape and offsets of each tensor.

Format: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import msgspec

from gpufit.errors import UnreadableInputError
from gpufit.profile.record import Size
from gpufit.sources.model_files.record import StoredTensor

LARGEST_HEADER_BYTES = 100_000_000
"""The format's own limit on the header."""


_METADATA = "__metadata__"
"""The one key that is not a tensor."""


class _Entry(msgspec.Struct, frozen=True):
    """One tensor in the header."""

    dtype: str
    shape: tuple[Size, ...]
    data_offsets: tuple[Size, Size]


def read_tensors(path: Path) -> tuple[StoredTensor, ...]:
    """The tensors of one file. Raises UnreadableInputError when the file is missing, damaged or cut short."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            prefix = file.read(8)
            length = struct.unpack("<Q", prefix)[0] if len(prefix) == 8 else 0
            if not 2 <= length <= min(LARGEST_HEADER_BYTES, size - 8):
                raise UnreadableInputError(f"{path}: not a whole safetensors file (its header is cut short or damaged)")
            header = json.loads(file.read(length))
    except OSError as error:
        raise UnreadableInputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableInputError(f"{path}: not a safetensors file (its header is not JSON)") from error
    return _tensors(path, header, size - 8 - length)


def _tensors(path: Path, header: Any, data_bytes: int) -> tuple[StoredTensor, ...]:
    try:
        found = msgspec.convert({name: entry for name, entry in header.items() if name != _METADATA}, dict[str, _Entry])
    except (AttributeError, msgspec.ValidationError) as error:
        raise UnreadableInputError(f"{path}: damaged safetensors header ({error})") from error
    for name, entry in found.items():
        if entry.data_offsets[0] > entry.data_offsets[1]:
            raise UnreadableInputError(f"{path}: damaged safetensors header (tensor {name} ends before it begins)")
    end = max((entry.data_offsets[1] for entry in found.values()), default=0)
    if end != data_bytes:
        raise UnreadableInputError(
            f"{path}: cut short or damaged: its header promises {end} bytes of tensors, the file holds {data_bytes}"
        )
    return tuple(
        StoredTensor(
            name=name,
            dtype=entry.dtype,
            shape=entry.shape,
            size_bytes=entry.data_offsets[1] - entry.data_offsets[0],
        )
        for name, entry in found.items()
    )
