"""What stands above the answers to several questions: the scenarios, a matrix of cards, and which serve them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from gpufit.advice.verdict import Verdict
from gpufit.report.cells import SYMBOLS, order_words, shared_words
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.fits_document import CardForAll, FitsDocument, ProfileAnswer, scenario_title
from gpufit.report.offer_lines import OfferLine, offer_lines
from gpufit.units import counted, format_tokens

_SIGNS = "one card: ✓ fits, ≈ too close, ✗ does not fit, ? unknown"
LEGEND = f"{_SIGNS}; beside it the lots to order (of each seller, where lots differ), - where no plan serves"
"""What the signs of a matrix mean."""
LEGEND_IN_CARDS = f"{_SIGNS}; beside it the cards that serve, - where no plan does"
"""The same of a matrix in cards."""

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
        f"{counted(len(document.profiles), 'profile')} x {counted(len(scenarios), 'scenario')}, "
        f"{counted(cards, 'card')} · evidence: {document.evidence}"
        f"{', by a model where a shape was not run' if modelled else ''}"
    ]
    for answer in document.profiles:
        first = document.of(answer)[0]
        name = f"{answer.label} = " if len(document.profiles) > 1 else ""
        shape = "" if first.scenario.name else f", at {_shape(first)}"
        lines.append(f"{name}{_made_by(first)}{shape}")
    return lines + [f"{scenario_title(one)} = {_shape(one)}" for one in scenarios if one.scenario.name]


@dataclass(frozen=True)
class Orders:
    """What sellers ask for the cards that serve all scenarios of a profile, one after another."""

    title: str
    lines: tuple[OfferLine, ...]


def matrices(document: FitsDocument) -> list[Matrix]:
    """Cards x scenarios in lots, a table a profile; cards x profiles in one table where there is one scenario."""
    return _matrices(document, _lots)


def matrices_in_cards(document: FitsDocument) -> list[Matrix]:
    """The same in cards, whatever lots they are sold in."""
    return _matrices(document, _cards)


def all_in_turn(document: FitsDocument) -> list[Orders]:
    """What to order for all scenarios of each profile and what it costs; nothing where there is one scenario, or where
    nobody has a price."""
    if len(document.documents) == len(document.profiles):
        return []
    return [orders for orders in to_order(document) if any(line.priced for line in orders.lines)]


def to_order(document: FitsDocument) -> list[Orders]:
    """What to order for each profile, at its only scenario or at all of them in turn, whether it has prices or not."""
    several, turns = len(document.profiles) > 1, len(document.documents) > len(document.profiles)
    found = []
    for answer in document.profiles:
        title = f"to order for {_FOR_ALL}" if turns else "to order"
        lines = offer_lines(answer.cards_for_all, document.of(answer)[0].offer_books)
        found.append(Orders(f"{answer.label}: {title}" if several else title, lines))
    return found


def _matrices(document: FitsDocument, ordered: _InWords) -> list[Matrix]:
    if len(document.documents) == len(document.profiles):
        headers = ("card", *(answer.label for answer in document.profiles))
        return [Matrix("", headers, _rows(document.documents, ordered), document.documents)]
    return [_matrix(document, answer, ordered) for answer in document.profiles]


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
        lines.append(
            f"{whose}no card serves {scenario_title(one)} by any of the plans tried, neither alone nor several of it"
        )
    return lines


def section_title(document: FitsDocument, one: FitDocument) -> str:
    """The heading of one question's answer."""
    return f"{scenario_title(one)} · {document.label(one)}"


def _matrix(document: FitsDocument, answer: ProfileAnswer, ordered: _InWords) -> Matrix:
    scenarios = document.of(answer)
    headers = ["card", *(scenario_title(one) for one in scenarios), _FOR_ALL]
    for_all = {card.card: [ordered(card)] for card in answer.cards_for_all}
    if len(_tightest(answer)) > 1:
        headers.append("decided by")
        for card in answer.cards_for_all:
            for_all[card.card].append(card.tightest_scenario)
    rows = tuple((*row, *for_all[row[0]]) for row in _rows(scenarios, ordered))
    return Matrix(answer.label if len(document.profiles) > 1 else "", tuple(headers), rows, scenarios)


_InWords = Callable[[CardRow | CardForAll], str]
"""What to take of a card, in words."""


def _lots(card: CardRow | CardForAll) -> str:
    """What to order: `2 x 2 (1 idle)`, of each seller where their lots differ; `-` where no number of them serves."""
    of_sellers = {
        (price.lots, price.lot_size or 1, price.idle_cards): None
        for price in card.prices
        if price.price_per_lot is not None
    }
    shared = shared_words(card) if isinstance(card, CardRow) else []
    lots = list(of_sellers) or [(card.lots, card.lot_size, card.idle_cards)]
    said = " or ".join(order_words(*one) for one in lots[:-1])
    last = order_words(*lots[-1], *shared)
    return last if card.lots is None or not said else f"{said} or {last}"


def _cards(card: CardRow | CardForAll) -> str:
    """How many cards: `3 (replicas)`; `-` where no number of them serves."""
    if card.cards_needed is None:
        return "-"
    shared = ", ".join(shared_words(card)) if isinstance(card, CardRow) else ""
    return f"{card.cards_needed:,} ({shared})" if shared else f"{card.cards_needed:,}"


def _rows(documents: Sequence[FitDocument], ordered: _InWords) -> tuple[tuple[str, ...], ...]:
    """A row a card, a column a document, whose cards are the same."""
    columns = [{row.card: row for row in document.cards} for document in documents]
    return tuple(
        (card, *(f"{SYMBOLS[column[card].verdict][0]} {ordered(column[card])}" for column in columns))
        for card in columns[0]
    )


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
