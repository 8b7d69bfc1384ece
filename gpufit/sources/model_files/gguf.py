"""The header of a GGUF file: metadata keys, then name, shape and type of each tensor.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The vocabulary arrays are stepped over, not kept,
so a header takes milliseconds where a general reader takes seconds.
"""

from __future__ import annotations

import math
import mmap
import struct
from pathlib import Path
from typing import Any

from gpufit.errors import UnreadableInputError
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
_VERSIONS = (2, 3)
_DEFAULT_ALIGNMENT = 32


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
        """A metadata value; arrays are stepped over and give None."""
        if kind == _STRING:
            return self.text()
        if kind != _ARRAY:
            return self.scalar(_SCALARS[kind])
        item, count = self.scalar("<I"), self.scalar("<Q")
        if item in _SCALARS:
            self.offset += struct.calcsize(_SCALARS[item]) * count
        else:
            for _ in range(count):
                self._step_over(item)
        return None

    def _step_over(self, kind: int) -> None:
        if kind == _STRING:
            self.offset += 8 + struct.unpack_from("<Q", self.data, self.offset)[0]
        else:
            self.value(kind)


def read_tensors(path: Path) -> tuple[StoredTensor, ...]:
    """The tensors of a GGUF file. Raises UnreadableInputError when it is missing, damaged or cut short."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _read(path, _Cursor(data), len(data))
    except OSError as error:
        raise UnreadableInputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, struct.error, IndexError, OverflowError, RecursionError) as error:
        raise UnreadableInputError(f"{path}: not a whole GGUF file (its header is cut short or damaged)") from error


def _read(path: Path, cursor: _Cursor, file_bytes: int) -> tuple[StoredTensor, ...]:
    if cursor.data[:4] != b"GGUF":
        raise UnreadableInputError(f"{path}: not a GGUF file (it does not begin with GGUF)")
    cursor.offset = 4
    version, tensor_count, key_count = cursor.scalar("<I"), cursor.scalar("<Q"), cursor.scalar("<Q")
    if version not in _VERSIONS:
        raise UnreadableInputError(
            f"{path}: GGUF version {version}; versions {_VERSIONS[0]} and {_VERSIONS[1]} are read"
        )
    metadata = {}
    for _ in range(key_count):
        key = cursor.text()
        metadata[key] = cursor.value(cursor.scalar("<I"))
    pieces = metadata.get("split.count")
    if isinstance(pieces, int) and pieces > 1:
        raise UnreadableInputError(
            f"{path}: one of the {pieces} pieces of a split model; join them first (llama-gguf-split --merge)"
        )
    infos = [_tensor(path, cursor) for _ in range(tensor_count)]
    alignment = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(alignment, int) or alignment < 1:
        raise UnreadableInputError(f"{path}: damaged GGUF header (its alignment is {alignment!r})")
    start = -(-cursor.offset // alignment) * alignment
    end = max((start + offset + tensor.size_bytes for tensor, offset in infos), default=start)
    if end > file_bytes:
        raise UnreadableInputError(f"{path}: cut short: its header needs {end} bytes, the file holds {file_bytes}")
    return tuple(tensor for tensor, _ in infos)


def _tensor(path: Path, cursor: _Cursor) -> tuple[StoredTensor, int]:
    name = cursor.text()
    shape = tuple(cursor.scalar("<Q") for _ in range(cursor.scalar("<I")))
    kind = cursor.scalar("<I")
    if kind not in GGML_TYPES:
        raise UnreadableInputError(f"{path}: tensor {name} has type number {kind}, which gpufit does not know")
    dtype, block, block_bytes = GGML_TYPES[kind]
    offset = cursor.scalar("<Q")
    size = math.prod(shape) // block * block_bytes
    return StoredTensor(name=name, dtype=dtype, shape=shape[::-1], size_bytes=size), offset
