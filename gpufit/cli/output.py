"""The only writer of standard output, and of the files named by -o."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from gpufit.errors import UnreadableInputError, UsageError
from gpufit.files import write_atomically


def write_document(content: bytes, binary: bool, output: Path | None) -> None:
    """Send a rendered document to `output`, or to standard output when it is None.

    Raises UsageError rather than fill a terminal with a workbook, UnreadableInputError when a file cannot be written.
    """
    if output is not None and (not output.exists() or output.is_file()):
        write_atomically(content, output)
        return
    if output is not None:
        _write_special(content, output)
        return
    if binary and sys.stdout.isatty():
        raise UsageError("this format is not text; give it a file with -o FILE")
    try:
        sys.stdout.flush()
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        # The reader (`head`) has what it wanted. Python would complain again when it closes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_special(content: bytes, output: Path) -> None:
    """A pipe or a device is written to, not replaced."""
    try:
        with output.open("wb") as file:
            file.write(content)
    except OSError as error:
        raise UnreadableInputError(f"{output}: cannot be written ({error.strerror})") from error


def print_text(text: str) -> None:
    """A text document of one command, ending in a newline."""
    write_document((text.rstrip("\n") + "\n").encode(), False, None)
