"""Evidence at a glance: each kind has a sign, its word and a style of its own, so that it also reads without colour."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from gpufit.profile.evidence import Evidence

SIGNS: Mapping[Evidence, str] = {
    Evidence.MEASURED: "●",
    Evidence.IMPORTED: "◆",
    Evidence.SIMULATED: "◐",
    Evidence.COMPUTED: "○",
    Evidence.SCALED: "↗",
    Evidence.ASSUMED: "?",
}
"""Strongest first; a cell wide."""

STYLES: Mapping[Evidence, str] = {
    Evidence.MEASURED: "bold #62d68a",
    Evidence.IMPORTED: "#62d68a",
    Evidence.SIMULATED: "#8fb8ff",
    Evidence.COMPUTED: "#8fb8ff",
    Evidence.SCALED: "#ffcf5c",
    Evidence.ASSUMED: "#e8915b",
}


def evidence_text(evidence: Evidence) -> str:
    """Sign and word: `● measured`."""
    return f"{SIGNS[evidence]} {evidence}"


def evidence_mark(evidence: Evidence) -> Text:
    """The same in its style."""
    return Text(evidence_text(evidence), STYLES[evidence])
