"""Models on the Hugging Face hub, through its own client: a whole snapshot, or the headers of its files alone.

The client reads HF_HOME, HF_TOKEN, HF_ENDPOINT and HF_HUB_OFFLINE itself; it is imported when a hub id is met.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from gpufit.errors import UnreadableInputError
from gpufit.sources.model_files import folder, safetensors
from gpufit.sources.model_files.record import StoredTensor

_ID = re.compile(r"[\w.-]+/[\w.-]+")
_PATTERNS = ["*.json", "*.safetensors", "*.model", "*.txt", "*.py"]

_FIRST_BYTES = 100_000
"""Asked for at first: nearly every header is shorter, and a second request takes longer than the rest of the bytes.

https://github.com/huggingface/huggingface_hub/pull/1855#discussion_r1404286419
"""

_AT_ONCE = 8
"""Requests in flight: more gain nothing against the hub, which serves them over one connection."""


def is_id(text: str) -> bool:
    """Whether text has the form of a repository's name, `org/name`."""
    return _ID.fullmatch(text) is not None and not text.startswith(".")


def download(repository: str, revision: str | None) -> Path:
    """The whole snapshot of a repository, from the cache where it is there. The folder's name is the commit.

    Raises UnreadableInputError when it cannot be had.
    """
    with _errors_of(repository):
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(repository, revision=revision, allow_patterns=_PATTERNS))


def config(repository: str, revision: str | None) -> Path:
    """The config of a repository, from the cache where it is there; its folder's name is the commit.

    Raises UnreadableInputError when it cannot be had.
    """
    with _errors_of(repository):
        from huggingface_hub import hf_hub_download

        return Path(hf_hub_download(repository, folder.CONFIG, revision=revision))


def cached(repository: str, revision: str | None) -> Path | None:
    """The folder of a snapshot in the local cache with its config and all its weights; None where it is not whole.

    Never calls out. The folder's name is the commit.
    """
    with _errors_of(repository):
        from huggingface_hub import try_to_load_from_cache

        found = try_to_load_from_cache(repository, folder.CONFIG, revision=revision)
    if not isinstance(found, str):
        return None
    snapshot = Path(found).parent
    files = folder.safetensors_files(snapshot) or folder.pickled_files(snapshot)
    return snapshot if files and all(file.is_file() for file in files) else None


@dataclass(frozen=True)
class RemoteModel:
    """What was learned of a repository without its weights."""

    config: Path
    """Its config.json, in the local cache."""
    commit: str
    tensors: tuple[StoredTensor, ...]
    pickled: tuple[tuple[str, int], ...] = ()
    """Name and bytes of files of pickled weights, where there are no safetensors."""
    others: tuple[str, ...] = ()
    """Names of the repository's files, where it holds no weights that are known here."""


def headers(repository: str, revision: str | None) -> RemoteModel:
    """Config and safetensors headers of a repository, by ranged requests.

    Raises UnreadableInputError when the hub cannot be reached, refuses, or serves something else.
    """
    with _errors_of(repository):
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import RemoteEntryNotFoundError

        _reach(repository, revision)
        try:
            config = Path(hf_hub_download(repository, folder.CONFIG, revision=revision))
        except RemoteEntryNotFoundError as error:
            raise UnreadableInputError(
                f"{repository}: has no {folder.CONFIG} on the hub; of a repository of GGUF files download one"
            ) from error
        # Every later request names the commit, so that a push in between mixes nothing.
        commit = config.parent.name
        try:
            index = Path(hf_hub_download(repository, folder.INDEX, revision=commit))
        except RemoteEntryNotFoundError:
            names: tuple[str, ...] = (folder.SINGLE,)
        else:
            where = f"{repository}: {folder.INDEX}"
            names = folder.shards_of(folder.read_json(index, "the shards' index", where), where)
        try:
            tensors = _all_headers(repository, names, commit)
        except RemoteEntryNotFoundError as error:
            if names != (folder.SINGLE,):
                raise UnreadableInputError(
                    f"{repository}: its {folder.INDEX} names a shard that is not there ({_first_line(error)})"
                ) from error
            return _without_safetensors(repository, config, commit)
    return RemoteModel(config, commit, tensors)


def _reach(repository: str, revision: str | None) -> None:
    """One request without the client's retries: who has no network should hear so at once, not after half a minute."""
    from huggingface_hub import get_session, hf_hub_url
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    url = hf_hub_url(repository, folder.CONFIG, revision=revision)
    get_session().head(url, headers=build_hf_headers(), follow_redirects=False)


def other_json(repository: str, name: str, commit: str) -> Path | None:
    """A small file of a repository; None where it has none of this name. Raises UnreadableInputError as `headers`."""
    with _errors_of(repository):
        from huggingface_hub import hf_hub_download
        from huggingface_hub.errors import RemoteEntryNotFoundError

        try:
            return Path(hf_hub_download(repository, name, revision=commit))
        except RemoteEntryNotFoundError:
            return None


