"""The header of a GGUF file: metadata keys, then name, shape and type of each tensor.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The vocabulary arrays are counted and stepped over,
not kept, so a header takes milliseconds where a general reader takes seconds.
"""

from __future__ import annotations

import math
import mmap
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufit.errors import UnreadableInputError, unreadable
from gpufit.sources.model_files.record import StoredTensor

GGML_TYPES: dict[int, tuple[str, int, int]] = {
    0: ("F32", 1, 4),
    1: ("F16", 1, 2),
    2: ("Q4_0", 32, 18),
    3: ("Q4_1", 32, 20),
    6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24),
    8: ("Q8_0", 32, 34),
    9: ("Q8_1", 32, 40),
    10: ("Q2_K", 256, 84),
    11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144),
    13: ("Q5_K", 256, 176),
    14: ("Q6_K", 256, 210),
    15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66),
    17: ("IQ2_XS", 256, 74),
    18: ("IQ3_XXS", 256, 98),
    19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18),
    21: ("IQ3_S", 256, 110),
    22: ("IQ2_S", 256, 82),
    23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1),
    25: ("I16", 1, 2),
    26: ("I32", 1, 4),
    27: ("I64", 1, 8),
    28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56),
    30: ("BF16", 1, 2),
    34: ("TQ1_0", 256, 54),
    35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17),
    40: ("NVFP4", 64, 36),
    41: ("Q1_0", 128, 18),
}
"""Type number -> (name, elements in a block, bytes of a block)."""

_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q", 12: "<d"}
_STRING, _ARRAY = 8, 9
_LENGTH = struct.Struct("<Q")
_VERSIONS = (2, 3)
_DEFAULT_ALIGNMENT = 32
_LARGEST_KEPT = 4096
"""Numbers of an array that is kept: one a layer is of use, one a token of the vocabulary is not."""
_LARGEST_TEXTS = 2**24
"""Texts of an array; a vocabulary and its merges hold under a million."""
_LARGEST_RANK = 4
"""Dimensions of a tensor: https://github.com/ggml-org/ggml/blob/master/include/ggml.h (`GGML_MAX_DIMS`)."""
_PIECE = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")
"""How llama-gguf-split names the pieces of a model."""


@dataclass(frozen=True)
class ArrayLength:
    """What is kept of an array of texts, or of a long one."""

    count: int


@dataclass(frozen=True)
class GgufHeader:
    """Everything a header holds that memory depends on."""

    metadata: Mapping[str, Any]
    """Keys as in the file; a short array of numbers is a tuple, any other array its `ArrayLength`."""
    tensors: tuple[StoredTensor, ...]

    @property
    def pieces(self) -> int:
        """Files that the model was split into."""
        count = self.metadata.get("split.count")
        return count if isinstance(count, int) and count > 1 else 1


def is_block_type(dtype: str) -> bool:
    """Whether a stored dtype packs several elements into a block with its own scale, as `Q4_1` does."""
    return any(name == dtype and block > 1 for name, block, _ in GGML_TYPES.values())


class _Cursor:
    """Reads little-endian values from a mapped file."""

    def __init__(self, data: mmap.mmap) -> None:
        self.data = data
        self.offset = 0

    def scalar(self, code: str) -> Any:
        (value,) = struct.unpack_from(code, self.data, self.offset)
        self.offset += struct.calcsize(code)
        return value

    def text(self) -> str:
        length = self.scalar("<Q")
        raw = self.data[self.offset : self.offset + length]
        if len(raw) != length:
            raise struct.error("text runs past the end")
        self.offset += length
        return raw.decode("utf-8", errors="replace")

    def value(self, kind: int) -> Any:
        """A metadata value."""
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.scalar(_SCALARS[kind])
        item, count = self.scalar("<I"), self.scalar("<Q")
        if item == _STRING:
            self._step_over_texts(count)
        elif item == _ARRAY:
            for _ in range(count):
                self.value(item)
        elif count <= _LARGEST_KEPT:
            return tuple(self.scalar(_SCALARS[item]) for _ in range(count))
        else:
            self.offset += struct.calcsize(_SCALARS[item]) * count
        return ArrayLength(count)

    def _step_over_texts(self, count: int) -> None:
        """Without a call a text: vocabularies hold hundreds of thousands."""
        if count > _LARGEST_TEXTS:
            raise struct.error("more texts than any vocabulary holds")
        offset, data, length = self.offset, self.data, _LENGTH.unpack_from
        for _ in range(count):
            offset += 8 + length(data, offset)[0]
        self.offset = offset


