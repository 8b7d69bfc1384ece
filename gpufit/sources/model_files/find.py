"""From what a user types to a checked model on disk."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpufit.errors import UnreadableInputError
from gpufit.sources.model_files import gguf, safetensors
from gpufit.sources.model_files.record import ModelFiles, StoredTensor
from gpufit.units import MIB

_HUB_ID = re.compile(r"[\w.-]+/[\w.-]+")
_HUB_PATTERNS = ["*.json", "*.safetensors", "*.model", "*.txt", "*.py"]


def find_model(text: str, revision: str | None = None) -> ModelFiles:
    """The model that `text` names: a directory, a GGUF file, or a hub id.

    A local path never calls out. Raises UnreadableInputError, saying what is wrong with which file.
    """
    if text != text.encode(errors="replace").decode():
        raise UnreadableInputError(f"{text!a}: the name is not UTF-8 text, which a profile could not hold; rename it")
    path = Path(text)
    try:
        is_file, is_folder = path.is_file(), path.is_dir()
    except OSError as error:
        raise UnreadableInputError(f"{path}: cannot be read ({error.strerror})") from error
    if is_file:
        return _gguf_model(path)
    if is_folder:
        return _directory_model(path, text, None)
    if _HUB_ID.fullmatch(text) and not text.startswith("."):
        folder = _download(text, revision)
        return _directory_model(folder, text, folder.name)
    raise UnreadableInputError(
        f"{text}: no such model (no such directory or GGUF file, and not a hub id like org/name)"
    )


def find_config(text: str, revision: str | None = None) -> ModelFiles:
    """The model that `text` names, of which a config is enough: a directory, a config file, a GGUF file, or a hub id.

    Weights that are there tell of the dtypes they are stored in. A local path never calls out, and of a hub id nothing
    but its config is fetched. Raises UnreadableInputError, saying what is wrong with which file.
    """
    path = Path(text)
    if path.suffix == ".json" and _is_file(path):
        return _configured(path, path, path.stem if path.stem != "config" else path.resolve().parent.name)
    if _HUB_ID.fullmatch(text) and not text.startswith(".") and not _is_there(path):
        config = _download_config(text, revision)
        return _configured(config, config.parent, text, config.parent.name)
    if _is_there(path / "config.json") and not _has_weights(path):
        return _configured(path / "config.json", path, path.resolve().name)
    return find_model(text, revision)


def _configured(config: Path, path: Path, name: str, revision: str | None = None) -> ModelFiles:
    """A model of which only the config is known."""
    return ModelFiles(
        path=path,
        name=name,
        weight_files=(),
        tensors=(),
        config=_read_json(config, "a model needs it"),
        fingerprint=fingerprint((config,)),
        revision=revision,
    )


def _has_weights(path: Path) -> bool:
    """Whether every file of a directory's weights is there."""
    if _is_there(path / "model.safetensors.index.json"):
        return all(_is_file(file) for file in _weight_files(path))
    return _is_file(path / "model.safetensors")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name too long, a folder that may not be entered: reading it says so in words
        return False


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        return False


def _gguf_model(path: Path) -> ModelFiles:
    if path.suffix != ".gguf":
        raise UnreadableInputError(f"{path}: not a model: give a model directory, a .gguf file or a hub id")
    return ModelFiles(
        path=path,
        name=path.stem,
        weight_files=(path,),
        tensors=gguf.read_tensors(path),
        config={},
        fingerprint=fingerprint((path,)),
    )


def _directory_model(path: Path, text: str, revision: str | None) -> ModelFiles:
    config = _read_json(path / "config.json", "a model directory needs it")
    files = _weight_files(path)
    tensors: list[StoredTensor] = []
    for file in files:
        tensors.extend(safetensors.read_tensors(file))
    return ModelFiles(
        path=path,
        name=text if revision else path.resolve().name,
        weight_files=files,
        tensors=tuple(tensors),
        config=config,
        fingerprint=fingerprint((path / "config.json", *files)),
        revision=revision,
    )


def _weight_files(path: Path) -> tuple[Path, ...]:
    single, index = path / "model.safetensors", path / "model.safetensors.index.json"
    if single.is_file():
        return (single,)
    if index.is_file():
        shards = _read_json(index, "the shards' index").get("weight_map")
        if not isinstance(shards, dict) or not shards:
            raise UnreadableInputError(f"{index}: names no shards (no weight_map in it)")
        if not all(isinstance(name, str) for name in shards.values()):
            raise UnreadableInputError(f"{index}: damaged: a shard's name in its weight_map is not text")
        return tuple(path / name for name in sorted(set(shards.values())))
    pickled = sorted(path.glob("*.bin")) + sorted(path.glob("*.pt")) + sorted(path.glob("*.pth"))
    if pickled:
        raise UnreadableInputError(
            f"{path}: only pickled weights ({pickled[0].name}), which can run code when loaded; convert them to "
            "safetensors (model.save_pretrained) and measure that"
        )
    ggufs = sorted(path.glob("*.gguf"))
    if ggufs:
        raise UnreadableInputError(f"{path}: holds GGUF files; name the one to measure, for example {ggufs[0]}")
    raise UnreadableInputError(f"{path}: no weights (no model.safetensors and no model.safetensors.index.json)")


def _read_json(path: Path, why: str) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError as error:
        raise UnreadableInputError(f"{path}: no such file; {why}") from error
    except OSError as error:
        raise UnreadableInputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise UnreadableInputError(f"{path}: not JSON ({error})") from error
    if not isinstance(found, dict):
        raise UnreadableInputError(f"{path}: not a JSON object")
    return found


def _download(repository: str, revision: str | None) -> Path:
    """The hub's snapshot of a repository, from the cache where it is there. The folder's name is the commit."""
    return _fetch(
        repository, lambda hub: hub.snapshot_download(repository, revision=revision, allow_patterns=_HUB_PATTERNS)
    )


def _download_config(repository: str, revision: str | None) -> Path:
    """The config of a repository on the hub, in a folder named for the commit."""
    return _fetch(repository, lambda hub: hub.hf_hub_download(repository, "config.json", revision=revision))


def _fetch(repository: str, fetch: Callable[[Any], str]) -> Path:
    """What `fetch` gets with the hub's library. Raises UnreadableInputError where that cannot be had."""
    try:
        import huggingface_hub
        from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    except ImportError as error:
        raise UnreadableInputError(
            f"{repository}: no such directory; to fetch it from the hub install gpufit[measure]"
        ) from error
    try:
        return Path(fetch(huggingface_hub))
    except LocalEntryNotFoundError as error:
        raise UnreadableInputError(
            f"{repository}: no such directory, not in the hub's cache, and the hub cannot be reached"
        ) from error
    except (HfHubHTTPError, HFValidationError, OSError) as error:
        raise UnreadableInputError(
            f"{repository}: no such directory, and the hub says: {_first_line(error)}"
        ) from error


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)


def fingerprint(files: tuple[Path, ...]) -> str:
    """SHA-256 over name, size, first and last MiB of every file: tells two models apart without reading them whole.

    Raises UnreadableInputError when a file cannot be read.
    """
    digest = hashlib.sha256()
    for file in files:
        try:
            size = file.stat().st_size
            with file.open("rb") as handle:
                digest.update(f"{file.name}\0{size}\0".encode())
                digest.update(handle.read(MIB))
                handle.seek(max(size - MIB, 0))
                digest.update(handle.read(MIB))
        except OSError as error:
            raise UnreadableInputError(f"{file}: cannot be read ({error.strerror})") from error
    return digest.hexdigest()