def _all_headers(repository: str, names: tuple[str, ...], commit: str) -> tuple[StoredTensor, ...]:
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(max_workers=min(_AT_ONCE, len(names)))
    try:
        found = list(pool.map(lambda name: _header(repository, name, commit), names))
    finally:
        # One refusal is enough: what has not begun is not asked for.
        pool.shutdown(cancel_futures=True)
    return tuple(tensor for tensors in found for tensor in tensors)


def _header(repository: str, name: str, commit: str) -> tuple[StoredTensor, ...]:
    from huggingface_hub import hf_hub_url

    where = f"{repository}: {name}"
    url = hf_hub_url(repository, name, revision=commit)
    head, size = _range(url, 0, _FIRST_BYTES, where)
    length = safetensors.header_length(head[: safetensors.PREFIX_BYTES], size, where)
    end = safetensors.PREFIX_BYTES + length
    if len(head) < end:
        more, _ = _range(url, len(head), end, where)
        head += more
    if len(head) < end:
        raise UnreadableInputError(f"{where}: the hub sent {len(head)} bytes of a header of {end}")
    return safetensors.tensors_of_header(head[safetensors.PREFIX_BYTES : end], size, where)


def _range(url: str, begin: int, end: int, where: str) -> tuple[bytes, int]:
    """Bytes `begin` up to `end` of a file, fewer where it ends before, and the size of the whole file.

    Reading stops at `end` even where a server ignores the range and sends everything.
    """
    from huggingface_hub import get_session, hf_raise_for_status
    from huggingface_hub.utils import build_hf_headers  # type: ignore[attr-defined]

    # Compressed, a range would not be that of the file.
    asked = {**build_hf_headers(), "range": f"bytes={begin}-{end - 1}", "accept-encoding": "identity"}
    with get_session().stream("GET", url, headers=asked) as response:
        if response.status_code >= 400:
            response.read()
        hf_raise_for_status(response)
        total = _total(response.headers.get("content-range"), response.headers.get("content-length"), where)
        skip = begin if response.status_code == 200 else 0
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if len(body) >= skip + end - begin:
                break
    return bytes(body[skip : skip + end - begin]), total


def _total(content_range: str | None, content_length: str | None, where: str) -> int:
    """Size of the whole file: behind the slash of a range (`bytes 0-99/12345`), else the length of what is sent."""
    size = content_range.rpartition("/")[2] if content_range else content_length
    if size is None or not size.isdecimal():
        raise UnreadableInputError(f"{where}: the hub does not say how large the file is")
    return int(size)


def _without_safetensors(repository: str, config: Path, commit: str) -> RemoteModel:
    """What else a repository holds: pickled weights by size, or other files by name."""
    from huggingface_hub import HfApi

    listed = HfApi().model_info(repository, revision=commit, files_metadata=True).siblings or []
    pickled = tuple(
        (one.rfilename, one.size or 0)
        for one in listed
        if one.rfilename.endswith(folder.PICKLED_SUFFIXES) and "/" not in one.rfilename
    )
    return RemoteModel(config, commit, (), pickled, tuple(one.rfilename for one in listed))


@contextmanager
def _errors_of(repository: str) -> Iterator[None]:
    """What the client raises, told in one line that says what to do."""
    try:
        from huggingface_hub import errors
    except ImportError as error:
        raise UnreadableInputError(
            f"{repository}: no such directory, and the hub's client does not start here ({error})"
        ) from error
    # The error class of whichever HTTP library this release of the client is built on (httpx, then httpx2).
    transport: type[BaseException] = next(one for one in errors.HfHubHTTPError.__mro__ if one.__name__ == "HTTPError")
    try:
        yield
    except (transport, errors.EntryNotFoundError, errors.HFValidationError, OSError) as error:
        raise UnreadableInputError(f"{repository}: no such directory, {_said(error)}") from error


def _said(error: BaseException) -> str:
    """What an error of the client means for the user."""
    from huggingface_hub import errors

    if isinstance(error, errors.OfflineModeIsEnabled) or isinstance(error.__cause__, errors.OfflineModeIsEnabled):
        return "not whole in the hub's cache, and HF_HUB_OFFLINE keeps gpufit from asking the hub"
    if isinstance(error, errors.LocalEntryNotFoundError):
        return f"not in the hub's cache, and the hub cannot be reached ({_first_line(error.__cause__ or error)})"
    if isinstance(error, errors.GatedRepoError):
        return "and the hub keeps it gated: ask for access on its page there, then set HF_TOKEN to your token"
    if isinstance(error, errors.RevisionNotFoundError):
        return "and the hub has no such revision of it"
    status = error.response.status_code if isinstance(error, errors.HfHubHTTPError) else None
    if isinstance(error, errors.RepositoryNotFoundError):
        return "and no such repository on the hub, or a private one (set HF_TOKEN to a token that may read it)"
    if status in (401, 403):
        return f"and the hub refuses the token: check HF_TOKEN ({_first_line(error)})"
    if isinstance(error, errors.EntryNotFoundError):
        return f"and the hub's repository lacks a file: {_first_line(error)}"
    if status is not None or isinstance(error, errors.HFValidationError):
        return f"and the hub says: {_first_line(error)}"
    return f"and the hub cannot be reached ({_first_line(error)})"


def _first_line(error: BaseException) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)
