"""GGUF headers, built by hand after the format's own text and compared with the gguf library's files and tables.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from pathlib import Path

import gguf
import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpufit.errors import UnreadableInputError
from gpufit.sources.model_files.gguf import GGML_TYPES, read_tensors
from gpufit.sources.model_files.record import StoredTensor


def text(value: str) -> bytes:
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def string_key(key: str, value: str) -> bytes:
    return text(key) + struct.pack("<I", 8) + text(value)


def uint32_key(key: str, value: int) -> bytes:
    return text(key) + struct.pack("<II", 4, value)


def strings_key(key: str, values: list[str]) -> bytes:
    return text(key) + struct.pack("<IIQ", 9, 8, len(values)) + b"".join(text(value) for value in values)


def tensor_info(name: str, dims: list[int], kind: int, offset: int) -> bytes:
    """`dims` in the file's order, the fastest first."""
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def build(
    keys: list[bytes],
    infos: list[bytes],
    data: bytes,
    magic: bytes = b"GGUF",
    version: int = 3,
    alignment: int = 32,
    counts: tuple[int, int] | None = None,
) -> bytes:
    tensors, pairs = counts or (len(infos), len(keys))
    header = magic + struct.pack("<IQQ", version, tensors, pairs) + b"".join(keys) + b"".join(infos)
    return header + bytes(-len(header) % alignment) + data


KEYS = [
    string_key("general.architecture", "llama"),
    strings_key("tokenizer.ggml.tokens", ["a", "größer", ""]),
    text("llama.rope.scale") + struct.pack("<If", 6, 1.5),
    text("flags") + struct.pack("<IIQ3?", 9, 7, 3, True, False, True),
    text("nested") + struct.pack("<IIQ", 9, 9, 1) + struct.pack("<IQ2i", 5, 2, -1, 7),
]
INFOS = [
    tensor_info("token_embd.weight", [256, 4], 12, 0),  # Q4_K: 4 blocks of 144 bytes
    tensor_info("output_norm.weight", [256], 0, 576),  # F32: 1,024 bytes
]
EXPECTED = (
    StoredTensor(name="token_embd.weight", dtype="Q4_K", shape=(4, 256), size_bytes=4 * 144),
    StoredTensor(name="output_norm.weight", dtype="F32", shape=(256,), size_bytes=1024),
)
WHOLE = build(KEYS, INFOS, bytes(576 + 1024))


def read(tmp_path: Path, content: bytes) -> tuple[StoredTensor, ...]:
    path = tmp_path / "model.gguf"
    path.write_bytes(content)
    return read_tensors(path)


def refusal(tmp_path: Path, content: bytes) -> str:
    with pytest.raises(UnreadableInputError) as refused:
        read(tmp_path, content)
    message = str(refused.value)
    assert message.startswith(str(tmp_path / "model.gguf"))
    assert "\n" not in message
    return message


@pytest.mark.parametrize("version", [2, 3])
def test_names_types_shapes_and_sizes_are_those_of_the_header(tmp_path: Path, version: int) -> None:
    assert read(tmp_path, build(KEYS, INFOS, bytes(1600), version=version)) == EXPECTED


def test_data_begins_at_the_alignment_that_the_file_names(tmp_path: Path) -> None:
    keys = [*KEYS, uint32_key("general.alignment", 4096)]
    whole = build(keys, INFOS, bytes(1600), alignment=4096)
    assert read(tmp_path, whole) == EXPECTED
    assert "cut short" in refusal(tmp_path, whole[:-1])


@pytest.mark.parametrize(
    "alignment",
    [
        uint32_key("general.alignment", 0),
        string_key("general.alignment", "32"),
        strings_key("general.alignment", []),
        text("general.alignment") + struct.pack("<If", 6, float("nan")),
        text("general.alignment") + struct.pack("<Ii", 5, -32),
    ],
)
def test_an_alignment_that_is_no_positive_number_is_damage(tmp_path: Path, alignment: bytes) -> None:
    assert "alignment" in refusal(tmp_path, build([*KEYS, alignment], INFOS, bytes(1600)))


