from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from gpufit.errors import UnreadableInputError
from gpufit.profile.precision import DtypeShare
from gpufit.sources.model_files.find import find_model, fingerprint
from gpufit.sources.model_files.record import dtype_shares

MIB = 2**20


def write_tensors(path: Path, **sizes: int) -> Path:
    """A safetensors file of one-byte tensors."""
    header, at = {}, 0
    for name, size in sizes.items():
        header[name] = {"dtype": "I8", "shape": [size], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(at))
    return path


def make_directory(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny"
    folder.mkdir()
    (folder / "config.json").write_text('{"model_type": "llama"}')
    return folder


def refusal(text: str) -> str:
    with pytest.raises(UnreadableInputError) as refused:
        find_model(text)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_directory_with_one_file_is_a_model(tmp_path: Path) -> None:
    folder = make_directory(tmp_path)
    write_tensors(folder / "model.safetensors", a=10, b=5)
    model = find_model(str(folder))
    assert (model.name, model.path, model.revision, model.is_gguf) == ("tiny", folder, None, False)
    assert model.weight_files == (folder / "model.safetensors",)
    assert model.config == {"model_type": "llama"}
    assert model.stored == (DtypeShare(dtype="I8", size_bytes=15, tensors=2),)


def test_a_relative_path_is_named_after_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_directory(tmp_path)
    write_tensors(folder / "model.safetensors", a=1)
    monkeypatch.chdir(folder)
    assert find_model(".").name == "tiny"


def test_shards_are_those_that_the_index_names_each_once(tmp_path: Path) -> None:
    folder = make_directory(tmp_path)
    names = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    write_tensors(folder / names[1], c=3)
    write_tensors(folder / names[0], a=10, b=5)
    write_tensors(folder / "other.safetensors", z=99)
    index = {"metadata": {"total_size": 18}, "weight_map": {"a": names[0], "b": names[0], "c": names[1]}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    model = find_model(str(folder))
    assert [path.name for path in model.weight_files] == names
    assert sorted((tensor.name, tensor.size_bytes) for tensor in model.tensors) == [("a", 10), ("b", 5), ("c", 3)]


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    folder = make_directory(tmp_path)
    write_tensors(folder / "one.safetensors", a=1)
    index = {"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    message = refusal(str(folder))
    assert str(folder / "two.safetensors") in message
    assert message.endswith("no such file")


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("{}", "names no shards"),
        ('{"weight_map": {}}', "names no shards"),
        ('{"weight_map": []}', "names no shards"),
        ('{"weight_map": {"a": 5}}', "damaged"),
        ('{"weight_map": {"a": ["x"]}}', "damaged"),
        ('{"weight_map": {"a": "x", "b": null}}', "damaged"),
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        ("[" * 50_000, "not JSON"),
    ],
)
def test_a_damaged_index_is_named(tmp_path: Path, index: str, said: str) -> None:
    folder = make_directory(tmp_path)
    (folder / "model.safetensors.index.json").write_text(index)
    message = refusal(str(folder))
    assert "model.safetensors.index.json" in message
    assert said in message


@pytest.mark.parametrize(
    ("config", "said"),
    [(None, "no such file; a model directory needs it"), ("{", "not JSON"), ("[]", "not a JSON object"), ("ÿ", "JSON")],
)
def test_a_missing_or_damaged_config_is_named(tmp_path: Path, config: str | None, said: str) -> None:
    folder = make_directory(tmp_path)
    write_tensors(folder / "model.safetensors", a=1)
    if config is None:
        (folder / "config.json").unlink()
    else:
        (folder / "config.json").write_text(config, encoding="latin-1")
    message = refusal(str(folder))
    assert str(folder / "config.json") in message
    assert said in message


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "consolidated.00.pth"])
def test_pickled_weights_are_refused_with_the_reason_and_the_way_out(tmp_path: Path, name: str) -> None:
    folder = make_directory(tmp_path)
    (folder / name).write_bytes(b"\x80\x04.")
    message = refusal(str(folder))
    assert name in message
    assert "can run code when loaded" in message
    assert "safetensors" in message


def test_safetensors_beside_pickled_weights_are_taken(tmp_path: Path) -> None:
    folder = make_directory(tmp_path)
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    write_tensors(folder / "model.safetensors", a=1)
    assert [path.name for path in find_model(str(folder)).weight_files] == ["model.safetensors"]


