"""The only writer of standard output, and of the files named by -o."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TextIO

from gpufit.cli.diagnostics import say
from gpufit.errors import UnreadableInputError, UsageError
from gpufit.files import write_output


def write_document(content: bytes, binary: bool, output: Path | None) -> None:
    """Send a rendered document to `output`, or to standard output when it is None. A folder that had to be made for it
    is named on standard error.

    Raises UsageError rather than fill a terminal with a workbook, UnreadableInputError when a file cannot be written.
    """
    if output is None:
        _write_standard_output(content, binary)
    else:
        say_made(write_output(content, output))


def say_made(folder: Path | None) -> None:
    """That a folder was missing and has been made: it may be a slip of the keyboard."""
    if folder is not None:
        say(f"made the folder {folder}")


def _write_standard_output(content: bytes, binary: bool) -> None:
    stdout: TextIO | None = sys.stdout  # None when the shell closed it
    if stdout is None:
        raise UnreadableInputError("standard output is closed; give a file with -o FILE")
    if binary and stdout.isatty():
        raise UsageError("this format is not text; give it a file with -o FILE")
    try:
        stdout.flush()
        stdout.buffer.write(content)
        stdout.buffer.flush()
    except BrokenPipeError:
        _silence(stdout)  # the reader (`head`) has what it wanted
    except OSError as error:
        _silence(stdout)
        raise UnreadableInputError(f"standard output: cannot be written ({error.strerror})") from error


def _silence(stream: TextIO) -> None:
    """Nothing more goes to a stream that failed: Python would complain again when it closes it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def print_text(text: str) -> None:
    """A text document of one command, ending in a newline."""
    write_document((text.rstrip("\n") + "\n").encode(), False, None)
