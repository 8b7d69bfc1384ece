"""The header of a safetensors file: eight bytes of length, then JSON with dtype, shape and offsets of each tensor.

Format: https://github.com/huggingface/safetensors#format
"""

from __future__ import annotations

import math
import struct
from pathlib import Path

import msgspec

from gpufit.architecture.tensors import DTYPE_BITS
from gpufit.errors import UnreadableInputError, unreadable
from gpufit.profile.base import Size
from gpufit.sources.model_files.record import StoredTensor

LARGEST_HEADER_BYTES = 100_000_000
"""The format's own limit on the header."""

PREFIX_BYTES = 8
"""The header's length comes first, in as many bytes."""

_METADATA = "__metadata__"
"""The one key that is not a tensor."""


class _Entry(msgspec.Struct, frozen=True):
    """One tensor in the header."""

    dtype: str
    shape: tuple[Size, ...]
    data_offsets: tuple[Size, Size]


_HEADER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ENTRY = msgspec.json.Decoder(_Entry)


def read_tensors(path: Path) -> tuple[StoredTensor, ...]:
    """The tensors of one file. Raises UnreadableInputError when the file is missing, damaged or cut short."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            length = header_length(file.read(PREFIX_BYTES), size, str(path))
            header = file.read(length)
    except OSError as error:
        raise unreadable(path, error) from error
    return tensors_of_header(header, size, str(path))


def header_length(prefix: bytes, file_bytes: int, where: str) -> int:
    """The header's length in bytes, from the file's first eight; `where` is what errors call the file.

    Raises UnreadableInputError for a length that a file of `file_bytes` cannot hold, or the format does not allow.
    """
    length: int = struct.unpack("<Q", prefix)[0] if len(prefix) == PREFIX_BYTES else 0
    if not 2 <= length <= min(LARGEST_HEADER_BYTES, file_bytes - PREFIX_BYTES):
        raise UnreadableInputError(f"{where}: not a whole safetensors file (its header is cut short or damaged)")
    return length


def tensors_of_header(header: bytes, file_bytes: int, where: str) -> tuple[StoredTensor, ...]:
    """The tensors that a header tells of, checked against the size of its file and against one another.

    Raises UnreadableInputError when they do not fill the file's data part exactly, each with what its shape needs.
    """
    found = _entries(header, where)
    for name, one in found.items():
        if one.data_offsets[0] > one.data_offsets[1]:
            raise UnreadableInputError(f"{where}: damaged safetensors header (tensor {name!a} ends before it begins)")
    end, data_bytes = (
        max((one.data_offsets[1] for one in found.values()), default=0),
        file_bytes - PREFIX_BYTES - len(header),
    )
    if end != data_bytes:
        raise UnreadableInputError(
            f"{where}: cut short or damaged: its header promises {end} bytes of tensors, the file holds {data_bytes}"
        )
    _check_spans(found, where)
    _check_neighbours(found, where)
    return tuple(
        StoredTensor(name, one.dtype, one.shape, one.data_offsets[1] - one.data_offsets[0])
        for name, one in found.items()
    )


def _entries(header: bytes, where: str) -> dict[str, _Entry]:
    try:
        raw = _HEADER.decode(header)
        raw.pop(_METADATA, None)
        return {name: _ENTRY.decode(entry) for name, entry in raw.items()}
    except msgspec.ValidationError as error:
        raise UnreadableInputError(f"{where}: damaged safetensors header ({error})") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UnreadableInputError(f"{where}: not a safetensors file (its header is not JSON)") from error


def _check_spans(found: dict[str, _Entry], where: str) -> None:
    for name, one in found.items():
        begin, end = one.data_offsets
        bits = DTYPE_BITS.get(one.dtype)
        if bits is None:
            raise UnreadableInputError(
                f"{where}: tensor {name!a} has dtype {one.dtype!a}, which gpufit does not know as one of safetensors"
            )
        if math.prod(one.shape) * bits != (end - begin) * 8:
            raise UnreadableInputError(
                f"{where}: damaged safetensors header (tensor {name!a} of shape {list(one.shape)} in {one.dtype} "
                f"spans {end - begin} bytes)"
            )


def _check_neighbours(found: dict[str, _Entry], where: str) -> None:
    """Tensors lie one after another, without holes: the format's own rule, which leaves no room for a lie."""
    reached = 0
    for (begin, end), name in sorted((one.data_offsets, name) for name, one in found.items()):
        if begin != reached:
            what = "overlaps the one before it" if begin < reached else f"leaves {begin - reached} bytes before it"
            raise UnreadableInputError(f"{where}: damaged safetensors header (tensor {name!a} {what})")
        reached = end
