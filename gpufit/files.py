"""Writing files so that a crash or a full disk never leaves half of one."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from pathlib import Path

from gpufit.errors import UnreadableInputError


def write_atomically(content: bytes, path: Path) -> None:
    """Replace `path` by `content` in one step, through a synced temporary file in the same folder.

    A link is followed, an old file's permissions are kept. Raises UnreadableInputError, and leaves the old file as
    it was, when any step fails.
    """
    target = _target(path)
    temporary = target.with_name(f"{_temporary_prefix(target)}{secrets.token_hex(8)}")
    try:
        _refuse_special(path, target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("xb") as file:
            if target.exists():
                shutil.copymode(target, temporary)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise UnreadableInputError(f"{path}: cannot be written ({error.strerror}); nothing was changed") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)


def check_writable(path: Path) -> None:
    """Raise UnreadableInputError now if `write_atomically` could not create its file later; leaves nothing behind."""
    try:
        target = _target(path)
        _refuse_special(path, target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=_temporary_prefix(target), dir=target.parent):
            pass
    except OSError as error:
        raise UnreadableInputError(f"{path}: cannot be written ({error.strerror})") from error


def _target(path: Path) -> Path:
    """What a link leads to: the file is replaced, never the link (`/dev/stdout` is one)."""
    return Path(os.path.realpath(path))


def _refuse_special(path: Path, target: Path) -> None:
    """A folder, a device or a pipe is never replaced by a file."""
    if target.exists() and not target.is_file():
        what = "a folder" if target.is_dir() else "a device or a pipe"
        raise UnreadableInputError(f"{path}: cannot be written (it is {what}, not a file); nothing was changed")


def _temporary_prefix(target: Path) -> str:
    """Hidden, and short enough that a long name still has room for the rest."""
    return f".{target.name[:20]}."


def _sync_folder(folder: Path) -> None:
    """Make a rename durable, so that a power cut after it does not bring the old name back.

    The file is in place by now; a folder or file system that cannot be synced is no reason to say otherwise.
    """
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
