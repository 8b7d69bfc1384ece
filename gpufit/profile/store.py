"""Profile files: read, found, and written so that a crash or a full disk never costs a finished cell."""

from __future__ import annotations

from pathlib import Path

from gpufit.errors import unreadable
from gpufit.files import write_atomically
from gpufit.profile import codec
from gpufit.profile.record import Profile


def load_profile(path: Path) -> Profile:
    """Read one profile. Raises UnreadableInputError when it is missing, unreadable or not a whole profile."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise unreadable(path, error) from error
    return codec.decode(text, str(path))


def save_profile(profile: Profile, path: Path) -> Path | None:
    """Write the profile whole or not at all: readers see the old file or the new one, never half of one. The folder, if
    it was missing and had to be made.

    Raises UnreadableInputError when the disk refuses; the old file is then untouched.
    """
    return write_atomically(codec.encode(profile), path)


def find_profiles(folder: Path) -> tuple[Path, ...]:
    """The profile files of a folder, newest first; empty when the folder does not exist."""
    files = [path for path in folder.glob("*.json") if path.is_file()]
    return tuple(sorted(files, key=lambda path: path.stat().st_mtime, reverse=True))
