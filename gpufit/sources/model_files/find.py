"""From what a user types to a checked model on disk."""

from __future__ import annotations

import enum
import hashlib
from pathlib import Path

from gpufit.errors import UnreadableInputError, unreadable
from gpufit.files import readable_name
from gpufit.sources.model_files import folder, gguf, hub, safetensors
from gpufit.sources.model_files.record import ModelFiles, StoredTensor
from gpufit.units import MIB


def find_model(text: str, revision: str | None = None) -> ModelFiles:
    """The model that `text` names: a directory, a GGUF file, or a hub id.

    A local path never calls out. Raises UnreadableInputError, saying what is wrong with which file.
    """
    path = Path(text)
    kind = kind_of(text)
    if kind is Kind.FILE:
        return _gguf_model(path)
    if kind is Kind.FOLDER:
        return _directory_model(path, text, None)
    snapshot = hub.download(text, revision)
    return _directory_model(snapshot, text, snapshot.name)


class Kind(enum.Enum):
    """What the text that a user typed for a model leads to."""

    FILE = "file"
    FOLDER = "folder"
    HUB = "hub"


def kind_of(text: str) -> Kind:
    """What `text` leads to: something on disk, which wins, or a repository by its form.

    Raises UnreadableInputError when it can be neither.
    """
    if text != readable_name(text):
        raise UnreadableInputError(f"{text!a}: the name is not UTF-8 text, which a profile could not hold; rename it")
    path = Path(text)
    try:
        if path.is_file():
            return Kind.FILE
        if path.is_dir():
            return Kind.FOLDER
    except OSError as error:
        raise unreadable(path, error) from error
    if hub.is_id(text):
        return Kind.HUB
    raise UnreadableInputError(
        f"{text}: no such model (no such directory or GGUF file, and not a hub id like org/name)"
    )


def config_name(path: Path) -> str:
    """What a model is called of which only a config is known: its folder's name, or the file's where that says more."""
    return path.stem if path.stem != "config" else path.resolve().parent.name


def find_config(text: str, revision: str | None = None) -> ModelFiles:
    """The model that `text` names, of which a config is enough: a directory, a config file, a GGUF file, or a hub id.

    Weights that are there tell of the dtypes they are stored in. A local path never calls out, and of a hub id nothing
    but its config is fetched. Raises UnreadableInputError, saying what is wrong with which file.
    """
    path, kind = Path(text), kind_of(text)
    if kind is Kind.FILE and path.suffix == ".json":
        return _configured(path, path, config_name(path))
    if kind is Kind.HUB:
        config = hub.config(text, revision)
        return _configured(config, config.parent, text, config.parent.name)
    if kind is Kind.FOLDER and (path / folder.CONFIG).is_file() and not _has_weights(path):
        return _configured(path / folder.CONFIG, path, path.resolve().name)
    return find_model(text, revision)


def _configured(config: Path, path: Path, name: str, revision: str | None = None) -> ModelFiles:
    """A model of which only the config is known."""
    return ModelFiles(
        path=path,
        name=name,
        weight_files=(),
        tensors=(),
        config=folder.read_json(config, "a model needs it"),
        fingerprint=fingerprint((config,)),
        revision=revision,
    )


def _has_weights(path: Path) -> bool:
    """Whether every file of a directory's weights is there."""
    files = folder.safetensors_files(path)
    return bool(files) and all(file.is_file() for file in files)


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
    config = folder.read_json(path / folder.CONFIG, "a model directory needs it")
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
        fingerprint=fingerprint((path / folder.CONFIG, *files)),
        revision=revision,
    )


def _weight_files(path: Path) -> tuple[Path, ...]:
    files = folder.safetensors_files(path)
    if files:
        return files
    pickled = folder.pickled_files(path)
    if pickled:
        raise UnreadableInputError(
            f"{path}: only pickled weights ({pickled[0].name}), which can run code when loaded; convert them to "
            "safetensors (model.save_pretrained) and measure that"
        )
    ggufs = sorted(path.glob("*.gguf"))
    if ggufs:
        raise UnreadableInputError(f"{path}: holds GGUF files; name the one to measure, for example {ggufs[0]}")
    raise UnreadableInputError(f"{path}: no weights (no {folder.SINGLE} and no {folder.INDEX})")


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
            raise unreadable(file, error) from error
    return digest.hexdigest()
