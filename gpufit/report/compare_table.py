"""A comparison as tables: each phase with its interval, its parts with what accounts for them, and what differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from gpufit.advice.comparison import PartDifference, PhaseDifference, PhaseSide
from gpufit.advice.differences import Difference
from gpufit.report.cells import PART_TITLES, Value
from gpufit.report.compare_document import Compared, CompareDocument
from gpufit.report.compare_text import accounts_words
from gpufit.report.conclusion import signed_size
from gpufit.report.tabular import Column, Table, TabularReport, count_text, size_text, table_of, tokens_text


def compare_report(document: CompareDocument) -> TabularReport:
    """Both sides, what it comes to, and why."""
    a, b = document.a.model.name, document.b.model.name
    return TabularReport(
        kind="compare",
        title=f"{a}: two profiles" if a == b else f"{a} against {b}",
        document=document,
        question=_asked(document),
        sentences=document.conclusion,
        tables=(_phases(document), _parts(document), _differences(document)),
        notes=(),
    )


def _asked(document: CompareDocument) -> Table:
    scenario = document.scenario
    columns: list[Column[None]] = [
        *_side("a", "A", document.a),
        *_side("b", "B", document.b),
        Column("context_tokens", "context", lambda _: scenario.context_tokens, tokens_text),
        Column("new_tokens", "new tokens", lambda _: scenario.new_tokens, count_text),
        Column("concurrency", "sequences at once", lambda _: scenario.concurrency, count_text),
        Column("weakest_evidence", "weakest evidence", lambda _: str(document.evidence), words=True),
    ]
    return table_of("question", "Which two", columns, [None])


def _side(key: str, title: str, one: Compared) -> Iterator[Column[None]]:
    engine = f"{one.engine.name} {one.engine.version} ({one.engine.attention})"
    made = f"{one.evidence}, {one.measured_on}, {one.created_at}"
    for name, words, value in (
        ("", "", one.profile),
        ("_model", ", model", one.model.name),
        ("_engine", ", engine", engine),
        ("_made", ", made", made),
    ):
        yield Column(f"{key}{name}", f"{title}{words}", lambda _, value=value: value, words=True)  # type: ignore[misc]


def _phases(document: CompareDocument) -> Table:
    columns: list[Column[PhaseDifference]] = [
        Column("phase", "phase", lambda one: str(one.phase), words=True),
        *_sizes("a", "A", lambda one: one.a),
        *_sizes("b", "B", lambda one: one.b),
        Column("difference_bytes", "B - A", lambda one: one.difference_bytes, signed_size, whole=True),
        Column("beyond_intervals", "beyond the intervals", lambda one: _said(one.beyond_intervals), words=True),
        *_evidence(lambda one: one),
    ]
    caption = "Allocated at the peak of each phase, with its interval; the difference is B less A."
    return table_of("phases", "Phase by phase", columns, document.phases, caption)


def _sizes(
    key: str, title: str, side: Callable[[PhaseDifference], PhaseSide | None]
) -> Iterator[Column[PhaseDifference]]:
    for name, words in (("allocated", ""), ("allocated_lower", ", lower"), ("allocated_upper", ", upper")):

        def read(one: PhaseDifference, name: str = f"{name}_bytes") -> int | None:
            size: int | None = getattr(side(one), name, None)
            return size

        yield Column(f"{key}_{name}_bytes", f"{title}{words}", read, size_text, whole=True)


class _Part(NamedTuple):
    phase: PhaseDifference
    part: PartDifference


def _parts(document: CompareDocument) -> Table:
    columns: list[Column[_Part]] = [
        Column("phase", "phase", lambda one: str(one.phase.phase), words=True),
        Column("part", "part", lambda one: one.part.part, lambda part: PART_TITLES[part], words=True),
        Column("a_bytes", "A", lambda one: one.part.a_bytes, size_text, whole=True),
        Column("b_bytes", "B", lambda one: one.part.b_bytes, size_text, whole=True),
        Column("difference_bytes", "B - A", lambda one: one.part.difference_bytes, signed_size, whole=True),
        Column("beyond_intervals", "beyond the intervals", lambda one: _said(one.part.beyond_intervals), words=True),
        *_evidence(lambda one: one.phase),
        Column("accounts", "what accounts for it", lambda one: "; ".join(accounts_words(one.part)) or None, words=True),
    ]
    rows = [_Part(phase, part) for phase in document.phases for part in phase.parts if part.a_bytes or part.b_bytes]
    return table_of("parts", "Part by part", columns, rows, "The parts of a phase add up to what it allocates.")


def _evidence(phase: Callable[[Any], PhaseDifference]) -> Iterator[Column[Any]]:
    def a(one: Any) -> Value:
        side = phase(one).a
        return None if side is None else str(side.evidence)

    def b(one: Any) -> Value:
        side = phase(one).b
        return None if side is None else str(side.evidence)

    yield Column("a_evidence", "evidence, A", a, words=True)
    yield Column("b_evidence", "evidence, B", b, words=True)


def _said(beyond: bool | None) -> str | None:
    return None if beyond is None else "yes" if beyond else "no"


def _differences(document: CompareDocument) -> Table:
    columns: tuple[Column[Difference], ...] = (
        Column("about", "about", lambda one: str(one.topic), words=True),
        Column("what", "what", lambda one: one.what, words=True),
        Column("a_recorded", "A", lambda one: one.a, words=True),
        Column("b_recorded", "B", lambda one: one.b, words=True),
    )
    caption = "What the two record differently, in the order to look: the model first, the device last."
    return table_of("differences", "What differs", columns, document.differences, caption)
