"""The output formats by name; a format's module is imported when it is used."""

from __future__ import annotations

import importlib
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

from gpufit.errors import UsageError

if TYPE_CHECKING:
    from gpufit.report.check_document import CheckDocument
    from gpufit.report.compare_document import CompareDocument
    from gpufit.report.document import FitDocument
    from gpufit.report.fits_document import FitsDocument
    from gpufit.report.tabular import TabularReport
    from gpufit.report.verify_document import VerifyDocument

FORMATS: dict[str, str] = {
    "table": "gpufit.report.formats.table",
    "json": "gpufit.report.formats.json",
    "csv": "gpufit.report.formats.csv",
    "markdown": "gpufit.report.formats.markdown",
    "xlsx": "gpufit.report.formats.xlsx",
    "html": "gpufit.report.formats.html",
}
"""Format name -> module."""

COMPARE_FORMATS: dict[str, str] = {
    "table": "gpufit.report.compare_formats.table",
    "json": "gpufit.report.compare_formats.json",
    "csv": "gpufit.report.compare_formats.csv",
    "markdown": "gpufit.report.compare_formats.markdown",
    "xlsx": "gpufit.report.compare_formats.xlsx",
    "html": "gpufit.report.compare_formats.html",
}
"""Format name -> module, of a comparison."""

CHECK_FORMATS: dict[str, str] = {
    "table": "gpufit.report.check_formats.table",
    "json": "gpufit.report.check_formats.json",
}
"""Format name -> module, of a check."""

VERIFY_FORMATS: dict[str, str] = {
    "table": "gpufit.report.verify_formats.table",
    "json": "gpufit.report.verify_formats.json",
}
"""Format name -> module, of a verification."""

TABULAR_FORMATS: dict[str, str] = {
    "csv": "gpufit.report.tabular_formats.csv",
    "json": "gpufit.report.tabular_formats.json",
    "xlsx": "gpufit.report.tabular_formats.xlsx",
    "html": "gpufit.report.tabular_formats.html",
    "markdown": "gpufit.report.tabular_formats.markdown",
}
"""Format name -> module, of a document with tables."""

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

    def render_fits(self, documents: FitsDocument) -> bytes:
        """The answers to several questions; the same documents always give the same bytes."""
        ...


class CompareFormat(Protocol):
    """A module that renders comparisons."""

    BINARY: bool
    """True when the output is not text and so is never written to a terminal."""

    def render_compare(self, document: CompareDocument) -> bytes:
        """The whole output; the same document always gives the same bytes."""
        ...


class CheckFormat(Protocol):
    """A module that renders checks."""

    BINARY: bool
    """True when the output is not text and so is never written to a terminal."""

    def render_check(self, document: CheckDocument) -> bytes:
        """The whole output; the same document always gives the same bytes."""
        ...


class VerifyFormat(Protocol):
    """A module that renders verifications."""

    BINARY: bool
    """True when the output is not text and so is never written to a terminal."""

    def render_verify(self, document: VerifyDocument) -> bytes:
        """The whole output; the same document always gives the same bytes."""
        ...


class TabularFormat(Protocol):
    """A module that renders documents with tables."""

    BINARY: bool
    """True when the output is not text and so is never written to a terminal."""

    def render_tables(self, report: TabularReport) -> bytes:
        """The whole output; the same report always gives the same bytes."""
        ...


def load_format(name: str) -> Format:
    """The module of a format. Raises UsageError for a name that is not one."""
    if name not in FORMATS:
        raise UsageError(f"no output format {name!r}; choose one of {', '.join(FORMATS)}")
    module: Format = importlib.import_module(FORMATS[name])
    return module


def load_compare_format(name: str) -> CompareFormat:
    """The module of a format of a comparison. Raises UsageError for a name that is not one."""
    if name not in COMPARE_FORMATS:
        raise UsageError(f"{name!r} is no format of a comparison; choose one of {', '.join(COMPARE_FORMATS)}")
    module: CompareFormat = importlib.import_module(COMPARE_FORMATS[name])
    return module


def load_check_format(name: str) -> CheckFormat:
    """The module of a format of a check. Raises UsageError for a name that is not one."""
    if name not in CHECK_FORMATS:
        raise UsageError(f"{name} holds no check; choose one of {', '.join(CHECK_FORMATS)}")
    module: CheckFormat = importlib.import_module(CHECK_FORMATS[name])
    return module


def load_verify_format(name: str) -> VerifyFormat:
    """The module of a format of a verification. Raises UsageError for a name that is not one."""
    if name not in VERIFY_FORMATS:
        raise UsageError(f"{name} holds no verification; choose one of {', '.join(VERIFY_FORMATS)}")
    module: VerifyFormat = importlib.import_module(VERIFY_FORMATS[name])
    return module


def load_tabular_format(name: str) -> TabularFormat:
    """The module of a format of a document with tables. Raises UsageError for a name that is not one."""
    if name not in TABULAR_FORMATS:
        raise UsageError(f"{name!r} is no format of these tables; choose one of {', '.join(TABULAR_FORMATS)}")
    module: TabularFormat = importlib.import_module(TABULAR_FORMATS[name])
    return module


def format_for(path: str) -> str:
    """The format that a file's extension asks for. Raises UsageError for an unknown extension."""
    extension = PurePath(path).suffix.lower()
    if extension not in EXTENSIONS:
        known = ", ".join(EXTENSIONS)
        raise UsageError(f"{path}: cannot tell the format from the extension {extension!r}; use {known} or --format")
    return EXTENSIONS[extension]
