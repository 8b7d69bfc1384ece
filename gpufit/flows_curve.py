"""The use cases of the screens that look closer at one profile: its curve, its growth, its times."""

from __future__ import annotations

from collections.abc import Collection

from gpufit.advice.curve import Axis
from gpufit.catalog.record import Catalog
from gpufit.flows import profiled_card
from gpufit.memory.held import Held
from gpufit.memory.otherwise import predictor_of
from gpufit.profile.record import Profile
from gpufit.report.curve import CurveDocument, build_curve_document
from gpufit.report.document import FitDocument
from gpufit.report.growth import GrowthDocument, build_growth_document
from gpufit.report.precision import PrecisionDocument, build_precision_document
from gpufit.report.times import TimesDocument, build_times_document


def curve(
    profile: Profile,
    answer: FitDocument,
    axis: Axis,
    catalog: Catalog,
    held: Held | None = None,
    cards: Collection[str] | None = None,
) -> CurveDocument:
    """The curve through an answer's scenario, with those of its cards that are named by id, or all of them.

    `answer` is what `flows.fit` says of this profile, held so.
    """
    chosen = {row.card for row in answer.cards} if cards is None else set(cards)
    measured_on = profiled_card(profile, catalog)
    found = [(card, card is measured_on) for card in catalog.cards if card.id in chosen]
    return build_curve_document(predictor_of(profile, held), answer, axis, found)


def growth(profile: Profile, answer: FitDocument, held: Held | None = None) -> GrowthDocument:
    """How memory grows with use, at the scenario of `answer`: what `flows.fit` says of this profile, held so."""
    return build_growth_document(predictor_of(profile, held), answer)


def precision(profile: Profile, answer: FitDocument, held: Held | None = None) -> PrecisionDocument:
    """The precision behind `answer`, what `flows.fit` says of this profile held so, and what others would come to."""
    return build_precision_document(profile, answer, held or Held())


def times(profile: Profile, where: str) -> TimesDocument:
    """What the cells of a profile took on the device they ran on."""
    return build_times_document(profile, where)
