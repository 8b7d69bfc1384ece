"""A GGUF file's weights as plain safetensors, converted once and kept, so that every further worker starts at once.

Transformers takes 13 to 35 s to read even a small GGUF file, at each start. Here the first worker has it read by a
process of its own, which writes the dequantised model to the user's cache folder; that worker and all later ones load
the copy. So the `load` phase is always that of the copy, whether it was there before or not.

A copy belongs to one file, one dtype and one version of transformers. It is written aside and renamed, checked before
each use, and made anew when it is damaged. When none can be kept, the GGUF file itself is loaded, and the profile says
so.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import msgspec

from gpufit.datadir import converted_dir
from gpufit.errors import UnreadableInputError
from gpufit.profile.base import Record, Size
from gpufit.sources.measure.loading import DTYPE_ALIASES, GGUF_DTYPE
from gpufit.sources.measure.protocol import Job
from gpufit.sources.model_files.find import fingerprint
from gpufit.sources.model_files.gguf import GGML_TYPES
from gpufit.units import format_size

MANIFEST = "gpufit.json"
MOST_COPIES = 4
"""Copies kept: the ones used last. A fifth model's copy takes the place of the one that was used longest ago."""

_ELEMENT_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}
_CONVERTER = "gpufit.sources.measure.convert"
_IN_WORK = ".in-work"
"""The file in a temporary folder that its process holds locked: one that nobody holds was left by a killed process."""
_ABANDONED_SECONDS = 24 * 3600
"""A temporary folder without that file is being renamed into place, or was left so: after this long the latter."""


class Manifest(Record, frozen=True, kw_only=True):
    """What a copy is of, and by what it is known to be whole."""

    source_bytes: Size
    source_modified_ns: int
    """The GGUF file's: its fingerprint reads only the file's ends, a changed file has another time."""
    files: tuple[str, ...]
    fingerprint: str
    """Over names, sizes and ends of `files`."""


Say = Callable[[str], None]
Convert = Callable[[Job, Path], str | None]
"""Write a model into an existing folder; None when that is done, else why not, in a few words."""


def prepare(job: Job, say: Say, convert: Convert | None = None) -> Job:
    """The job on the converted copy of its GGUF file, made first where there is none; any other job unchanged.

    Where no copy can be made or kept, the job goes on with the GGUF file, with a note in words. `say` is told what
    happens.
    """
    dtype = GGUF_DTYPE if job.dtype == "auto" else DTYPE_ALIASES.get(job.dtype, job.dtype)
    if job.gguf_file is None or dtype not in _ELEMENT_BYTES or _may_stay_packed():
        return job
    source = Path(job.model_path) / job.gguf_file
    folder = converted_dir() / f"{job.fingerprint[:32]}-{dtype}-transformers-{metadata.version('transformers')}"
    if not is_whole(folder, source):
        say(f"converting {job.gguf_file} to {dtype}, once: the copy is kept in {folder}")
        plain = msgspec.structs.replace(job, dtype=dtype, attention=None, device="cpu")
        why = _make(plain, source, folder, convert or in_a_process)
        if why is not None:
            say(f"no converted copy can be kept ({why}): loading {job.gguf_file} itself")
            note = f"no converted copy of the GGUF file could be kept ({why}): the load phase includes the conversion"
            return msgspec.structs.replace(job, notes=(*job.notes, note))
    say(f"loading the {dtype} copy of {job.gguf_file} in {folder}")
    with contextlib.suppress(OSError):
        os.utime(folder)
    return msgspec.structs.replace(job, model_path=str(folder), gguf_file=None, dtype=dtype)


def _may_stay_packed() -> bool:
    """With the `kernels` package transformers may keep a GGUF file's blocks as they are: a copy would be larger."""
    return importlib.util.find_spec("kernels") is not None


def is_whole(folder: Path, source: Path) -> bool:
    """Whether a copy is there, undamaged as far as sizes and ends tell, and of this very file."""
    try:
        manifest = msgspec.json.decode((folder / MANIFEST).read_bytes(), type=Manifest)
        found = source.stat()
        return (manifest.source_bytes, manifest.source_modified_ns) == (
            found.st_size,
            found.st_mtime_ns,
        ) and fingerprint(tuple(folder / name for name in manifest.files)) == manifest.fingerprint
    except (OSError, msgspec.DecodeError, UnreadableInputError):
        return False


