"""Writing files so that a crash or a full disk never leaves half of one."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpufit.errors import UnreadableInputError, UsageError, unwritable

_LOCK = "lock"


def exists(path: Path) -> bool:
    """Whether anything is there, as far as the system tells: of a name too long for it, and of a folder that may not be
    entered, `Path.exists` raises OSError before whoever reads or writes the file can say so in words."""
    return os.path.exists(path)  # noqa: PTH110


def is_folder(path: Path) -> bool:
    """Whether a folder is there, as far as the system tells."""
    return os.path.isdir(path)  # noqa: PTH112


def is_plain_file(path: Path) -> bool:
    """Whether a file is there, as far as the system tells."""
    return os.path.isfile(path)  # noqa: PTH113


def from_home(text: str) -> str:
    """A name as somebody typed it where no shell is, with `~` as his home folder."""
    return os.path.expanduser(text.strip())  # noqa: PTH111 (Path's raises for a user who is not there)


def typed_name(text: str) -> str:
    """The same for a file. Raises UsageError for what no file can be named."""
    name = from_home(text)
    if "\0" in name:
        raise UsageError(f"{name.split(chr(0))[0]}…: no file can have this name (a zero character is in it)")
    return name


def readable_name(name: str) -> str:
    """A file's name as a document holds it: the name need not be text, and a document is."""
    return name.encode(errors="replace").decode()


def write_atomically(content: bytes, path: Path) -> Path | None:
    """Replace `path` by `content` in one step, through a synced temporary file in the same folder.

    A folder that is missing is made and returned, so that whoever asked can be told. A link is followed, an old file's
    permissions are kept. Raises UnreadableInputError, and leaves the old file as it was, when any step fails.
    """
    target = _target(path)
    temporary = _temporary(target)
    try:
        _refuse_special(path, target)
        made = _make_folder(path, target)
        with temporary.open("xb") as file:
            if target.exists():
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise unwritable(path, error, "; nothing was changed") from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    _sync_folder(target.parent)
    return made


def write_output(content: bytes, path: Path) -> Path | None:
    """Write what somebody asked for by name: a file whole or not at all, a pipe or a device as it is. The folder, where
    it was missing and has been made.

    Raises UnreadableInputError when it cannot be written.
    """
    if not exists(path) or path.is_file() or path.is_dir():
        return write_atomically(content, path)
    try:
        with path.open("wb") as file:
            file.write(content)
    except OSError as error:
        raise unwritable(path, error) from error
    return None


def refuse_own_input(output: Path | None, inputs: Iterable[str]) -> None:
    """A report never takes the place of a profile it was made from. Raises UsageError where it would."""
    if output is None or not exists(output):
        return
    if any(exists(Path(given)) and output.samefile(given) for given in inputs):
        raise UsageError(f"{output} is the profile itself; write the report to another file")


def check_writable(path: Path) -> Path | None:
    """Raise UnreadableInputError now if `write_atomically` could not create its file later; leaves nothing behind but
    the folder, which is returned where it was missing."""
    try:
        target = _target(path)
        _refuse_special(path, target)
        made = _make_folder(path, target)
        probe = _temporary(target)
        probe.touch(exist_ok=False)
        probe.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error
    return made


def _make_folder(path: Path, target: Path) -> Path | None:
    """Make the folder that a file is to lie in, and those above it; None where it was there."""
    if target.parent.is_dir():
        return None
    target.parent.mkdir(parents=True, exist_ok=True)
    return path.parent


def _target(path: Path) -> Path:
    """What a link leads to: the file is replaced, never the link (`/dev/stdout` is one)."""
    return Path(os.path.realpath(path))


def _refuse_special(path: Path, target: Path) -> None:
    """A folder, a device or a pipe is never replaced by a file."""
    if target.exists() and not target.is_file():
        what = "a folder" if target.is_dir() else "a device or a pipe"
        raise UnreadableInputError(f"{path}: cannot be written (it is {what}, not a file); nothing was changed")


def remove_leftovers(path: Path) -> None:
    """Delete what a killed `write_atomically` left beside its file; only its sole writer may ask for this."""
    target = _target(path)
    for entry in os.scandir(target.parent):
        if entry.name.startswith(_temporary_prefix(target)) and not entry.name.endswith(_LOCK):
            with contextlib.suppress(FileNotFoundError):
                Path(entry.path).unlink()


@contextlib.contextmanager
def sole_writer(path: Path) -> Iterator[None]:
    """Be the only process that holds `path` while the block runs; its folder must exist. Reading stays possible.

    The lock is the kernel's and ends with the process, however it ends: no stale lock can be left, only a file of a few
    bytes, which the next holder takes over. POSIX systems only; over NFS it reaches other hosts where the server
    supports it (https://man7.org/linux/man-pages/man2/flock.2.html). Raises UsageError, naming the other process, when
    there is one, and UnreadableInputError where the file system knows no locks.
    """
    lock = _target(path).with_name(f"{_temporary_prefix(_target(path))}{_LOCK}")
    try:
        descriptor = _take(lock)
    except _Held as error:
        raise UsageError(f"{path}: {error} is writing it; wait for its end, or choose another -o FILE") from error
    except ImportError as error:
        raise UnreadableInputError(
            f"{path}: cannot be locked against a second run: this system has no flock"
        ) from error
    except OSError as error:
        raise UnreadableInputError(
            f"{path}: cannot be locked against a second run ({error.strerror}); choose a local disk with -o FILE"
        ) from error
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            lock.unlink()
        os.close(descriptor)


class _Held(Exception):  # noqa: N818 (no error: it says who the holder is)
    """Another process has the lock."""


def _take(lock: Path) -> int:
    """The open descriptor of a lock file, locked and with this process's number in it."""
    import fcntl

    while True:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(lock, descriptor):
                os.ftruncate(descriptor, 0)
                os.write(descriptor, str(os.getpid()).encode())
                return descriptor
        except BlockingIOError as error:
            holder = os.read(descriptor, 20).decode("ascii", "replace")
            os.close(descriptor)
            raise _Held(f"process {holder}" if holder else "another process") from error
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its last holder removed it in the moment before


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether a name still leads to the file that was opened by it."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _temporary(target: Path) -> Path:
    """A name for a file beside the target that nobody else has."""
    return target.with_name(f"{_temporary_prefix(target)}{os.urandom(8).hex()}")


def _temporary_prefix(target: Path) -> str:
    """Hidden, and short enough that a long name still has room for the rest; no other file's begins so."""
    digest = hashlib.sha256(os.fsencode(target.name)).hexdigest()[:8]
    return f".{target.name[:20]}.{digest}."


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
