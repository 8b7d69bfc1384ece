"""From what a user types to what an estimate needs: config and headers, never the weights themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gpufit.errors import UnreadableInputError, unreadable
from gpufit.sources.model_files import folder, gguf, gguf_config, hub, safetensors
from gpufit.sources.model_files.find import Kind, config_name, kind_of
from gpufit.sources.model_files.record import ModelHeaders, StoredTensor

_SHARD = re.compile(r".*-\d{5}-of-(\d{5})\.safetensors")

_PICKLED = "pickled weights ({names}): counted by the size of the files, never opened, since unpickling can run code"
_NO_WEIGHTS = "no weight files: shapes and dtypes are those that {config} tells of"

_QUANTISED_SUFFIXES = (".qweight", ".weight_scale", ".weight_packed")
"""Names that a checkpoint has only where it is quantised."""


def open_headers(text: str, revision: str | None = None) -> ModelHeaders:
    """What the headers of the model that `text` names tell.

    `text` is a model directory, a config.json, a .safetensors or .gguf file, or a hub id. A local path never calls
    out; a hub id does only where the local cache does not hold all of the model.
    Raises UnreadableInputError, saying what is wrong with which file.
    """
    path, kind = Path(text), kind_of(text)
    if kind is not Kind.HUB and revision is not None:
        raise UnreadableInputError(f"{text}: is on this disk, where no revision {revision} can be chosen")
    if kind is Kind.FILE:
        return _of_file(path)
    if kind is Kind.FOLDER:
        return _of_folder(path, path.resolve().name, None)
    snapshot = hub.cached(text, revision)
    if snapshot is not None:
        return _of_folder(snapshot, text, snapshot.name)
    return _of_repository(text, hub.headers(text, revision))


def _of_file(path: Path) -> ModelHeaders:
    if path.suffix == ".gguf":
        return _of_gguf(path)
    if path.suffix == ".json":
        config = folder.read_json(path, "")
        return _without_weights(config, str(path), config_name(path), None, (), ())
    if path.suffix == ".safetensors":
        return _of_safetensors(path)
    raise UnreadableInputError(
        f"{path}: not a model: give a model directory, a config.json, a .safetensors or .gguf file, or a hub id"
    )


def _of_gguf(path: Path) -> ModelHeaders:
    header = gguf.read_model(path)
    return ModelHeaders(
        name=path.stem,
        config=gguf_config.config_of(header, str(path)),
        config_where=str(path),
        tensors=header.tensors,
        format="gguf",
    )


def _of_safetensors(path: Path) -> ModelHeaders:
    shard = _SHARD.fullmatch(path.name)
    if shard is not None and int(shard[1]) > 1:
        raise UnreadableInputError(f"{path}: one of {int(shard[1])} shards; give the directory, which holds them all")
    tensors = safetensors.read_tensors(path)
    config = path.with_name(folder.CONFIG)
    values = _config_of(path.parent) if config.is_file() else {}
    return ModelHeaders(path.stem, values, str(config), tensors, "safetensors")


def _of_folder(path: Path, name: str, revision: str | None) -> ModelHeaders:
    where = str(path / folder.CONFIG)
    if not (path / folder.CONFIG).is_file():
        ggufs = sorted(path.glob("*.gguf"))
        if ggufs:
            raise UnreadableInputError(f"{path}: holds GGUF files; name one of them, for example {ggufs[0]}")
    config = _config_of(path)
    files = folder.safetensors_files(path)
    if files:
        tensors = tuple(tensor for file in files for tensor in safetensors.read_tensors(file))
        _check_once(tensors, str(path))
        return ModelHeaders(name, config, where, tensors, "safetensors", revision=revision)
    pickled = tuple((file.name, _size(file)) for file in folder.pickled_files(path))
    others = tuple(sorted(file.name for file in path.glob("*.safetensors")))
    return _without_weights(config, where, name, revision, pickled, others)


def _of_repository(repository: str, found: hub.RemoteModel) -> ModelHeaders:
    where = f"{repository}: {folder.CONFIG}"
    config = folder.read_json(found.config, "the hub's client said that it is there", where)
    if _names_no_quantization(config) and any(one.name.endswith(_QUANTISED_SUFFIXES) for one in found.tensors):
        for name in folder.QUANTIZATION_FILES:
            file = hub.other_json(repository, name, found.commit)
            if file is not None:
                config = _with_quantization(config, folder.read_json(file, "", f"{repository}: {name}"))
                break
    if found.tensors:
        _check_once(found.tensors, repository)
        return ModelHeaders(repository, config, where, found.tensors, "safetensors", revision=found.commit)
    others = tuple(name for name in found.others if name.endswith((".safetensors", ".gguf")))
    return _without_weights(config, where, repository, found.commit, found.pickled, others)


def _without_weights(
    config: dict[str, Any],
    where: str,
    name: str,
    revision: str | None,
    pickled: tuple[tuple[str, int], ...],
    others: tuple[str, ...],
) -> ModelHeaders:
    """A model whose weights have no headers: pickled ones by size, else the config alone."""
    if pickled:
        named = ", ".join(file for file, _ in pickled[:3]) + (", …" if len(pickled) > 3 else "")
        notes: tuple[str, ...] = (_PICKLED.format(names=named),)
        total = sum(size for _, size in pickled)
        return ModelHeaders(name, config, where, (), "pickled", total, revision, notes)
    notes = (_NO_WEIGHTS.format(config=where),)
    if others:
        notes += (f"{others[0]} is not read: neither {folder.SINGLE} nor named by {folder.INDEX}",)
    return ModelHeaders(name, config, where, (), "none", 0, revision, notes)


def _config_of(path: Path) -> dict[str, Any]:
    """The config of a directory, with the quantisation that older checkpoints keep in a file of its own."""
    config = folder.read_json(path / folder.CONFIG, "a model directory needs it")
    if _names_no_quantization(config):
        for name in folder.QUANTIZATION_FILES:
            if (path / name).is_file():
                return _with_quantization(config, folder.read_json(path / name, ""))
    return config


def _names_no_quantization(config: dict[str, Any]) -> bool:
    return config.get("quantization_config") is None and config.get("compression_config") is None


def _with_quantization(config: dict[str, Any], declared: dict[str, Any]) -> dict[str, Any]:
    """The config with what a file beside it says; AutoGPTQ's files name no method, ModelOpt's are one level deeper."""
    inner = declared.get("quantization")
    if isinstance(inner, dict):
        declared = {"quant_method": "modelopt"} | inner
    method = "awq" if "w_bit" in declared or "zero_point" in declared else "gptq"
    return config | {"quantization_config": {"quant_method": method} | declared}


def _check_once(tensors: Iterable[StoredTensor], where: str) -> None:
    """A name in two shards is damage: sizes would be counted twice."""
    seen: set[str] = set()
    for tensor in tensors:
        if tensor.name in seen:
            raise UnreadableInputError(f"{where}: damaged: two shards hold a tensor {tensor.name!a}")
        seen.add(tensor.name)


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError as error:
        raise unreadable(file, error) from error
