"""The output formats by name; a format's module is imported when it is used."""

from __future__ import annotations

import importlib
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

from gpufit.errors import UsageError

if TYPE_CHECKING:
    from gpufit.report.document import FitDocument

FORMATS: dict[str, str] = {
    "table": "gpufit.report.formats.table",
    "json": "gpufit.report.formats.json",
    "csv": "gpufit.report.formats.csv",
    "markdown": "gpufit.report.formats.markdown",
    "xlsx": "gpufit.report.formats.xlsx",
    "html": "gpufit.report.formats.html",
}
"""Format name -> module."""

EXTENSIONS: dict[str, str] = {
    ".txt": "table",
    ".json": "json",
    ".csv": "csv",
    ".md": "markdown",
    ".xlsx": "xlsx",
    ".html": "html",
}
"""File extension -> format name."""


class Format(Protocol):
    """A module that renders documents."""

    BINARY: bool
    """True when the output is not text and so is never written to a terminal."""

    def render_fit(self, document: FitDocument) -> bytes:
        """The whole output; the same document always gives the same bytes."""
        ...


def load_format(name: str) -> Format:
    """The module of a format. Raises UsageError for a name that is not one."""
    if name not in FORMATS:
        raise UsageError(f"no output format {name!r}; choose one of {', '.join(FORMATS)}")
    module: Format = importlib.import_module(FORMATS[name])
    return module


def format_for(path: str) -> str:
    """The format that a file's extension asks for. Raises UsageError for an unknown extension."""
    extension = PurePath(path).suffix.lower()
    if extension not in EXTENSIONS:
        known = ", ".join(EXTENSIONS)
        raise UsageError(f"{path}: cannot tell the format from the extension {extension!r}; use {known} or --format")
    return EXTENSIONS[extension]
