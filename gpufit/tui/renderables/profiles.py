"""The profiles there are: a line each with evidence, device and date, and everything about the one under the cursor."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from gpufit.datadir import profiles_dir
from gpufit.files import readable_name
from gpufit.profile.evidence import Evidence
from gpufit.report.cells import printable
from gpufit.report.profiles import ProfileRow, ProfilesDocument
from gpufit.report.profiles_text import cell_signs, cell_words, minute_text
from gpufit.report.summary import precision_lines
from gpufit.tui.renderables.evidence import STYLES, evidence_text
from gpufit.tui.renderables.listed import ListColumn
from gpufit.tui.renderables.palette import DIM, PLAIN, STRONG, TITLE, WARNING
from gpufit.tui.state import View
from gpufit.units import format_size, format_tokens

_LABEL_WIDTH = 12
_RUN = tuple(View).index(View.RUN) + 1


@dataclass(frozen=True)
class Entry:
    """A line of the list."""

    row: ProfileRow
    mark: str
    """`A`, `B`, or empty."""
    opened: bool
    """Whether the other screens show it."""


def entries(document: ProfilesDocument, marked: Sequence[str], opened: int) -> tuple[Entry, ...]:
    """The lines, with the marks of those to be compared."""
    marks = dict(zip(map(readable_name, marked), "AB", strict=False))
    return tuple(Entry(row, marks.get(row.profile, ""), at == opened) for at, row in enumerate(document.profiles))


def _sign(entry: Entry) -> str:
    return f"{'•' if entry.opened else ' '}{entry.mark}"


def _device(entry: Entry) -> str:
    return "no device" if entry.row.device_kind == "none" else entry.row.device


COLUMNS: tuple[ListColumn[Entry], ...] = (
    ListColumn(title="", text=_sign, style=lambda entry: STRONG),
    ListColumn(
        title="model", text=lambda entry: entry.row.model.name, most=22, by_its_end=True, style=lambda entry: STRONG
    ),
    ListColumn(
        title="evidence",
        text=lambda entry: evidence_text(entry.row.evidence),
        style=lambda entry: STYLES[entry.row.evidence],
    ),
    ListColumn(title="device", text=_device, most=14, importance=1),
    ListColumn(
        title="cells",
        text=lambda entry: f"{cell_signs(entry.row)}{' unfinished' if entry.row.unfinished else ''}",
        style=lambda entry: WARNING if entry.row.unfinished else PLAIN,
        importance=3,
    ),
    ListColumn(title="made", text=lambda entry: entry.row.created_at[:10], importance=2),
    ListColumn(
        title="engine",
        text=lambda entry: f"{entry.row.engine.name} {entry.row.engine.version}",
        style=lambda entry: DIM,
        importance=5,
    ),
    ListColumn(
        title="file",
        text=lambda entry: entry.row.profile,
        most=18,
        by_its_end=True,
        style=lambda entry: DIM,
        importance=4,
    ),
)
"""Left to right; `•` stands before the open one."""


def title(count: int, unfinished: int, marked: int) -> Text:
    """How many there are, and what the marks are for."""
    counted = "1 profile" if count == 1 else f"{count} profiles"
    text = Text(no_wrap=True, overflow="ellipsis").append(counted, STRONG)
    if unfinished:
        text.append(f", {unfinished} of them with nothing to answer from yet", WARNING)
    marks = ("", " · one marked: = compares it with the one under the cursor", " · two marked: = compares them")
    return text.append(marks[marked], PLAIN)


def details(entry: Entry, kept: bool = True) -> Group:
    """Everything about one profile that its line has no room for; `kept`: it is a file, and not only on show."""
    grid = Table.grid(Column(width=_LABEL_WIDTH, style=DIM), Column(ratio=1, style=PLAIN), expand=True)
    for label, value in _lines(entry):
        grid.add_row(Text(label), Text(printable(value)))
    if not kept:
        grid.add_row(Text("kept", WARNING), Text(printable(not_kept(entry.row)), WARNING))
    why = entry.row.why_not
    state = Text(why or "enter opens it: every screen then asks this profile", WARNING if why else DIM)
    return Group(Text(printable(entry.row.model.name), TITLE), state, grid)


def _goes_on(row: ProfileRow) -> str:
    """What goes on with a run that ended early, settings given then beside it; on fake tensors it is made anew."""
    simulated = row.evidence is Evidence.SIMULATED
    command, how = ("simulate", "--force") if simulated else ("profile", "--resume")
    line = shlex.join(["gpufit", command, row.model.source, "-o", row.profile, how])
    return (
        f"{line} {'makes it anew' if simulated else 'goes on'}, with the settings it began with; so does screen {_RUN}"
    )


def not_kept(row: ProfileRow) -> str:
    """What becomes of an estimate that was only opened, and what keeps it."""
    name = row.model.name.replace("/", "--")
    command = shlex.join(["gpufit", "estimate", row.profile, "--save", str(profiles_dir() / f"{name}.json")])
    return f"no, it is gone on quit; screen {_RUN} (start: estimate) writes it, or {command}"


def _lines(entry: Entry) -> Iterator[tuple[str, str]]:
    row = entry.row
    model, engine, start = row.model, row.engine, row.starts_at
    yield "file", row.profile
    yield "evidence", f"{evidence_text(row.evidence)}, {minute_text(row.created_at)} UTC"
    size = "" if row.device_total_bytes is None else f", {format_size(row.device_total_bytes)}"
    yield "device", f"{row.device}{size}"
    yield "engine", f"{engine.name} {engine.version} ({engine.attention})"
    limit = "" if model.position_limit is None else f", positions to {format_tokens(model.position_limit)}"
    yield "model", f"{model.architecture}, {model.parameters:,} parameters{limit}"
    yield "from", model.source
    yield "cells", cell_words(row)
    if row.unfinished:
        yield "unfinished", _goes_on(row)
    if start is not None:
        new = f" + {start.new_tokens} new" if start.new_tokens > 1 else ""
        yield "starts at", f"context {format_tokens(start.context_tokens)}{new} x {start.concurrency} at once"
    for place, line in enumerate(precision_lines(row.precision)):
        yield "" if place else "precision", line
    for line in row.notes:
        yield "note", line