def test_a_file_that_the_library_wrote_reads_the_same(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(8192)
    writer.add_token_list(["<s>", "größer", "c"])
    writer.add_token_scores([0.0, -1.0, -2.0])
    weights = numpy.arange(2 * 64, dtype=numpy.float32).reshape(2, 64)
    quantised = gguf.quants.quantize(weights, gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("plain", weights)
    writer.add_tensor("half", weights.astype(numpy.float16))
    writer.add_tensor("quantised", quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("scalar", numpy.ones((1,), numpy.int8))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert read_tensors(path) == (
        StoredTensor(name="plain", dtype="F32", shape=(2, 64), size_bytes=2 * 64 * 4),
        StoredTensor(name="half", dtype="F16", shape=(2, 64), size_bytes=2 * 64 * 2),
        # Q8_0: blocks of 32 elements, a two-byte scale and 32 bytes each.
        StoredTensor(name="quantised", dtype="Q8_0", shape=(2, 64), size_bytes=2 * 64 // 32 * 34),
        StoredTensor(name="scalar", dtype="I8", shape=(1,), size_bytes=1),
    )
    library = {tensor.name: (tensor.tensor_type.name, tensor.n_bytes) for tensor in gguf.GGUFReader(path).tensors}
    assert {one.name: (one.dtype, one.size_bytes) for one in read_tensors(path)} == library


@pytest.mark.parametrize("kind", gguf.GGML_QUANT_SIZES, ids=lambda kind: kind.name)
def test_every_type_of_the_library_is_known_with_its_block(kind: gguf.GGMLQuantizationType) -> None:
    assert GGML_TYPES[int(kind)] == (kind.name, *gguf.GGML_QUANT_SIZES[kind])


@pytest.mark.parametrize("kind", sorted(GGML_TYPES))
def test_a_tensor_of_every_type_has_whole_blocks(tmp_path: Path, kind: int) -> None:
    _, elements, size = GGML_TYPES[kind]
    info = tensor_info("t", [elements * 2, 3], kind, 0)
    (tensor,) = read(tmp_path, build([], [info], bytes(6 * size)))
    assert tensor.size_bytes == 6 * size
    assert math.prod(tensor.shape) == 6 * elements
    assert "cut short" in refusal(tmp_path, build([], [info], bytes(6 * size - 1)))


@pytest.mark.parametrize("length", [*range(0, len(WHOLE), 13), len(WHOLE) - 1])
def test_every_truncation_is_refused(tmp_path: Path, length: int) -> None:
    refusal(tmp_path, WHOLE[:length])


def nested_arrays(depth: int) -> bytes:
    return text("deep") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * depth


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not a whole GGUF file"),
        (build(KEYS, INFOS, bytes(1600), magic=b"GGML"), "does not begin with GGUF"),
        (build(KEYS, INFOS, bytes(1600), version=1), "GGUF version 1; versions 2 and 3 are read"),
        (build(KEYS, INFOS, bytes(1600), version=4), "GGUF version 4"),
        (build(KEYS, [tensor_info("t", [32], 4, 0)], bytes(99)), "type number 4, which gpufit does not know"),
        (build(KEYS, [tensor_info("t", [32], 999, 0)], bytes(99)), "type number 999"),
        (build(KEYS, INFOS, bytes(1599)), "cut short: its header needs"),
        (build([text("key") + struct.pack("<I", 77)], [], b""), "not a whole GGUF file"),
        (build(KEYS, INFOS, bytes(1600), counts=(2**64 - 1, 5)), "tensor '' is there twice"),
        (build(KEYS, INFOS, bytes(1600), counts=(2, 2**64 - 1)), "not a whole GGUF file"),
        (build([struct.pack("<Q", 2**64 - 1)], [], bytes(64)), "not a whole GGUF file"),
        (build([text("k") + struct.pack("<IIQ", 9, 4, 2**64 - 1)], [], bytes(64)), "cut short"),
        (build([text("k") + struct.pack("<IIQ", 9, 8, 2**64 - 1)], [], bytes(64)), "not a whole GGUF file"),
        (build([nested_arrays(20_000)], [], bytes(64)), "not a whole GGUF file"),
        (build([], [tensor_info("t", [2**63, 2**63], 0, 0)], bytes(64)), "cut short"),
        (build([], [tensor_info("t", [1], 0, 2**63)], bytes(64)), "cut short"),
    ],
)
def test_a_damaged_file_is_refused_in_one_line_that_says_why(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in refusal(tmp_path, content)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, len(WHOLE) - 1601), st.integers(1, 255))
def test_a_changed_byte_of_the_header_gives_tensors_or_a_refusal_never_a_crash(
    tmp_path: Path, position: int, change: int
) -> None:
    damaged = bytearray(WHOLE)
    damaged[position] ^= change
    try:
        found = read(tmp_path, bytes(damaged))
    except UnreadableInputError:
        return
    assert sum(tensor.size_bytes for tensor in found) <= 2 * len(WHOLE)


@pytest.mark.parametrize(
    "count", [lambda n: text("split.count") + struct.pack("<IH", 2, n), lambda n: uint32_key("split.count", n)]
)
def test_one_piece_of_a_split_model_is_not_taken_for_the_whole(tmp_path: Path, count: Callable[[int], bytes]) -> None:
    message = refusal(tmp_path, build([*KEYS, count(3)], INFOS, bytes(1600)))
    assert "one of the 3 pieces" in message
    assert "--merge" in message
    assert read(tmp_path, build([*KEYS, count(1)], INFOS, bytes(1600))) == EXPECTED


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    for path, said in ((tmp_path / "none.gguf", "no such file"), (tmp_path, "a folder, not a file")):
        with pytest.raises(UnreadableInputError) as refused:
            read_tensors(path)
        assert str(refused.value) == f"{path}: {said}"
