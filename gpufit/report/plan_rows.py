"""The ways to take several of a card as rows of a table: columns with a value and a text, for every format."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gpufit.report.document import CardRow, FitDocument
from gpufit.report.idle_text import hosts_words
from gpufit.report.plans import ArrangementFigures, arrangement_words
from gpufit.units import format_size

Figure = int | str


@dataclass(frozen=True)
class PlanColumn:
    """One column."""

    key: str
    title: str
    value: Callable[[CardRow, ArrangementFigures], Figure]
    words: bool = False
    """Whether it reads left, as words do."""

    def text(self, row: CardRow, plan: ArrangementFigures) -> str:
        """As people read it."""
        value = self.value(row, plan)
        if self.key.endswith("_bytes") and isinstance(value, int):
            return format_size(value)
        return f"{value:,}" if isinstance(value, int) else value


def _hosts(plan: ArrangementFigures) -> str:
    return hosts_words(plan.idle_hosts_copies, plan.idle_hosts_sequences) if plan.idle_cards else ""


PLAN_COLUMNS: tuple[PlanColumn, ...] = (
    PlanColumn("card", "card", lambda row, plan: row.card, words=True),
    PlanColumn("arrangement", "arrangement", lambda row, plan: plan.arrangement, words=True),
    PlanColumn("in_words", "in words", lambda row, plan: arrangement_words(plan), words=True),
    PlanColumn("copies", "copies", lambda row, plan: plan.copies),
    PlanColumn("sequences_per_copy", "sequences a copy", lambda row, plan: plan.sequences_per_copy),
    PlanColumn("cards_needed", "cards", lambda row, plan: plan.cards_needed),
    PlanColumn("lots", "lots", lambda row, plan: plan.lots),
    PlanColumn("idle_cards", "idle cards", lambda row, plan: plan.idle_cards),
    PlanColumn("idle_hosts", "idle could host", lambda row, plan: _hosts(plan), words=True),
    PlanColumn("machines", "machines", lambda row, plan: plan.machines),
    PlanColumn("need_bytes", "need of each", lambda row, plan: plan.need_bytes),
    PlanColumn("need_upper_bytes", "at most", lambda row, plan: plan.need_upper_bytes),
    PlanColumn("evidence", "evidence", lambda row, plan: str(plan.evidence), words=True),
    PlanColumn("serve_command", "command", lambda row, plan: plan.serve_command, words=True),
)


def planned(document: FitDocument) -> Iterator[tuple[CardRow, ArrangementFigures]]:
    """Every way to take several of a card, card by card: none of cards of which one alone does."""
    for row in document.cards:
        for plan in row.arrangements:
            if plan.arrangement != "single":
                yield row, plan


def changed(document: FitDocument) -> Iterator[tuple[CardRow, str]]:
    """(card, what would make one of it do, or fewer of it, in words), card by card."""
    for row in document.cards:
        for change in row.changes:
            yield row, change.words
