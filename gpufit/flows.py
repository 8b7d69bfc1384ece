"""The use cases that the command line and the TUI both call."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.advice.arrangements import Division, divisions_of, no_plan, plans_for
from gpufit.advice.changes import Alternatives, nearest_changes
from gpufit.advice.verdict import CardVerdict, Devices, Verdict, judge
from gpufit.catalog.detect import detect_card
from gpufit.catalog.offers import Offers
from gpufit.catalog.record import Card, Catalog
from gpufit.errors import UnreadableInputError, UsageError
from gpufit.memory.adapt import Predicts
from gpufit.memory.check import faults
from gpufit.memory.otherwise import Otherwise, predictor_of
from gpufit.memory.positions import beyond_positions, too_short_for_images
from gpufit.memory.predict import Predictor, predict
from gpufit.memory.terms import Shape
from gpufit.profile.record import Evidence, Measured, Profile
from gpufit.report.document import CardAdvice, CardRow, FitDocument, build_fit_document

if TYPE_CHECKING:
    from gpufit.advice.plan import Ask
    from gpufit.advice.throughput import NoThroughput, Throughput
    from gpufit.catalog.offers import OfferBook
    from gpufit.memory.held import Held
    from gpufit.report.check_document import CheckDocument
    from gpufit.report.compare_document import CompareDocument
    from gpufit.report.order_document import OrderDocument
    from gpufit.report.order_judged import Judged
    from gpufit.report.plans import ArrangementFigures
    from gpufit.report.verify_document import VerifyDocument
    from gpufit.sources.estimate.request import EstimateRequest
    from gpufit.sources.estimate.vllm import VllmRequest
    from gpufit.sources.measure.campaign import Listener, ProfileRequest
    from gpufit.sources.measure.checking import CheckListener, CheckRequest


@dataclass(frozen=True)
class VerifyAsk:
    """What is to be verified, and how."""

    shape: Shape
    model: str | None = None
    """Where the model is; None: where the profile says."""
    as_card: Card | None = None
    """The card whose memory is the limit of the run; None: no other than the profile's own."""
    device: str = "auto"
    trust_remote_code: bool = False
    cell_seconds: int = 900


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

    if path.suffix == ".gguf" or _is_folder(path):
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
    if _is_folder(path) or path.suffix in (".gguf", ".safetensors") or path.name == "config.json":
        return True
    nothing_local = not path.exists() and not path.parent.is_dir()
    return path.suffix != ".json" and nothing_local and hub.is_id(text)


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name too long, a folder that may not be entered: reading it says so in words
        return False


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


