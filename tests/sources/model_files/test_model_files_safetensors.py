"""Safetensors headers, built by hand after the format's own text and compared with the library's files.

https://github.com/huggingface/safetensors#format: eight bytes of little-endian length, that many bytes of JSON, data.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy
import pytest
import safetensors.numpy

from gpufit.errors import UnreadableInputError
from gpufit.sources.model_files.record import StoredTensor
from gpufit.sources.model_files.safetensors import read_tensors


def entry(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def build(header: object, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


TWO = {
    "__metadata__": {"format": "pt"},
    "b": entry("BF16", [2, 3], 0, 12),
    "a": entry("F32", [], 12, 16),
}


def refusal(tmp_path: Path, content: bytes) -> str:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(UnreadableInputError) as refused:
        read_tensors(path)
    message = str(refused.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_names_dtypes_shapes_and_sizes_are_those_of_the_header(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(build(TWO, bytes(16)))
    assert read_tensors(path) == (
        StoredTensor(name="b", dtype="BF16", shape=(2, 3), size_bytes=12),
        StoredTensor(name="a", dtype="F32", shape=(), size_bytes=4),
    )


def test_a_file_that_the_library_wrote_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    tensors = {
        "embed": numpy.zeros((7, 5), numpy.float16),
        "norm": numpy.ones((5,), numpy.float32),
        "mask": numpy.zeros((3, 1), numpy.int8),
        "none": numpy.zeros((0, 4), numpy.float32),
        "größe": numpy.zeros((), numpy.int64),
    }
    safetensors.numpy.save_file(tensors, path, metadata={"format": "np"})
    names = {"float16": "F16", "float32": "F32", "int8": "I8", "int64": "I64"}
    assert {(one.name, one.dtype, one.shape, one.size_bytes) for one in read_tensors(path)} == {
        (name, names[str(array.dtype)], array.shape, array.nbytes) for name, array in tensors.items()
    }


def test_a_file_without_tensors_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(build({}))
    assert read_tensors(path) == ()
    path.write_bytes(build({"__metadata__": {"a": "b"}}))
    assert read_tensors(path) == ()


def test_spaces_after_the_header_are_part_of_it(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(build(json.dumps(TWO).encode() + b"   ", bytes(16)))
    assert len(read_tensors(path)) == 2


WHOLE = build(TWO, bytes(16))


@pytest.mark.parametrize("length", [*range(0, len(WHOLE), 7), len(WHOLE) - 1])
def test_every_truncation_is_refused(tmp_path: Path, length: int) -> None:
    assert "cut short" in refusal(tmp_path, WHOLE[:length])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "cut short"),
        (WHOLE + b"\0", "cut short or damaged: its header promises 16 bytes of tensors, the file holds 17"),
        (build(TWO, bytes(16), length=2**63), "cut short"),
        (build(TWO, bytes(16), length=100_000_001), "cut short"),
        (build(TWO, bytes(16), length=0), "cut short"),
        (build(b"{'a': 1}"), "not JSON"),
        (build(b"\xff\xff\xff\xff"), "not JSON"),
        (build(b"[" * 50_000), "damaged safetensors header"),
        (build(b'{"a": ' * 50_000), "not JSON"),
        (build({"a": entry("F32", [2], 0, 4)}, bytes(4)), "tensor 'a' of shape [2] in F32 spans 4 bytes"),
        (build({"a": entry("F99", [1], 0, 4)}, bytes(4)), "dtype 'F99', which gpufit does not know"),
        (build({"a": entry("F4", [3], 0, 1)}, bytes(1)), "spans 1 bytes"),
        (
            build({"a": entry("F32", [2], 0, 8), "b": entry("F32", [2], 4, 12)}, bytes(12)),
            "tensor 'b' overlaps the one before it",
        ),
        (
            build({"a": entry("F32", [1], 0, 4), "b": entry("F32", [1], 8, 12)}, bytes(12)),
            "tensor 'b' leaves 4 bytes before it",
        ),
        (b"PK\x03\x04 a zip file, as torch.save writes", "cut short"),
        (build([1, 2]), "damaged safetensors header"),
        (build(7_000_000), "damaged safetensors header"),
        (build({"a": 1}), "damaged safetensors header"),
        (build({"a": {}}), "damaged safetensors header"),
        (build({"a": {"dtype": "F32", "shape": [1]}}), "damaged safetensors header"),
        (build({"a": entry("F32", [1], 0, 4) | {"dtype": 7}}, bytes(4)), "damaged safetensors header"),
        (build({"a": entry("F32", [1], 0, 4) | {"dtype": ["F32"]}}, bytes(4)), "damaged safetensors header"),
        (build({"a": entry("F32", [-1], 0, 4)}, bytes(4)), "damaged safetensors header"),
        (build({"a": entry("F32", [1], 0, 4) | {"shape": 1}}, bytes(4)), "damaged safetensors header"),
        (build({"a": entry("F32", [1], 0, 4) | {"data_offsets": [4]}}, bytes(4)), "damaged safetensors header"),
        (build({"a": entry("F32", [1], 0, 4) | {"data_offsets": ["0", "4"]}}, bytes(4)), "damaged safetensors header"),
        (build({"a": entry("F32", [1], 0, 4) | {"data_offsets": [0, 4.5]}}, bytes(4)), "damaged safetensors header"),
        (build({"a": entry("F32", [1], -4, 4)}, bytes(4)), "damaged safetensors header"),
        (build({"a": entry("F32", [1], 8, 4), "b": entry("F32", [2], 0, 8)}, bytes(8)), "ends before it begins"),
        (build({"a": entry("F32", [1], 0, 4), "b": entry("F32", [9], 4, 40)}, bytes(4)), "promises 40 bytes"),
        (build({"a": entry("F32", [1], 0, 2**70)}, bytes(4)), "promises 1180591620717411303424 bytes"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line_that_says_why(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in refusal(tmp_path, content)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none.safetensors", "no such file"), (tmp_path, "a folder, not a file")):
        with pytest.raises(UnreadableInputError) as refused:
            read_tensors(path)
        assert str(refused.value) == f"{path}: {said}"
