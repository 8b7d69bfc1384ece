"""The document of several questions: every profile against every scenario, and which cards serve them all.

JSON keys are these fields' names. Each question's answer is the fit document it would be if it were asked alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import PurePath

import msgspec

from gpufit import __version__
from gpufit.advice.verdict import Verdict
from gpufit.profile.base import Record
from gpufit.profile.evidence import Evidence, weakest
from gpufit.report.document import CardRow, FitDocument
from gpufit.report.prices import Price

SCHEMA_VERSION = 1


class CardForAll(Record, frozen=True, kw_only=True):
    """One card for all scenarios of a profile, served one after another: what the most demanding of them takes."""

    card: str
    """The card's id in the catalog."""
    name: str
    fits_every_scenario: bool
    """Whether its verdict is `fits` in each of them."""
    tightest_scenario: str
    """The one that decides: it needs most cards, or leaves the least headroom."""
    cards_needed: int | None
    """Null where some scenario is served by no number of them."""
    lot_size: int
    lots: int | None
    idle_cards: int | None
    prices: tuple[Price, ...] = ()
    """Every term of every seller, for the lots of all cards that are needed; what work costs depends on the scenario,
    and stands there."""

    @property
    def room_bytes(self) -> int | None:
        """Headroom depends on the scenario, and stands there."""
        return None


class ProfileAnswer(Record, frozen=True, kw_only=True):
    """All scenarios of one profile."""

    profile: str
    """The file it was read from, or the model that was estimated."""
    label: str
    """The shortest name that tells it from the others."""
    cards_for_all: tuple[CardForAll, ...]

    @property
    def fitting(self) -> tuple[CardForAll, ...]:
        """The cards that fit every scenario."""
        return tuple(card for card in self.cards_for_all if card.fits_every_scenario)


class FitsDocument(Record, frozen=True, kw_only=True):
    """Several questions in the order they were asked: scenarios within profiles."""

    schema_version: int = SCHEMA_VERSION
    gpufit_version: str = __version__
    evidence: Evidence
    """The weakest in the document."""
    profiles: tuple[ProfileAnswer, ...]
    documents: tuple[FitDocument, ...]
    """Every profile at every scenario, each as `gpufit fit` answers for it alone."""

    @property
    def unserved(self) -> tuple[FitDocument, ...]:
        """The questions that no card answers, neither alone nor as copies."""
        return tuple(document for document in self.documents if not document.something_fits)

    def of(self, answer: ProfileAnswer) -> tuple[FitDocument, ...]:
        """The scenarios of one profile."""
        return tuple(document for document in self.documents if document.profile == answer.profile)

    def label(self, document: FitDocument) -> str:
        """The name of a document's profile."""
        return next(answer.label for answer in self.profiles if answer.profile == document.profile)


def named(document: FitDocument, name: str | None) -> FitDocument:
    """The same document of a scenario with a name."""
    return msgspec.structs.replace(document, scenario=msgspec.structs.replace(document.scenario, name=name))


def build_fits_document(documents: Sequence[FitDocument]) -> FitsDocument:
    """Put the answers to several questions together; every profile has the same scenarios and the same cards."""
    labels = _labels(dict.fromkeys(document.profile for document in documents))
    answers = []
    for profile, label in labels.items():
        asked = [document for document in documents if document.profile == profile]
        answers.append(ProfileAnswer(profile=profile, label=label, cards_for_all=tuple(_for_all(asked))))
    return FitsDocument(
        evidence=weakest(document.evidence for document in documents),
        profiles=tuple(answers),
        documents=tuple(documents),
    )


def scenario_title(document: FitDocument) -> str:
    """A scenario's name, or, where it has none, its shape."""
    scenario = document.scenario
    new = f"+{scenario.new_tokens}" if scenario.new_tokens > 1 else ""
    return scenario.name or f"{scenario.context_tokens}x{scenario.concurrency}{new}"


def _labels(profiles: Iterable[str]) -> dict[str, str]:
    """Each profile by its file's name without the ending, where that tells them apart, else as it was given."""
    given = list(profiles)
    stems = [PurePath(one).stem if one.endswith(".json") else PurePath(one).name for one in given]
    return {
        profile: stem if stem and stems.count(stem) == 1 else profile
        for profile, stem in zip(given, stems, strict=True)
    }


def _for_all(documents: Sequence[FitDocument]) -> Iterable[CardForAll]:
    by_card: dict[str, list[tuple[str, CardRow]]] = {}
    for document in documents:
        for row in document.cards:
            by_card.setdefault(row.card, []).append((scenario_title(document), row))
    for rows in by_card.values():
        title, tightest = max(rows, key=lambda one: _demand(one[1]))
        yield CardForAll(
            card=tightest.card,
            name=tightest.name,
            fits_every_scenario=all(row.verdict is Verdict.FITS for _, row in rows),
            tightest_scenario=title,
            cards_needed=tightest.cards_needed,
            lot_size=tightest.lot_size,
            lots=tightest.lots,
            idle_cards=tightest.idle_cards,
            prices=tuple(
                msgspec.structs.replace(price, cost_per_million_tokens=None, cost_per_thousand_inputs=None)
                for price in tightest.prices
            ),
        )


def _demand(row: CardRow) -> tuple[bool, int, int]:
    """How much a scenario asks of a card: what nothing serves first, then by cards, then by what it surely needs."""
    return (row.cards_needed is None, row.cards_needed or 0, row.need_upper_bytes)
