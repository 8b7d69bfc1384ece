"""A model of which only the config is there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from model_files import MINILM, need

from gpufit.errors import UnreadableInputError
from gpufit.sources.model_files.find import find_config, find_model

CONFIG = {"model_type": "llama", "hidden_size": 64}


def save(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(CONFIG))
    return path


def test_a_folder_needs_no_weights(tmp_path: Path) -> None:
    config = save(tmp_path / "my-model" / "config.json")
    found = find_config(str(config.parent))
    assert (found.name, found.path, found.config, found.stored) == ("my-model", config.parent, CONFIG, ())
    with pytest.raises(UnreadableInputError, match="no weights"):
        find_model(str(config.parent))


def test_a_config_file_is_named_for_itself_or_for_its_folder(tmp_path: Path) -> None:
    own, plain = save(tmp_path / "llama-8b.json"), save(tmp_path / "my-model" / "config.json")
    assert [find_config(str(one)).name for one in (own, plain)] == ["llama-8b", "my-model"]
    assert find_config(str(own)).path == own
    assert find_config(str(plain)).fingerprint != find_config(str(own)).fingerprint, "the name is part of it"


def test_an_index_without_its_shards_is_no_weights(tmp_path: Path) -> None:
    config = save(tmp_path / "my-model" / "config.json")
    index = {"weight_map": {"a": "model-00001-of-00002.safetensors"}}
    (config.parent / "model.safetensors.index.json").write_text(json.dumps(index))
    assert find_config(str(config.parent)).tensors == ()


def test_weights_that_are_there_tell_their_dtypes() -> None:
    assert find_config(str(need(MINILM))) == find_model(str(MINILM))


@pytest.mark.parametrize(
    ("text", "said"),
    [("none", "no such model"), ("org/none", "in the hub's cache"), ("list.json", "not a JSON object")],
)
def test_what_is_no_model_is_told(text: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list.json").write_text("[]")
    with pytest.raises(UnreadableInputError, match=said):
        find_config(text)
