"""The output formats of an order by name; a format's module is imported when it is used."""

from __future__ import annotations

import importlib
from pathlib import PurePath
from typing import TYPE_CHECKING, Protocol

from gpufit.errors import UsageError

if TYPE_CHECKING:
    from gpufit.report.order_document import OrderDocument

ORDER_FORMATS: dict[str, str] = {
    "markdown": "gpufit.report.order_formats.markdown",
    "json": "gpufit.report.order_formats.json",
    "xlsx": "gpufit.report.order_formats.xlsx",
    "html": "gpufit.report.order_formats.html",
    "csv": "gpufit.report.order_formats.csv",
}
"""Format name -> module; the first is that of standard output."""

ORDER_EXTENSIONS: dict[str, str] = {
    ".md": "markdown",
    ".json": "json",
    ".xlsx": "xlsx",
    ".html": "html",
    ".csv": "csv",
}
"""File extension -> format name."""


class OrderFormat(Protocol):
    """A module that renders orders."""

    BINARY: bool
    """True when the output is not text and so is never written to a terminal."""

    def render_order(self, document: OrderDocument) -> bytes:
        """The whole output; the same document always gives the same bytes."""
        ...


def load_order_format(name: str) -> OrderFormat:
    """The module of a format. Raises UsageError for a name that is not one."""
    if name not in ORDER_FORMATS:
        raise UsageError(f"no format {name!r} of an order; choose one of {', '.join(ORDER_FORMATS)}")
    module: OrderFormat = importlib.import_module(ORDER_FORMATS[name])
    return module


def order_format_for(path: str) -> str:
    """The format that a file's extension asks for. Raises UsageError for an unknown extension."""
    extension = PurePath(path).suffix.lower()
    if extension not in ORDER_EXTENSIONS:
        known = ", ".join(ORDER_EXTENSIONS)
        raise UsageError(f"{path}: cannot tell the format from the extension {extension!r}; use {known} or --format")
    return ORDER_EXTENSIONS[extension]
