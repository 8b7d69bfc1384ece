"""The use cases that the command line and the TUI both call."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.advice.arrangements import Division, divisions_of, no_plan, plans_for
from gpufit.advice.changes import Alternatives, nearest_changes
from gpufit.advice.verdict import CardVerdict, Devices, Verdict, judge
from gpufit.catalog.detect import detect_card
from gpufit.catalog.offers import Offers
from gpufit.catalog.record import Card, Catalog
from gpufit.errors import UnreadableInputError, UsageError
from gpufit.files import exists, is_folder
from gpufit.memory.adapt import Predicts
from gpufit.memory.check import faults
from gpufit.memory.otherwise import Otherwise, predictor_of
from gpufit.memory.positions import beyond_positions, too_short_for_images
from gpufit.memory.predict import predict
from gpufit.memory.terms import Shape
from gpufit.profile.evidence import Evidence
from gpufit.profile.record import Profile
from gpufit.report.document import FitDocument
from gpufit.report.fit_builder import CardAdvice, build_fit_document

if TYPE_CHECKING:
    from gpufit.memory.held import Held
    from gpufit.report.compare_document import CompareDocument
    from gpufit.sources.estimate.request import EstimateRequest
    from gpufit.sources.estimate.vllm import VllmRequest
    from gpufit.sources.measure.listener import Listener
    from gpufit.sources.measure.request import ProfileRequest


def fit(
    profile: Profile,
    where: str,
    shape: Shape,
    catalog: Catalog,
    offers: Offers,
    cards: Sequence[Card] = (),
    held: Held | None = None,
) -> FitDocument:
    """Judge a profile against cards (all of the catalog's when none are named) at one shape; `held`: as if its model
    were held and computed so, which is worked out and never `measured`.

    Raises UsageError when the model cannot take the shape, the profile cannot answer for it, or a choice of `held` does
    not apply to it.
    """
    return judge_cards(profile, where, shape, catalog, offers, tuple(cards) or catalog.cards, held)


def verdicts(
    profile: Profile, where: str, shape: Shape, catalog: Catalog, offers: Offers, held: Held | None = None
) -> FitDocument:
    """The verdicts of `fit` over the catalog without what takes a search, for somebody who waits at a screen: the most
    that would fit is not known, and a card that does not fit by itself has no plan and no change. Raises as `fit` does.
    """
    asked = _Asked.of(profile, shape, catalog, offers, held)
    advice = []
    for card in catalog.cards:
        one = asked.judged(card, limits=False)
        whole = [Division(asked.devices, asked.predictor)]
        advice.append(CardAdvice(one, plans_for(one, whole, shape, offers.lot_size(card.id))))
    return asked.document(where, advice)


def judge_cards(
    profile: Profile,
    where: str,
    shape: Shape,
    catalog: Catalog,
    offers: Offers,
    cards: Sequence[Card],
    held: Held | None = None,
    between: Callable[[], None] | None = None,
) -> FitDocument:
    """The same for these cards and no others; for none, the document says what is needed of any card. `between` is
    called between two cards, and may raise to give up."""
    asked = _Asked.of(profile, shape, catalog, offers, held)
    pause = between or (lambda: None)

    def judged(card: Card) -> CardVerdict:
        pause()
        return asked.judged(card)

    found = {card.id: judged(card) for card in cards}
    everything_fits = all(one.verdict is Verdict.FITS for one in found.values())
    # The next card up is looked for among all of them, whichever were asked for.
    others = [] if everything_fits else [judged(card) for card in catalog.cards if card.id not in found]
    divisions, alternatives = divisions_of(asked.predictor), Alternatives(asked.predictor)
    every = [*found.values(), *others]
    advice = []
    for one in found.values():
        pause()
        lot_size = offers.lot_size(one.card.id)
        plans = plans_for(one, divisions, shape, lot_size)
        changes = nearest_changes(one, alternatives, shape, every, plans, lot_size)
        advice.append(CardAdvice(one, plans, changes, "" if plans else no_plan(one, divisions)))
    return asked.document(where, advice)


@dataclass(frozen=True)
class _Asked:
    """A question to one profile."""

    profile: Profile
    shape: Shape
    offers: Offers
    predictor: Predicts
    measured_on: Card | None

    @classmethod
    def of(cls, profile: Profile, shape: Shape, catalog: Catalog, offers: Offers, held: Held | None) -> _Asked:
        """The question, as far as the model can take it. Raises UsageError where it cannot."""
        check_position_limit(profile, shape)
        return cls(profile, shape, offers, predictor_of(profile, held), profiled_card(profile, catalog))

    @property
    def devices(self) -> Devices:
        """Those of one copy, as the profile is."""
        return Devices(self.profile.workload.tensor_parallel_size)

    def judged(self, card: Card, *, limits: bool = True) -> CardVerdict:
        """One card's verdict."""
        lot_size, same = self.offers.lot_size(card.id), self.measured_on is card
        return judge(self.predictor, card, self.shape, lot_size, same_card=same, limits=limits)

    def document(self, where: str, advice: Sequence[CardAdvice]) -> FitDocument:
        """The answer for those cards."""
        otherwise = self.predictor if isinstance(self.predictor, Otherwise) else None
        predictions = self.predictor.at(self.shape)
        return build_fit_document(self.profile, where, self.shape, predictions, advice, self.offers, otherwise)


def choose_offers(catalog: Catalog, names: Sequence[str], today: datetime.date) -> Offers:
    """The named books, each the name of one in the catalog or a `.toml` file; without any, those used by default.

    Raises UsageError for a book that is not there, UnreadableInputError for a file that is not right.
    """
    from gpufit.catalog.store import load_offer_book

    books = tuple(
        load_offer_book(Path(name), catalog) if name.endswith(".toml") else catalog.offer_book(name)
        for name in dict.fromkeys(map(str, names))
    )
    counts = Counter(book.name for book in books)
    twice = next((name for name, count in counts.items() if count > 1), None)
    if twice is not None:
        raise UsageError(f"two offer books are called {twice}; rename one of the files")
    return Offers(books, today) if books else catalog.offers(today)


def check_position_limit(profile: Profile, shape: Shape) -> None:
    """Raise UsageError for a scenario longer than the model's own positions (no memory would help), or shorter than
    the images of each sequence."""
    model, workload = profile.model, profile.workload
    wrong = beyond_positions(model.name, model.position_limit, model.decodes_apart, shape) or (
        too_short_for_images(model.name, shape.context_tokens, workload.images, workload.image_tokens)
    )
    if wrong is not None:
        raise UsageError(wrong)


def profiled_card(profile: Profile, catalog: Catalog) -> Card | None:
    """The catalog's row for the device the profile was measured on; None for a CPU, no device or an unknown card."""
    device = profile.environment.device
    if device.kind in ("cpu", "none"):
        return None
    return detect_card(catalog, device.name, device.pci_id, device.total_bytes).card


def default_shape(profile: Profile) -> Shape:
    """Where to start when nothing was asked: the largest cell that was measured; of a profile that nothing was run
    for, the largest scenario it was made for."""
    if profile.evidence is Evidence.COMPUTED:
        workload = profile.workload
        return Shape(max(workload.contexts_tokens), workload.new_tokens, max(workload.concurrencies))
    cells = profile.measured_cells
    if not cells:
        raise UsageError("the profile has no measured cell; gpufit profile --resume finishes it")
    largest = max(cells, key=lambda cell: (cell.context_tokens * cell.concurrency, cell.context_tokens))
    return Shape(largest.context_tokens, largest.new_tokens, largest.concurrency)


def compare(a: Profile, b: Profile, where: tuple[str, str], shape: Shape) -> CompareDocument:
    """Explain the difference between two profiles at one shape, part by part.

    Raises UsageError when one of the models cannot take the shape, or one of the profiles cannot answer for it.
    """
    from gpufit.advice.comparison import compare as compare_profiles
    from gpufit.advice.comparison import shape_for
    from gpufit.report.compare_document import build_compare_document

    for profile, name in zip((a, b), where, strict=True):
        try:
            check_position_limit(profile, shape_for(profile, shape))
            predict(profile, shape_for(profile, shape))
        except UsageError as error:
            raise UsageError(f"{name}: {error}") from error
    return build_compare_document(a, b, where, shape, compare_profiles(a, b, shape))


def common_shape(a: Profile, b: Profile) -> Shape:
    """Where to compare two profiles when nothing was asked: the largest cell that both ran, else the largest that both
    can answer for."""
    starts = [default_shape(profile) for profile in (a, b)]
    rules = [profile.evidence is Evidence.COMPUTED for profile in (a, b)]
    if rules[0] != rules[1]:
        return starts[rules.index(False)]  # rules answer for any shape
    ran = [{cell.key: cell for cell in profile.measured_cells} for profile in (a, b)]
    common = [cell for key, cell in ran[0].items() if key in ran[1]]
    if not common and None in (a.memory_model, b.memory_model):
        common = list(ran[0 if a.memory_model is None else 1].values())  # it answers for its own cells alone
    if common:
        largest = max(common, key=lambda cell: (cell.context_tokens * cell.concurrency, cell.context_tokens))
        return Shape(largest.context_tokens, largest.new_tokens, largest.concurrency)
    one, other = starts
    return Shape(
        min(one.context_tokens, other.context_tokens),
        min(one.new_tokens, other.new_tokens) or max(one.new_tokens, other.new_tokens),
        min(one.concurrency, other.concurrency),
    )


def load_named_profile(path: Path) -> Profile:
    """Read a profile, telling a model given in its place apart. Raises UsageError or UnreadableInputError."""
    from gpufit.profile.store import load_profile

    if path.suffix == ".gguf" or is_folder(path):
        raise UsageError(f"{path} is a model, not a profile; measure it first: gpufit profile {path}")
    profile = load_profile(path)
    fault = next(faults(profile), None)
    if fault is not None:
        raise UnreadableInputError(f"{path}: damaged profile: {fault}; restore the file or measure again")
    return profile


def names_model(text: str) -> bool:
    """Whether a text leads to a model rather than to a profile: a folder, a model's file, or a hub id that is no
    file."""
    from gpufit.sources.model_files import hub

    path = Path(text)
    if is_folder(path) or path.suffix in (".gguf", ".safetensors") or path.name == "config.json":
        return True
    nothing_local = not exists(path) and not is_folder(path.parent)
    return path.suffix != ".json" and nothing_local and hub.is_id(text)


def estimate(request: EstimateRequest) -> Profile:
    """The computed profile of a model. Raises UsageError or UnreadableInputError, each in one line."""
    from gpufit.sources.estimate.profile import estimate as compute

    return compute(request)


def start_vllm(request: VllmRequest, catalog: Catalog, offers: Offers, cards: Sequence[Card] = ()) -> FitDocument:
    """Judge a model that vLLM is to serve against cards (all of the catalog's when none are named).

    Raises UsageError or UnreadableInputError, each in one line.
    """
    from gpufit.advice.starts import judge_starts
    from gpufit.report.start_document import build_start_document
    from gpufit.sources.estimate.vllm import read

    served = read(request)
    verdicts = judge_starts(served.question, cards or catalog.cards, offers.lot_size, catalog.cards)
    return build_start_document(served, verdicts, offers)


def save(profile: Profile, path: Path) -> Path | None:
    """Write a profile that was computed; the folder, if it was missing and had to be made. Raises UsageError where
    another file is there."""
    from gpufit.profile.store import save_profile

    if exists(path):
        raise UsageError(f"{path} is there already; name another file, or remove it first")
    return save_profile(profile, path)


def measure(request: ProfileRequest, listener: Listener) -> tuple[Profile, Path]:
    """Measure a model on this machine's device; the finished profile and the file it is in.

    Raises UsageError, UnreadableInputError or MeasurementError, each in one line.
    """
    from gpufit.sources.measure.campaign import Campaign

    campaign = Campaign(request, listener)
    return campaign.run(), campaign.output


def simulate(request: ProfileRequest, listener: Listener) -> tuple[Profile, Path]:
    """Run a model on fake tensors; the finished profile and the file it is in. Nothing but a config is needed.

    Raises UsageError, UnreadableInputError or MeasurementError, each in one line.
    """
    if request.simulation is None:
        raise ValueError("a simulation is asked for by its settings")
    return measure(request, listener)