def converted_bytes(job: Job, dtype: str) -> int:
    """Bytes of the tensors of a GGUF file once each element has `dtype`."""
    elements = 0
    for share in job.stored:
        _, block, block_bytes = next(row for row in GGML_TYPES.values() if row[0] == share.dtype)
        elements += share.size_bytes // block_bytes * block
    return elements * _ELEMENT_BYTES[dtype]


def in_a_process(job: Job, folder: Path) -> str | None:
    """Convert in a fresh process, so that none of its memory stays with this one; it ends should this one end."""
    with tempfile.TemporaryFile() as log:
        with subprocess.Popen(
            [sys.executable, "-m", _CONVERTER, str(folder)], stdin=subprocess.PIPE, stdout=log, stderr=log
        ) as process:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(msgspec.json.encode(job) + b"\n")
                process.stdin.flush()
            code = process.wait()
        if code == 0:
            return None
        log.seek(0)
        lines = [line for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
    return f"converting ended with status {code}" + (f": {lines[-1].strip()[:200]}" if lines else "")


def _make(job: Job, source: Path, folder: Path, convert: Convert) -> str | None:
    """Make the copy at `folder`; None when it is there, else why not."""
    temporary = folder.with_name(f".{secrets.token_hex(8)}")
    kept_open = contextlib.ExitStack()
    try:
        temporary.mkdir(parents=True)
        in_work = kept_open.enter_context((temporary / _IN_WORK).open("wb"))
        fcntl.flock(in_work, fcntl.LOCK_EX)
        _drop_abandoned(folder.parent)
        needed, free = converted_bytes(job, job.dtype), shutil.disk_usage(temporary).free
        if free < needed:
            return f"it needs {format_size(needed)}, and {folder.parent} has {format_size(free)} free"
        before = source.stat()
        why = convert(job, temporary)
        if why is not None:
            return why
        (temporary / _IN_WORK).unlink()
        _seal(temporary, before)
        _put(temporary, folder, source)
    except OSError as error:
        return f"{folder.parent}: {error.strerror}"
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        kept_open.close()
    _drop_oldest(folder)
    return None


def _seal(folder: Path, source: os.stat_result) -> None:
    """Write the manifest of a finished copy, everything in it safely on disk."""
    files = tuple(sorted(path.name for path in folder.iterdir()))
    for name in files:
        with (folder / name).open("rb") as file:
            os.fsync(file.fileno())
    manifest = Manifest(
        source_bytes=source.st_size,
        source_modified_ns=source.st_mtime_ns,
        files=files,
        fingerprint=fingerprint(tuple(folder / name for name in files)),
    )
    (folder / MANIFEST).write_bytes(msgspec.json.encode(manifest))


def _put(temporary: Path, folder: Path, source: Path) -> None:
    """Rename a finished copy into place. Another process may have been faster: its copy stays."""
    if folder.exists() and not is_whole(folder, source):
        damaged = folder.with_name(f".{secrets.token_hex(8)}")
        folder.rename(damaged)
        shutil.rmtree(damaged, ignore_errors=True)
    try:
        temporary.rename(folder)
    except OSError:
        if not is_whole(folder, source):
            raise


def _drop_abandoned(parent: Path) -> None:
    for path in parent.glob(".*"):
        with contextlib.suppress(OSError):
            if _is_abandoned(path):
                shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(temporary: Path) -> bool:
    held = temporary / _IN_WORK
    if not held.exists():
        return time.time() - temporary.stat().st_mtime > _ABANDONED_SECONDS
    with held.open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


def _drop_oldest(newest: Path) -> None:
    used: list[tuple[float, Path]] = []
    for path in newest.parent.glob("[!.]*"):
        with contextlib.suppress(OSError):
            if path != newest:
                used.append((path.stat().st_mtime, path))
    for _, path in sorted(used, reverse=True)[MOST_COPIES - 1 :]:
        shutil.rmtree(path, ignore_errors=True)