def read_tensors(path: Path) -> tuple[StoredTensor, ...]:
    """The tensors of a model in one GGUF file.

    Raises UnreadableInputError when it is missing, damaged or cut short, or one piece of a split model.
    """
    header = read_header(path)
    if header.pieces > 1:
        raise UnreadableInputError(
            f"{path}: one of the {header.pieces} pieces of a split model; join them first (llama-gguf-split --merge)"
        )
    return header.tensors


def read_model(path: Path) -> GgufHeader:
    """The header of a model, all pieces of a split one together; `path` may name any of them.

    Raises UnreadableInputError when a piece is missing, damaged or cut short.
    """
    header = read_header(path)
    if header.pieces == 1:
        return header
    named = _PIECE.fullmatch(path.name)
    if named is None or int(named["count"]) != header.pieces:
        raise UnreadableInputError(
            f"{path}: one of the {header.pieces} pieces of a split model, and its name does not tell of the others "
            f"(they are named like model-00001-of-{header.pieces:05}.gguf)"
        )
    every = [
        read_header(path.with_name(f"{named['stem']}-{number:05}-of-{named['count']}.gguf"))
        for number in range(1, header.pieces + 1)
    ]
    # Each piece has the split's own keys; the model's are in the first.
    return GgufHeader(every[0].metadata, tuple(tensor for piece in every for tensor in piece.tensors))


def read_header(path: Path) -> GgufHeader:
    """The header of one GGUF file. Raises UnreadableInputError when it is missing, damaged or cut short."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(path, _Cursor(data), len(data))
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, KeyError, struct.error, IndexError, OverflowError, RecursionError) as error:
        raise UnreadableInputError(f"{path}: not a whole GGUF file (its header is cut short or damaged)") from error


def _read(path: Path, cursor: _Cursor, file_bytes: int) -> GgufHeader:
    if cursor.data[:4] != b"GGUF":
        raise UnreadableInputError(f"{path}: not a GGUF file (it does not begin with GGUF)")
    cursor.offset = 4
    version, tensor_count, key_count = cursor.scalar("<I"), cursor.scalar("<Q"), cursor.scalar("<Q")
    if version not in _VERSIONS:
        raise UnreadableInputError(
            f"{path}: GGUF version {version}; versions {_VERSIONS[0]} and {_VERSIONS[1]} are read"
        )
    metadata: dict[str, Any] = {}
    for _ in range(key_count):
        key = cursor.text()
        # Zeros where a header should be read as empty names for ever, so a name that returns ends it.
        if key in metadata:
            raise UnreadableInputError(f"{path}: damaged GGUF header (key {key!a} is there twice)")
        metadata[key] = cursor.value(cursor.scalar("<I"))
    infos: dict[str, tuple[StoredTensor, int]] = {}
    for _ in range(tensor_count):
        tensor, offset = _tensor(path, cursor)
        if tensor.name in infos:
            raise UnreadableInputError(f"{path}: damaged GGUF header (tensor {tensor.name!a} is there twice)")
        infos[tensor.name] = tensor, offset
    alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise UnreadableInputError(f"{path}: damaged GGUF header (its alignment is {alignment!r})")
    start = -(-cursor.offset // alignment) * alignment
    _check_spans(path, list(infos.values()), file_bytes - start, start)
    return GgufHeader(metadata, tuple(tensor for tensor, _ in infos.values()))


def _check_spans(path: Path, infos: list[tuple[StoredTensor, int]], data_bytes: int, start: int) -> None:
    """Every tensor lies in the file, and none lies on another."""
    end = max((offset + tensor.size_bytes for tensor, offset in infos), default=0)
    if end > data_bytes:
        raise UnreadableInputError(
            f"{path}: cut short: its header needs {start + end} bytes, the file holds {start + data_bytes}"
        )
    reached = 0
    for tensor, offset in sorted(infos, key=lambda one: (one[1], one[0].size_bytes)):
        if offset < reached:
            raise UnreadableInputError(
                f"{path}: damaged GGUF header (tensor {tensor.name!a} overlaps the one before it)"
            )
        reached = offset + tensor.size_bytes


def _tensor(path: Path, cursor: _Cursor) -> tuple[StoredTensor, int]:
    name = cursor.text()
    rank = cursor.scalar("<I")
    if rank > _LARGEST_RANK:
        raise UnreadableInputError(f"{path}: damaged GGUF header (tensor {name!a} has {rank} dimensions)")
    shape = tuple(cursor.scalar("<Q") for _ in range(rank))
    kind = cursor.scalar("<I")
    if kind not in GGML_TYPES:
        raise UnreadableInputError(f"{path}: tensor {name!a} has type number {kind}, which gpufit does not know")
    dtype, block, block_bytes = GGML_TYPES[kind]
    offset = cursor.scalar("<Q")
    size = math.prod(shape) // block * block_bytes
    return StoredTensor(name=name, dtype=dtype, shape=shape[::-1], size_bytes=size), offset