def order(
    profile: Profile,
    where: str,
    shape: Shape,
    catalog: Catalog,
    offers: Offers,
    card: Card,
    ask: Ask,
    *,
    saved: bool = True,
) -> OrderDocument:
    """Plan an order of one card for a scenario and a volume of work, from one seller.

    `saved` says that `where` is the file of the profile, and not a model that was estimated for this order. Raises
    UsageError when the model cannot take the shape, the profile cannot answer for it, no term follows, or several
    sellers have a price for the card.
    """
    from gpufit.advice.throughput import NoThroughput, throughput_on
    from gpufit.report.order_judged import Judged

    offers = _one_seller(offers, card)
    # Without a memory model only measured cells answer: of named workers what one of them runs has to be one.
    share = replace(shape, concurrency=ask.share_of(shape.concurrency))
    whole = shape if profile.memory_model is not None else share
    asked = judge_cards(profile, where, whole, catalog, offers, (card,))
    shared = asked if share == whole else judge_cards(profile, where, share, catalog, offers, (card,))
    row, best = shared.cards[0], _plan_of_a_worker(asked, shared, ask)

    def judged(worker: FitDocument, over: Devices) -> Judged:
        return Judged(asked, worker, card, over, profile, shape.concurrency, saved)

    if best is not None and (over := _devices_of(best)).count > profile.workload.tensor_parallel_size:
        one = replace(shape, concurrency=best.sequences_per_copy)
        worker = _judge_divided(profile, where, one, offers, card, over)
        unknown = NoThroughput("no throughput: the model divided over several cards was not measured")
        copies = -(-shape.concurrency // one.concurrency)
        return _planned(judged(worker, over), copies, unknown, ask, offers.books[0])
    needed = _copies(asked.cards[0], shape.concurrency)
    worker, one = shared, share
    if needed is not None and -(-shape.concurrency // needed) < share.concurrency:
        # Without a memory model the largest measured cell that fits is a worker's, too.
        most = row.max_concurrency if profile.memory_model is None else None
        one = replace(shape, concurrency=most or -(-shape.concurrency // needed))
        worker = judge_cards(profile, where, one, catalog, offers, (card,))
    rate = throughput_on(profile, card, one)
    return _planned(judged(worker, Devices(profile.workload.tensor_parallel_size)), needed, rate, ask, offers.books[0])


def order_start(request: VllmRequest, catalog: Catalog, offers: Offers, card: Card, ask: Ask) -> OrderDocument:
    """The same for a model that vLLM is to serve. Raises UsageError or UnreadableInputError, each in one line."""
    from gpufit.advice.throughput import NoThroughput
    from gpufit.report.order_judged import Judged

    offers = _one_seller(offers, card)
    asked = start_vllm(request, catalog, offers, (card,))
    concurrency = asked.scenario.concurrency
    share = ask.share_of(concurrency)
    shared = asked
    if share < concurrency:
        shared = start_vllm(replace(request, concurrency=share), catalog, offers, (card,))
    best = _plan_of_a_worker(asked, shared, ask)
    over = Devices(request.tensor_parallel or 1, request.pipeline_parallel or 1)
    worker, copies = shared, _copies(asked.cards[0], concurrency)
    if best is not None:
        copies, over = -(-concurrency // best.sequences_per_copy), _devices_of(best)
        one = replace(
            request,
            concurrency=best.sequences_per_copy,
            tensor_parallel=over.tensor,
            pipeline_parallel=over.stages,
        )
        worker = start_vllm(one, catalog, offers, (card,))
    rate = NoThroughput("no throughput: a start by rules was not measured")
    judged = Judged(asked, worker, card, over, None, concurrency, saved=False)
    return _planned(judged, copies, rate, ask, offers.books[0])


def _plan_of_a_worker(asked: FitDocument, shared: FitDocument, ask: Ask) -> ArrangementFigures | None:
    """The first arrangement for what is shared out; where the model has to be divided and workers were named, the first
    that is a single copy, as each of them is."""
    plans, of_all = shared.cards[0].arrangements, asked.cards[0].arrangements
    if ask.workers and of_all and _devices_of(of_all[0]).count > 1:
        plans = (*(one for one in plans if one.copies == 1), *plans)
    return plans[0] if plans else None


def _devices_of(plan: ArrangementFigures) -> Devices:
    return Devices(plan.tensor_parallel_size, plan.pipeline_parallel_size)


def _judge_divided(
    profile: Profile, where: str, shape: Shape, offers: Offers, card: Card, over: Devices
) -> FitDocument:
    """The fullest device of one copy that is divided over several, at what that copy serves."""
    predictor = next(one.predictor for one in divisions_of(Predictor(profile)) if one.over == over)
    verdict = judge(predictor, card, shape, offers.lot_size(card.id), over=over)
    plans = plans_for(verdict, [Division(over, predictor)], shape, offers.lot_size(card.id))
    return build_fit_document(profile, where, shape, predictor.at(shape), [CardAdvice(verdict, plans)], offers)


def _one_seller(offers: Offers, card: Card) -> Offers:
    """The offers of the one book that prices a card, or of the first where none does: an order goes to one seller."""
    books = [book for book, _ in offers.of(card.id)]
    if len(books) > 1:
        *others, last = [book.name for book in books]
        names = f"{', '.join(others)} and {last}{' both' if len(books) == 2 else ''}"
        raise UsageError(f"{names} have a price for {card.id}, and an order goes to one seller: name it (--offers)")
    return replace(offers, books=tuple(books))


def _copies(row: CardRow, concurrency: int) -> int | None:
    """Whole copies that serve all sequences together: one where that is merely not sure, to find out with; None where
    none of the plans tried does."""
    if row.verdict is Verdict.FITS:
        return 1
    if row.cards_needed is not None and row.max_concurrency:
        return -(-concurrency // row.max_concurrency)
    return None if row.verdict is Verdict.DOES_NOT_FIT else 1


def _planned(
    judged: Judged, copies: int | None, rate: Throughput | NoThroughput, ask: Ask, book: OfferBook
) -> OrderDocument:
    from gpufit.advice.plan import Site, make_plan
    from gpufit.report.order_builder import build_order_document

    plan = None
    if copies is not None:
        card = judged.card
        each = judged.row.max_concurrency
        site = Site(copies, judged.over.count, card.devices_per_card, book.lot_size(card.id), each)
        plan = make_plan(ask, site, rate)
    return build_order_document(judged, plan, ask, book)


def save(profile: Profile, path: Path) -> Path | None:
    """Write a profile that was computed; the folder, if it was missing and had to be made. Raises UsageError where
    another file is there."""
    from gpufit.profile.store import save_profile

    if path.exists():
        raise UsageError(f"{path} is there already; name another file, or remove it first")
    return save_profile(profile, path)


def measure(request: ProfileRequest, listener: Listener) -> tuple[Profile, Path]:
    """Measure a model on this machine's device; the finished profile and the file it is in.

    Raises UsageError, UnreadableInputError or MeasurementError, each in one line.
    """
    from gpufit.sources.measure.campaign import Campaign

    campaign = Campaign(request, listener)
    return campaign.run(), campaign.output


def check(request: CheckRequest, listener: CheckListener) -> CheckDocument:
    """The smallest run of a model through the whole chain.

    Raises UsageError for a request that cannot be met, UnreadableInputError for a model that cannot be read or a folder
    that cannot be written; what fails afterwards is a step's outcome.
    """
    from gpufit.report.check_document import build_check_document
    from gpufit.sources.measure.checking import check as take_steps

    return build_check_document(take_steps(request, listener))


def verify(profile: Profile, where: str, ask: VerifyAsk, catalog: Catalog, listener: Listener) -> VerifyDocument:
    """Repeat a cell of a profile on this machine's device, and hold what it takes against the prediction.

    Raises UsageError, UnreadableInputError or MeasurementError, each in one line, where it cannot be run.
    """
    from gpufit.advice.verification import Repeat, ceiling_of, predictions, what_differs
    from gpufit.advice.verification import verify as hold_against
    from gpufit.memory.carry import carrier_to
    from gpufit.profile.record import OutOfMemory
    from gpufit.report.verify_document import Held, build_verify_document
    from gpufit.sources.identity import model_of
    from gpufit.sources.measure.again import RepeatRequest, check_repeatable, repeat

    check_repeatable(profile)
    check_position_limit(profile, ask.shape)
    predictions(profile, ask.shape)  # nothing is run that there is no prediction for
    source, revision = model_of(profile, where, ask.model)
    ceiling = None
    if ask.as_card is not None:
        ceiling = ceiling_of(ask.as_card, profile, profiled_card(profile, catalog) is ask.as_card)
    again = RepeatRequest(
        shape=ask.shape,
        model=source,
        revision=revision,
        device=ask.device,
        trust_remote_code=ask.trust_remote_code,
        memory_limit_bytes=profile.workload.memory_limit_bytes if ceiling is None else ceiling.limit_bytes,
        limit_name="the profile's memory limit" if ceiling is None else f"--as {ceiling.card}: a memory limit of",
        cell_seconds=ask.cell_seconds,
    )
    found = repeat(profile, again, listener)
    ran = found if isinstance(found, Profile) else None
    outcome = found.cells[0].outcome if isinstance(found, Profile) else found
    ended = outcome if isinstance(outcome, OutOfMemory) else None
    phases = outcome.phases if isinstance(outcome, Measured) else ()
    here = Repeat(None, (), ended) if ran is None else Repeat(ran.environment.device, (ran.load, *phases), ended)
    card = None if ran is None else profiled_card(ran, catalog)
    carrier = None if card is None else carrier_to(card, profile, profiled_card(profile, catalog) is card)
    limit = again.memory_limit_bytes
    verification = hold_against(profile, ask.shape, here, limit, carrier)
    differences = () if ran is None else what_differs(profile, ran)
    return build_verify_document(
        Held(profile, where, ask.shape, source, verification, ran, ended, differences, ceiling, limit)
    )


def simulate(request: ProfileRequest, listener: Listener) -> tuple[Profile, Path]:
    """Run a model on fake tensors; the finished profile and the file it is in. Nothing but a config is needed.

    Raises UsageError, UnreadableInputError or MeasurementError, each in one line.
    """
    if request.simulation is None:
        raise ValueError("a simulation is asked for by its settings")
    return measure(request, listener)
