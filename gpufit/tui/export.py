"""What a screen can be written as, and writing it. Knows nothing of Textual."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import Protocol, runtime_checkable

from gpufit.errors import UsageError, unreadable
from gpufit.files import is_plain_file, refuse_own_input, typed_name, write_output
from gpufit.report.compare_document import CompareDocument
from gpufit.report.document import FitDocument
from gpufit.report.order_document import OrderDocument
from gpufit.report.order_registry import ORDER_EXTENSIONS, load_order_format
from gpufit.report.registry import (
    COMPARE_FORMATS,
    EXTENSIONS,
    load_compare_format,
    load_format,
    load_tabular_format,
)
from gpufit.report.tabular import TabularReport

PICTURE = ".svg"


@dataclass(frozen=True)
class Exportable:
    """A view as documents."""

    name: str
    """Of the file, without its ending."""
    formats: Mapping[str, str]
    """Ending -> what such a file holds, in words."""
    render: Callable[[str], bytes]
    """The file of an ending."""
    inputs: tuple[str, ...] = ()
    """Files that it was made from, which are never written over."""


@runtime_checkable
class Exports(Protocol):
    """A screen that can be written as more than a picture."""

    def exportable(self) -> Exportable | None:
        """What is on show; None where nothing is."""
        ...


_FIT_WORDS = {
    ".csv": "a row for each card, arrangement and seller",
    ".json": "every figure, sizes in whole bytes",
    ".xlsx": "a workbook: summary, chart, prices to change",
    ".html": "a page to send",
    ".md": "Markdown",
    ".txt": "the table of the command line",
}
_COMPARE_WORDS = {
    ".csv": "a row for each part of each phase",
    ".json": "every figure, sizes in whole bytes",
    ".xlsx": "a workbook: phases, parts, what differs",
    ".html": "a page to send",
    ".md": "Markdown",
    ".txt": "the tables of the command line",
}
_TABLE_WORDS = {
    "curve": "a row for each card, then for each phase and place",
    "growth": "rows of its figures, of what more costs, of each length",
    "precision": "a row for each dtype, then for each switch's positions",
    "times": "a row for each cell",
    "profiles": "a row for each profile",
}
"""What a CSV of each kind holds."""
_ORDER_WORDS = {
    ".md": "the order file, to read and to send",
    ".xlsx": "a workbook: order, workers, checks",
    ".html": "a page to send",
    ".csv": "a row for each term",
    ".json": "every figure, sizes in whole bytes",
}


def of_fit(document: FitDocument, what: str = "fit") -> Exportable:
    """The answer for the cards of a document; `what` ends its name."""

    def render(ending: str) -> bytes:
        return load_format(EXTENSIONS[ending]).render_fit(document)

    return Exportable(_stem(document.model.name, what), _FIT_WORDS, render, (document.profile,))


def of_compare(document: CompareDocument) -> Exportable:
    """A comparison."""

    def render(ending: str) -> bytes:
        return load_compare_format(EXTENSIONS[ending]).render_compare(document)

    words = {ending: _COMPARE_WORDS[ending] for ending, name in EXTENSIONS.items() if name in COMPARE_FORMATS}
    ordered = {ending: said for ending, said in _COMPARE_WORDS.items() if ending in words}
    name = _stem(document.a.model.name, document.b.model.name, "compare")
    return Exportable(name, ordered, render, (document.a.profile, document.b.profile))


def of_pair(a: str, b: str) -> Exportable:
    """Two models, by name, that cannot be compared: nothing but a picture can be taken of that."""
    return Exportable(_stem(a, b, "compare"), {}, lambda ending: b"")


def of_order(document: OrderDocument) -> Exportable:
    """An order file."""

    def render(ending: str) -> bytes:
        return load_order_format(ORDER_EXTENSIONS[ending]).render_order(document)

    name = _stem(document.model.name, document.card.card, "order")
    return Exportable(name, _ORDER_WORDS, render, (document.profile,))


def of_tables(report: TabularReport, name: str, inputs: tuple[str, ...] = ()) -> Exportable:
    """A document with tables."""

    def render(ending: str) -> bytes:
        return load_tabular_format(EXTENSIONS[ending]).render_tables(report)

    return Exportable(_stem(name, report.kind), _words_of(report), render, inputs)


def _words_of(report: TabularReport) -> dict[str, str]:
    drawn = report.chart is not None
    return {
        ".csv": _TABLE_WORDS[report.kind],
        ".json": "every figure, sizes in whole bytes",
        ".xlsx": f"a workbook: {'its chart, ' if drawn else ''}a sheet a table",
        ".html": f"a page to send{', with its chart' if drawn else ''}",
        ".md": "Markdown",
    }


def of_run(output: str) -> Exportable:
    """A copy of the profile that a run writes, as far as it has come."""

    def render(ending: str) -> bytes:
        try:
            return Path(output).read_bytes()
        except OSError as error:
            raise unreadable(output, error) from error

    words = {".json": "a copy of its profile, with every cell that is finished"}
    return Exportable(_stem(PurePath(output).stem, "copy"), words, render, (output,))


def with_picture(made: Exportable | None, name: str, svg: str) -> Exportable:
    """The same with a picture of the screen; of a screen without documents, the picture alone."""
    found = made or Exportable(_stem("gpufit", name), {}, lambda ending: b"")

    def render(ending: str) -> bytes:
        return svg.encode() if ending == PICTURE else found.render(ending)

    return replace(found, formats={**found.formats, PICTURE: "a picture of this screen"}, render=render)


def _stem(*parts: str) -> str:
    """A file's name of these parts that any system takes."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", "-".join(PurePath(part).name for part in parts)).strip(".-").lower()


def ending_of(made: Exportable, path: str) -> str:
    """The ending of a file that somebody named. Raises UsageError for one that the view cannot be written as."""
    ending = PurePath(path.strip()).suffix.lower()
    if ending not in made.formats:
        raise UsageError(f"{path}: cannot tell the format from the extension {ending!r}; use {', '.join(made.formats)}")
    return ending


def with_ending(path: str, ending: str) -> str:
    """The same file under another ending."""
    suffix = PurePath(path).suffix
    return f"{path[: len(path) - len(suffix)]}{ending}"


def place_of(named: str) -> Path:
    """Where somebody's file lies. Raises UsageError for what no file can be named."""
    return Path(typed_name(named))


def is_there(named: str) -> bool:
    """Whether a file would be replaced. Raises UsageError for what no file can be named."""
    return is_plain_file(place_of(named))


def write(made: Exportable, named: str) -> str:
    """Write the view to a file, in place of one that is there; what was done, in words.

    Raises UsageError for an ending that is none of the view's and for a file that it was made from,
    UnreadableInputError when it cannot be written.
    """
    ending, path = ending_of(made, named), place_of(named)
    refuse_own_input(path, made.inputs)
    folder = write_output(made.render(ending), path)
    return f"wrote {path}" if folder is None else f"made the folder {folder}, wrote {path}"
