"""The errors that gpufit raises on purpose.

    GpufitError                 one line for the user: what, why, what to do next
    ├── UsageError              the request itself cannot be answered       (exit 2)
    │   └── OutputExistsError   the output is there, and nobody said to replace it
    ├── UnreadableInputError    a file or model cannot be read or written   (exit 3)
    └── MeasurementError        the run on the device did not happen        (exit 4)
        └── TooLargeError       the model could not even be loaded into the memory there is

Each carries the whole sentence that the user sees; `cli.main` catches the base once. Anything else that
escapes is a bug and shows as one.
"""

from __future__ import annotations


class GpufitError(Exception):
    """Base of every error whose message is meant for the user."""


class UsageError(GpufitError):
    """The request itself cannot be answered: a wrong value, an ambiguous card, a context the model cannot have."""


class OutputExistsError(UsageError):
    """The file to be written is there, and nobody said what to do with it."""

    def __init__(self, path: object, remedy: str) -> None:
        super().__init__(f"{path} exists; {remedy}")
        self.path = str(path)


class UnreadableInputError(GpufitError):
    """A model, profile or catalog file cannot be read, or an output file cannot be written."""


class MeasurementError(GpufitError):
    """The model could not be run on the device at all, so there is nothing to report."""


class TooLargeError(MeasurementError):
    """The model could not be loaded for want of memory: of the device's, or within the limit put on it."""


def unreadable(where: object, error: OSError | UnicodeDecodeError) -> UnreadableInputError:
    """What the system says of a file that cannot be read, in plain words; `where` is what the user calls it."""
    said = _READ.get(type(error)) or f"cannot be read ({_reason(error)})"
    return UnreadableInputError(f"{where}: {said}")


def unwritable(where: object, error: OSError, and_so: str = "") -> UnreadableInputError:
    """The same of one that cannot be written; `and_so` ends the sentence: what became of the file that was there."""
    said = _WRITTEN.get(type(error)) or f"cannot be written ({_reason(error)})"
    return UnreadableInputError(f"{where}: {said}{and_so}")


_READ: dict[type[Exception], str] = {
    FileNotFoundError: "no such file",
    IsADirectoryError: "a folder, not a file",
    NotADirectoryError: "no such file (a part of its path is a file, not a folder)",
    PermissionError: "may not be read (permission denied)",
}

_WRITTEN: dict[type[Exception], str] = {
    FileExistsError: "cannot be written (a part of its path is a file, not a folder)",
    NotADirectoryError: "cannot be written (a part of its path is a file, not a folder)",
    PermissionError: "may not be written (permission denied)",
}


def _reason(error: OSError | UnicodeDecodeError) -> str:
    if isinstance(error, UnicodeDecodeError):
        return f"not text in UTF-8, from byte {error.start + 1} on"
    return error.strerror or str(error)
