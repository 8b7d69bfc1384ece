"""The profiles there are: a line each with evidence, device and date, and everything about the one under the cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Group
from rich.table import Column, Table
from rich.text import Text

from gpufit.profile.record import Evidence, Failed, Measured, OutOfMemory, Profile, Skipped
from gpufit.report.cells import printable
from gpufit.report.summary import precision_lines
from gpufit.tui.loaded import LoadedProfile, UnfinishedProfile
from gpufit.tui.renderables.evidence import STYLES, evidence_text
from gpufit.tui.renderables.listed import ListColumn
from gpufit.tui.renderables.palette import DIM, PLAIN, STRONG, TITLE, WARNING
from gpufit.units import format_size, format_tokens

_LABEL_WIDTH = 12

_ENDINGS: tuple[tuple[type, str, str], ...] = (
    (Measured, "✓", ""),
    (OutOfMemory, "✗", "out of memory"),
    (Failed, "!", "failed"),
    (Skipped, "-", "skipped"),
)
"""How the cells of a profile ended: as the list counts them, and in words; what ran to its end is called by its
evidence."""


@dataclass(frozen=True)
class Entry:
    """A line of the list."""

    one: LoadedProfile | UnfinishedProfile
    mark: str
    """`A`, `B`, or empty."""
    opened: bool
    """Whether the other screens show it."""

    @property
    def profile(self) -> Profile:
        """What was read."""
        return self.one.profile

    @property
    def unfinished(self) -> bool:
        """Whether more of it can still be run."""
        return isinstance(self.one, UnfinishedProfile) or not self.profile.complete


def entries(
    listed: Sequence[LoadedProfile | UnfinishedProfile], marked: Sequence[str], opened: int
) -> tuple[Entry, ...]:
    """The lines, with the marks of those to be compared."""
    marks = dict(zip(marked, "AB", strict=False))
    return tuple(Entry(one, marks.get(one.where, ""), at == opened) for at, one in enumerate(listed))


def _sign(entry: Entry) -> str:
    return f"{'•' if entry.opened else ' '}{entry.mark}"


def cell_signs(profile: Profile) -> str:
    """`✓12 ✗2 -1`: how many cells ended how; of a profile that nothing was run for, that it has none."""
    if not profile.cells:
        return "rules" if profile.evidence is Evidence.COMPUTED else "none yet"
    counts = _counts(profile)
    return " ".join(f"{sign}{counts[kind]}" for kind, sign, _ in _ENDINGS if counts[kind])


def cell_words(profile: Profile) -> str:
    """The same in words."""
    if not profile.cells:
        return "none: it answers by rules" if profile.evidence is Evidence.COMPUTED else "none yet"
    counts = _counts(profile)
    return ", ".join(f"{counts[kind]} {words or profile.evidence}" for kind, _, words in _ENDINGS if counts[kind])


def _counts(profile: Profile) -> Counter[type]:
    return Counter(type(cell.outcome) for cell in profile.cells)


def _made(profile: Profile) -> str:
    """The day and minute, UTC."""
    return profile.created_at[:16].replace("T", " ")


def _device(entry: Entry) -> str:
    device = entry.profile.environment.device
    return "no device" if device.kind == "none" else device.name


COLUMNS: tuple[ListColumn[Entry], ...] = (
    ListColumn(title="", text=_sign, style=lambda entry: STRONG),
    ListColumn(title="model", text=lambda entry: entry.profile.model.name, most=22, style=lambda entry: STRONG),
    ListColumn(
        title="evidence",
        text=lambda entry: evidence_text(entry.profile.evidence),
        style=lambda entry: STYLES[entry.profile.evidence],
    ),
    ListColumn(title="device", text=_device, most=14, importance=1),
    ListColumn(
        title="cells",
        text=lambda entry: f"{cell_signs(entry.profile)}{' unfinished' if entry.unfinished else ''}",
        style=lambda entry: WARNING if entry.unfinished else PLAIN,
        importance=3,
    ),
    ListColumn(title="made", text=lambda entry: entry.profile.created_at[:10], importance=2),
    ListColumn(
        title="engine",
        text=lambda entry: f"{entry.profile.engine.name} {entry.profile.engine.version}",
        style=lambda entry: DIM,
        importance=4,
    ),
    ListColumn(title="file", text=lambda entry: entry.one.where, style=lambda entry: DIM, importance=5),
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


def details(entry: Entry) -> Group:
    """Everything about one profile that its line has no room for."""
    grid = Table.grid(Column(width=_LABEL_WIDTH, style=DIM), Column(ratio=1, style=PLAIN), expand=True)
    for label, value in _lines(entry):
        grid.add_row(Text(label), Text(printable(value)))
    why = entry.one.why if isinstance(entry.one, UnfinishedProfile) else ""
    state = Text(why or "enter opens it: every screen then asks this profile", WARNING if why else DIM)
    return Group(Text(printable(entry.profile.model.name), TITLE), state, grid)


def _lines(entry: Entry) -> Iterator[tuple[str, str]]:
    profile = entry.profile
    model, engine, device = profile.model, profile.engine, profile.environment.device
    yield "file", entry.one.where
    yield "evidence", f"{evidence_text(profile.evidence)}, {_made(profile)} UTC"
    yield "device", f"{device.name}{f', {format_size(device.total_bytes)}' if device.total_bytes else ''}"
    yield "engine", f"{engine.name} {engine.version} ({engine.attention})"
    limit = "" if model.position_limit is None else f", positions to {format_tokens(model.position_limit)}"
    yield "model", f"{model.architecture}, {model.parameters:,} parameters{limit}"
    yield "from", model.source
    yield "cells", cell_words(profile) + ("; unfinished: gpufit profile --resume" if entry.unfinished else "")
    if isinstance(entry.one, LoadedProfile):
        start = entry.one.start
        new = f" + {start.new_tokens} new" if start.new_tokens > 1 else ""
        yield "starts at", f"context {format_tokens(start.context_tokens)}{new} x {start.concurrency} at once"
    for place, line in enumerate(precision_lines(profile.precision)):
        yield "" if place else "precision", line
    for line in (*profile.environment.flags, *profile.notes):
        yield "note", line
