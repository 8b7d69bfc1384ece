"""The sheet of the question, and of what each phase allocates, in bytes."""

from __future__ import annotations

from gpufit.profile.peaks import Parts
from gpufit.report.basis import phase_evidence_text
from gpufit.report.cells import PART_TITLES
from gpufit.report.document import FitDocument
from gpufit.report.question import question_of
from gpufit.report.workbook.paper import Paper
from gpufit.report.workbook.places import cell

SHEET = "scenario"

_ROWS = (
    ("allocated, lower", "allocated_lower_bytes"),
    ("allocated, upper", "allocated_upper_bytes"),
)


def write_scenario(paper: Paper, document: FitDocument) -> None:
    """The facts of the question, then the phases."""
    facts = question_of(document)
    paper.header(0, ["question", ""], words=(0, 1))
    for at, fact in enumerate(facts, start=1):
        paper.text(at, 0, fact.title)
        if isinstance(fact.value, str):
            paper.text(at, 1, fact.value, measured=False)
        else:
            paper.value(at, 1, fact.value)
    _write_phases(paper, document, len(facts) + 2)
    paper.sheet.freeze_panes(1, 1)
    paper.fit_columns()
    paper.landscape(None)


def _write_phases(paper: Paper, document: FitDocument, first: int) -> None:
    """Parts by phase, from row `first` on: their sum is a formula."""
    phases = document.phases
    paper.header(first, ["part, at the peak of each phase (bytes)", *phases])
    for at, name in enumerate(Parts.NAMES, start=first + 1):
        paper.text(at, 0, PART_TITLES[name])
        for column, figures in enumerate(phases.values(), start=1):
            paper.count(at, column, getattr(figures.parts, name))
    total = first + 1 + len(Parts.NAMES)
    paper.text(total, 0, "allocated (sum of the parts)", "bold words")
    for column, figures in enumerate(phases.values(), start=1):
        formula = f"=SUM({cell(first + 1, column)}:{cell(total - 1, column)})"
        paper.formula(total, column, formula, "bold count", figures.allocated_bytes)
    for at, (title, key) in enumerate(_ROWS, start=total + 1):
        paper.text(at, 0, title)
        for column, figures in enumerate(phases.values(), start=1):
            paper.count(at, column, getattr(figures, key))
    evidence = total + 1 + len(_ROWS)
    paper.text(evidence, 0, "evidence")
    for column, (name, figures) in enumerate(phases.items(), start=1):
        paper.text(evidence, column, phase_evidence_text(name, figures.evidence, document.scenario_ran), "right")