def test_a_directory_of_gguf_files_asks_which(tmp_path: Path) -> None:
    folder = make_directory(tmp_path)
    for name in ("b.Q8_0.gguf", "a.Q4_K.gguf"):
        (folder / name).write_bytes(b"GGUF")
    assert f"name the one to measure, for example {folder / 'a.Q4_K.gguf'}" in refusal(str(folder))


def test_a_directory_without_weights_says_what_it_looked_for(tmp_path: Path) -> None:
    assert "no weights (no model.safetensors and no" in refusal(str(make_directory(tmp_path)))


def test_a_truncated_weight_file_is_named(tmp_path: Path) -> None:
    folder = make_directory(tmp_path)
    path = write_tensors(folder / "model.safetensors", a=100)
    path.write_bytes(path.read_bytes()[:-1])
    assert f"{path}: cut short or damaged" in refusal(str(folder))


def test_a_gguf_file_is_a_model_by_itself(tmp_path: Path) -> None:
    path = tmp_path / "tiny.Q8_0.gguf"
    info = struct.pack("<Q", 1) + b"t" + struct.pack("<IQIQ", 1, 32, 8, 0)
    header = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + info
    path.write_bytes(header + bytes(-len(header) % 32) + bytes(34))
    model = find_model(str(path))
    assert (model.name, model.is_gguf, model.config) == ("tiny.Q8_0", True, {})
    assert model.stored == (DtypeShare(dtype="Q8_0", size_bytes=34, tensors=1),)


@pytest.mark.parametrize("name", ["model.safetensors", "notes.txt"])
def test_another_file_is_not_a_model(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert "not a model: give a model directory, a .gguf file or a hub id" in refusal(str(tmp_path / name))


@pytest.mark.parametrize("text", ["no/such/model/here", "./missing", "missing", "../x", "a b/c", "n" * 300])
def test_what_leads_nowhere_and_is_no_hub_id_is_said_without_asking_the_hub(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def download(*arguments: object) -> None:
        raise AssertionError("a local path must never call out")

    monkeypatch.setattr("gpufit.sources.model_files.hub.download", download)
    assert refusal(text).startswith(text)


def test_a_hub_id_that_is_not_in_the_cache_says_so_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    message = refusal("org/model-that-is-not-there")
    assert message.startswith("org/model-that-is-not-there: no such directory")


def test_the_fingerprint_is_the_same_for_the_same_files_wherever_they_lie(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    for folder in ("a", "b"):
        (tmp_path / folder / "w").write_bytes(b"weights")
    first, second = (fingerprint((tmp_path / folder / "w",)) for folder in ("a", "b"))
    assert first == second
    assert len(bytes.fromhex(first)) == 32


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (b"Weights" + bytes(3 * MIB), "w"),  # the first MiB
        (b"weights" + bytes(3 * MIB - 1) + b"\1", "w"),  # the last MiB
        (b"weights" + bytes(3 * MIB + 1), "w"),  # the size
        (b"weights" + bytes(3 * MIB), "v"),  # the name
    ],
)
def test_the_fingerprint_changes_with_content_size_and_name(tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / "w"
    path.write_bytes(b"weights" + bytes(3 * MIB))
    before = fingerprint((path,))
    (tmp_path / name).write_bytes(content)
    assert fingerprint((tmp_path / name,)) != before


def test_the_fingerprint_tells_where_one_file_ends_and_the_next_begins(tmp_path: Path) -> None:
    files = {}
    for name, content in {"a": b"xy", "b": b"z"}.items():
        (tmp_path / name).write_bytes(content)
        files[name] = tmp_path / name
    whole = fingerprint((files["a"], files["b"]))
    files["a"].write_bytes(b"x")
    files["b"].write_bytes(b"yz")
    assert fingerprint((files["a"], files["b"])) != whole


def test_the_fingerprint_of_a_model_changes_with_its_config(tmp_path: Path) -> None:
    folder = make_directory(tmp_path)
    write_tensors(folder / "model.safetensors", a=1)
    before = find_model(str(folder)).fingerprint
    (folder / "config.json").write_text('{"model_type": "qwen3"}')
    assert find_model(str(folder)).fingerprint != before


def test_a_file_that_cannot_be_read_has_no_fingerprint(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInputError, match="no such file"):
        fingerprint((tmp_path / "none",))


def test_dtypes_are_summed_and_the_largest_comes_first() -> None:
    shares = dtype_shares([("F32", 4), ("BF16", 100), ("F32", 8), ("I8", 12)])
    assert [(one.dtype, one.size_bytes, one.tensors) for one in shares] == [
        ("BF16", 100, 1),
        ("F32", 12, 2),
        ("I8", 12, 1),
    ]
