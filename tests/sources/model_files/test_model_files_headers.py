"""What the headers of local models tell, whatever form they come in, and what is said of damaged ones."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from model_files import SMOLLM2, need, safetensors_bytes, write_model, write_sparse

from gpufit.architecture.registry import architecture_of
from gpufit.errors import UnreadableInputError
from gpufit.sources.model_files.headers import open_headers
from gpufit.sources.model_files.record import ModelHeaders

CONFIG = {"model_type": "llama", "hidden_size": 8}
TENSORS = {"a.weight": ("BF16", (8, 4)), "b.weight": ("F32", (3,)), "c.weight": ("U8", (5, 2))}
BYTES = 8 * 4 * 2 + 3 * 4 + 5 * 2


def refusal(path: Path | str) -> str:
    with pytest.raises(UnreadableInputError) as refused:
        open_headers(str(path))
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("shards", [1, 2, 3])
def test_a_directory_tells_of_the_tensors_in_all_its_shards(tmp_path: Path, shards: int) -> None:
    found = open_headers(str(write_model(tmp_path / "mine", CONFIG, TENSORS, shards)))
    assert (found.name, found.format, found.revision, found.notes) == ("mine", "safetensors", None, ())
    assert found.config == CONFIG
    assert {one.name: (one.dtype, one.shape) for one in found.tensors} == TENSORS
    assert found.weight_bytes == BYTES
    assert [(one.dtype, one.size_bytes) for one in found.stored] == [("BF16", 64), ("F32", 12), ("U8", 10)]


def test_a_directory_with_a_config_alone_has_no_tensors_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    for path in (tmp_path, tmp_path / "config.json"):
        found = open_headers(str(path))
        assert (found.tensors, found.format, found.weight_bytes) == ((), "none", 0)
        assert found.config == CONFIG
        assert "no weight files" in found.notes[0]


def test_safetensors_that_nothing_names_are_not_taken_for_the_model_and_it_is_said(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    write_sparse(tmp_path / "adapter_model.safetensors", TENSORS)
    found = open_headers(str(tmp_path))
    assert found.tensors == ()
    assert "adapter_model.safetensors is not read" in found.notes[1]


def test_pickled_weights_are_counted_by_size_and_never_opened(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    (tmp_path / "pytorch_model-1.bin").write_bytes(b"not a pickle at all")
    (tmp_path / "pytorch_model-2.bin").write_bytes(b"nor this")
    found = open_headers(str(tmp_path))
    assert (found.format, found.tensors, found.pickled_bytes, found.weight_bytes) == ("pickled", (), 27, 27)
    assert "never opened" in found.notes[0]
    assert "pytorch_model-1.bin, pytorch_model-2.bin" in found.notes[0]


def test_one_safetensors_file_is_a_model_with_the_config_beside_it(tmp_path: Path) -> None:
    write_model(tmp_path, CONFIG, TENSORS)
    found = open_headers(str(tmp_path / "model.safetensors"))
    assert (found.config, found.weight_bytes) == (CONFIG, BYTES)
    (tmp_path / "config.json").unlink()
    assert open_headers(str(tmp_path / "model.safetensors")).config == {}


def test_one_shard_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    write_model(tmp_path, CONFIG, TENSORS, 2)
    assert "one of 2 shards" in refusal(tmp_path / "model-00001-of-00002.safetensors")


@pytest.mark.parametrize(
    ("file", "declared", "method"),
    [
        ("quantize_config.json", {"bits": 4, "group_size": 128, "desc_act": False}, "gptq"),
        ("quant_config.json", {"w_bit": 4, "q_group_size": 128, "zero_point": True, "version": "GEMM"}, "awq"),
        ("hf_quant_config.json", {"producer": {}, "quantization": {"quant_algo": "NVFP4"}}, "modelopt"),
    ],
)
def test_the_quantisation_that_older_checkpoints_keep_beside_the_config_is_read(
    tmp_path: Path, file: str, declared: dict[str, object], method: str
) -> None:
    write_model(tmp_path, CONFIG, TENSORS)
    (tmp_path / file).write_text(json.dumps(declared))
    assert open_headers(str(tmp_path)).config["quantization_config"]["quant_method"] == method
    own = {"quant_method": "fp8"}
    (tmp_path / "config.json").write_text(json.dumps(CONFIG | {"quantization_config": own}))
    assert open_headers(str(tmp_path)).config["quantization_config"] == own


def test_a_gguf_file_tells_its_config_and_blocks() -> None:
    found = open_headers(str(need(SMOLLM2)))
    assert found.format == "gguf"
    # https://huggingface.co/HuggingFaceTB/SmolLM2-135M: 134,515,008 parameters, embeddings tied.
    architecture = architecture_of(found.config, found.config_where)
    assert (architecture.parameters, architecture.tied) == (134_515_008, True)
    # 210 matrices of 106,168,320 weights in blocks of 32 of 20 bytes; the table in blocks of 34; 61 norms in float32.
    assert {one.dtype: one.size_bytes for one in found.stored} == {
        "Q4_1": 106_168_320 // 32 * 20,
        "Q8_0": 49_152 * 576 // 32 * 34,
        "F32": 61 * 576 * 4,
    }


def _of_shards(damage: str, folder: Path) -> None:
    """A damaged directory of two shards."""
    write_model(folder, CONFIG, TENSORS, 2)
    first, second = folder / "model-00001-of-00002.safetensors", folder / "model-00002-of-00002.safetensors"
    index = folder / "model.safetensors.index.json"
    if damage == "missing":
        second.unlink()
    elif damage == "truncated":
        second.write_bytes(second.read_bytes()[:-1])
    elif damage == "huge header":
        first.write_bytes(struct.pack("<Q", 2**60) + first.read_bytes()[8:])
    elif damage == "twice":
        second.write_bytes(first.read_bytes())
    elif damage == "outside":
        index.write_text(json.dumps({"weight_map": {"a": "../elsewhere.safetensors"}}))
    elif damage == "absolute":
        index.write_text(json.dumps({"weight_map": {"a": "/etc/passwd"}}))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("missing", "model-00002-of-00002.safetensors: no such file"),
        ("truncated", "cut short or damaged: its header promises"),
        ("huge header", "not a whole safetensors file"),
        ("twice", "two shards hold a tensor 'a.weight'"),
        ("outside", "names a shard outside the model"),
        ("absolute", "names a shard outside the model"),
    ],
)
def test_damaged_shards_are_refused_in_one_line(tmp_path: Path, damage: str, said: str) -> None:
    _of_shards(damage, tmp_path)
    assert said in refusal(tmp_path)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (b"", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"{'a': 1}", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b'{"a":' * 100_000, "not JSON"),
    ],
)
def test_a_damaged_config_is_named(tmp_path: Path, config: bytes, said: str) -> None:
    (tmp_path / "config.json").write_bytes(config)
    assert said in refusal(tmp_path)
    assert said in refusal(tmp_path / "config.json")


LLAMA = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 256,
}


@pytest.mark.parametrize("value", ['"64"', "Infinity", "-Infinity", "NaN", "64.0", "true", "[64]", "1e400", "-1", "{}"])
@pytest.mark.parametrize("key", ["hidden_size", "num_hidden_layers", "vocab_size"])
def test_a_config_with_something_else_than_a_whole_number_is_refused(tmp_path: Path, key: str, value: str) -> None:
    pairs = ", ".join(f'"{name}": {value if name == key else json.dumps(own)}' for name, own in LLAMA.items())
    (tmp_path / "config.json").write_text("{" + pairs + "}")
    found = open_headers(str(tmp_path))
    with pytest.raises(UnreadableInputError, match=key):
        architecture_of(found.config, found.config_where)


def test_infinity_under_a_key_that_does_not_matter_is_no_harm(tmp_path: Path) -> None:
    # Mamba-2's configs have `"time_step_limit": [0.0, Infinity]`.
    (tmp_path / "config.json").write_text(json.dumps(LLAMA)[:-1] + ', "time_step_limit": [0.0, Infinity]}')
    found = open_headers(str(tmp_path))
    assert architecture_of(found.config, found.config_where).hidden == 64


def test_what_is_no_model_says_what_is(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    assert "not a model: give a model directory, a config.json" in refusal(tmp_path / "notes.txt")
    (tmp_path / "b.gguf").write_bytes(b"")
    assert "holds GGUF files; name one of them" in refusal(tmp_path)
    (tmp_path / "b.gguf").unlink()
    assert "no such file; a model directory needs it" in refusal(tmp_path)
    with pytest.raises(UnreadableInputError, match="no revision v2 can be chosen"):
        open_headers(str(tmp_path), "v2")


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    write_model(tmp_path, CONFIG, TENSORS)
    (tmp_path / "model.safetensors").unlink()
    (tmp_path / "model.safetensors").symlink_to(tmp_path / "model.safetensors")
    found = open_headers(str(tmp_path))
    assert found.format == "none"
    (tmp_path / "config.json").unlink()
    (tmp_path / "config.json").mkdir()
    assert "config.json" in refusal(tmp_path)


HEAD, DATA_BYTES = safetensors_bytes(TENSORS)
WHOLE = HEAD + bytes(DATA_BYTES)


def told(path: Path) -> tuple[ModelHeaders | None, str]:
    """What was found, or what was said instead; any other error fails the test."""
    try:
        return open_headers(str(path)), ""
    except UnreadableInputError as error:
        return None, str(error)


_HARMLESS = [HealthCheck.function_scoped_fixture]


@settings(max_examples=300, deadline=None, suppress_health_check=_HARMLESS)
@given(st.binary(max_size=64), st.sampled_from(["model.safetensors", "model.gguf", "config.json"]))
def test_garbage_is_refused_and_never_crashes(tmp_path: Path, garbage: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes({"model.gguf": b"GGUF"}.get(name, b"") + garbage)
    found, said = told(path)
    assert found is None or found.tensors == ()
    assert "\n" not in said


@settings(max_examples=300, deadline=None, suppress_health_check=_HARMLESS)
@given(st.integers(0, len(HEAD) - 1), st.binary(min_size=1, max_size=4), st.integers(0, len(WHOLE)))
def test_a_changed_or_cut_header_gives_whole_tensors_or_a_refusal(
    tmp_path: Path, position: int, change: bytes, length: int
) -> None:
    path = tmp_path / "model.safetensors"
    damaged = (WHOLE[:position] + change + WHOLE[position + len(change) :])[: max(length, position)]
    path.write_bytes(damaged)
    found, said = told(path)
    assert "\n" not in said
    # Whatever was changed, what is told of fills the file.
    assert found is None or found.weight_bytes + 8 + struct.unpack("<Q", damaged[:8])[0] == len(damaged)


def test_a_local_model_needs_neither_torch_nor_the_hub(tmp_path: Path) -> None:
    write_model(tmp_path, CONFIG, TENSORS, 3)
    code = (
        "import sys; from gpufit.sources.model_files.headers import open_headers; "
        f"open_headers({str(tmp_path)!r}); print(*sorted(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert not loaded & {"torch", "transformers", "safetensors", "gguf", "numpy", "huggingface_hub", "ssl"}
    assert len(loaded) <= 150
