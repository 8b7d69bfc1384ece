"""What stands above the answers to several questions: the scenarios, a matrix of cards, and which serve them all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from gpufit.advice.verdict import Verdict
from gpufit.report.cells import SYMBOLS, lots_text
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.fits_document import CardForAll, FitsDocument, ProfileAnswer, scenario_title
from gpufit.units import format_tokens

LEGEND = (
    "one card: ✓ fits, ≈ too close, ✗ does not fit, ? unknown; beside it the lots to order, - where no number serves"
)
"""What the signs of a matrix mean."""

SEVERAL = "several"
"""What is not said of one card but of several together: they serve what one alone does not."""

_FOR_ALL = "all, in turn"


@dataclass(frozen=True)
class Matrix:
    """One table of the summary."""

    title: str
    """Which profile it is for; empty where it has all of them."""
    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    questions: tuple[FitDocument, ...]
    """Those that the columns after the card are of; columns beyond them are of all."""

    def answer(self, card: str, column: int) -> str | None:
        """A cell's verdict, or SEVERAL; None for a column that is not of one question."""
        if not 1 <= column <= len(self.questions):
            return None
        row = next(one for one in self.questions[column - 1].cards if one.card == card)
        return SEVERAL if row.verdict is not Verdict.FITS and row.cards_needed is not None else str(row.verdict)


def fits_headline(document: FitsDocument) -> list[str]:
    """How many questions, and what each profile and each scenario is."""
    scenarios = document.of(document.profiles[0])
    cards = len(document.documents[0].cards)
    modelled = any(one.scenario_ran is False for one in document.documents)
    lines = [
        f"{_counted(len(document.profiles), 'profile')} x {_counted(len(scenarios), 'scenario')}, "
        f"{_counted(cards, 'card')} · evidence: {document.evidence}"
        f"{', by a model where a shape was not run' if modelled else ''}"
    ]
    for answer in document.profiles:
        first = document.of(answer)[0]
        name = f"{answer.label} = " if len(document.profiles) > 1 else ""
        shape = "" if first.scenario.name else f", at {_shape(first)}"
        lines.append(f"{name}{_made_by(first)}{shape}")
    return lines + [f"{scenario_title(one)} = {_shape(one)}" for one in scenarios if one.scenario.name]


def matrices(document: FitsDocument) -> list[Matrix]:
    """Cards x scenarios, a table a profile; cards x profiles in one table where there is one scenario."""
    if len(document.documents) == len(document.profiles):
        headers = ("card", *(answer.label for answer in document.profiles))
        return [Matrix("", headers, _rows(document.documents), document.documents)]
    return [_matrix(document, answer) for answer in document.profiles]


def verdict_lines(document: FitsDocument) -> list[str]:
    """Which cards a buyer can order for all scenarios, and what nothing serves."""
    lines = []
    several = len(document.profiles) > 1
    for answer in document.profiles:
        scenarios = document.of(answer)
        if len(scenarios) > 1:
            lines += [f"{f'{answer.label}: ' if several else ''}{line}" for line in _for_all(answer)]
    if len(document.documents) > len(document.profiles):
        lines.append(
            f"{_FOR_ALL}: the lots that serve each scenario, one after another; those that run at the same time need "
            "the lots of each"
        )
    for one in document.unserved:
        whose = f"{document.label(one)}: " if several else ""
        lines.append(f"{whose}no card serves {scenario_title(one)}, neither alone nor several of it")
    return lines


def section_title(document: FitsDocument, one: FitDocument) -> str:
    """The heading of one question's answer."""
    return f"{scenario_title(one)} · {document.label(one)}"


def _matrix(document: FitsDocument, answer: ProfileAnswer) -> Matrix:
    scenarios = document.of(answer)
    headers = ["card", *(scenario_title(one) for one in scenarios), _FOR_ALL]
    for_all = {card.card: [_order(card)] for card in answer.cards_for_all}
    if len(_tightest(answer)) > 1:
        headers.append("decided by")
        for card in answer.cards_for_all:
            for_all[card.card].append(card.tightest_scenario)
    rows = tuple((*row, *for_all[row[0]]) for row in _rows(scenarios))
    return Matrix(answer.label if len(document.profiles) > 1 else "", tuple(headers), rows, scenarios)


def _order(card: CardForAll) -> str:
    """What to order for all scenarios: `2 x 2 (1 idle)`; `-` where some scenario is not served."""
    if card.lots is None:
        return "-"
    idle = f" ({card.idle_cards} idle)" if card.idle_cards else ""
    return f"{card.lots} x {card.lot_size}{idle}" if card.lot_size > 1 else str(card.lots)


def _rows(documents: Sequence[FitDocument]) -> tuple[tuple[str, ...], ...]:
    """A row a card, a column a document, whose cards are the same."""
    columns = [{row.card: row for row in document.cards} for document in documents]
    return tuple((card, *(_cell(column[card]) for column in columns)) for card in columns[0])


def _cell(row: CardRow) -> str:
    return f"{SYMBOLS[row.verdict][0]} {lots_text(row)}"


def _for_all(answer: ProfileAnswer) -> list[str]:
    fitting = [card.card for card in answer.fitting]
    served = [card.card for card in answer.cards_for_all if card.cards_needed is not None]
    tightest = _tightest(answer)
    lines = [f"every scenario fits: {_listed(fitting, [card.card for card in answer.cards_for_all])}"]
    copies = [card for card in served if card not in fitting]
    if copies:
        lines.append(f"every scenario is served, some by several cards together: {', '.join(copies)}")
    if len(tightest) == 1:
        lines.append(f"{tightest[0]} decides on every card")
    return lines


def _tightest(answer: ProfileAnswer) -> list[str]:
    """The scenarios that decide on some card."""
    return list(dict.fromkeys(card.tightest_scenario for card in answer.cards_for_all))


def _listed(some: Sequence[str], every: Sequence[str]) -> str:
    """Some of the cards, by what is shorter to read: themselves, or those that are missing."""
    count = f"({len(some)} of {len(every)})"
    if not some:
        return f"no card {count}"
    if len(some) == len(every):
        return f"each card {count}"
    if 2 * len(some) <= len(every):
        return f"{', '.join(some)} {count}"
    return f"all but {', '.join(card for card in every if card not in some)} {count}"


def _made_by(document: FitDocument) -> str:
    return (
        f"{document.model.name}, {document.engine.name} {document.engine.version} ({document.engine.attention}), "
        f"profile of {document.measured_on}: {document.profile}"
    )


def _shape(document: FitDocument) -> str:
    scenario = document.scenario
    if document.serves:
        new = f" ({scenario.new_tokens} of them new)" if scenario.new_tokens else ""
        return f"sequences of {format_tokens(scenario.context_tokens)} tokens{new} x {scenario.concurrency} at once"
    new = f" + {scenario.new_tokens} new" if scenario.new_tokens > 1 else ""
    return f"context {format_tokens(scenario.context_tokens)}{new} x {scenario.concurrency} at once"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
