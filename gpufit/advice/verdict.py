"""One card, one profile, one shape: does it fit, what binds, how much more would fit."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from gpufit.advice.limits import CEILING, largest_with_room
from gpufit.advice.lots import LotCount, lots_for
from gpufit.catalog.record import Card
from gpufit.memory.adapt import Predicts
from gpufit.memory.carry import Carrier, PhaseNeed, carrier_to
from gpufit.memory.positions import longest_context
from gpufit.memory.terms import Shape
from gpufit.profile.cells import OutOfMemory
from gpufit.profile.evidence import Evidence, weakest
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.record import Profile


class Verdict(enum.StrEnum):
    """The answer for one card."""

    FITS = "fits"
    """The upper bound of the need is inside capacity."""
    TOO_CLOSE = "too_close"
    """Capacity lies inside the interval, or a remark says why nothing is promised: measure on the card first."""
    DOES_NOT_FIT = "does_not_fit"
    """Even the lower bound of the need is above capacity, or no more than this ran out of memory on this card."""
    UNKNOWN = "unknown"
    """The card's usable memory is not known, so nothing is claimed."""


class Arrangement(enum.StrEnum):
    """How the work is spread over cards."""

    SINGLE = "single"
    """All sequences on one card."""
    SHARDED = "sharded"
    """Every layer divided over several cards, which serve all sequences together."""
    REPLICAS = "replicas"
    """Several whole copies, each on one card (or divided over as many as it has ranks), each with its own part of the
    sequences."""
    PIPELINE = "pipeline"
    """Some of the layers on each of several cards, one after the other."""
    SHARDED_PIPELINE = "sharded+pipeline"
    """Both: some of the layers on each of several groups of cards, which share every one of them."""


@dataclass(frozen=True)
class Devices:
    """The devices that one copy of a model is divided over."""

    tensor: int = 1
    """Those that share every layer (tensor parallel)."""
    stages: int = 1
    """Those that the layers are spread over (pipeline parallel)."""

    @property
    def count(self) -> int:
        """All of them."""
        return self.tensor * self.stages


@dataclass(frozen=True)
class Binding:
    """The part that runs out first."""

    phase: Phase
    part: str
    """A field of Parts, or `context_bytes`."""
    part_bytes: int
    short_bytes: int
    """How much is missing at the point estimate; 0 when it is not short."""


@dataclass(frozen=True)
class CardVerdict:
    """Everything said about one card."""

    card: Card
    capacity_bytes: int | None
    verdict: Verdict
    phases: tuple[PhaseNeed, ...]
    binding: Binding
    headroom_bytes: int | None
    """Capacity less the need, at the point estimate; negative when short."""
    headroom_lower_bytes: int | None
    """Capacity less the upper bound of the need."""
    headroom_upper_bytes: int | None
    """Capacity less the lower bound of the need."""
    max_concurrency: int | None
    """Most sequences at this context that surely fit one card; 0 when not even one does."""
    max_context_tokens: int | None
    """Longest context at this concurrency that surely fits one card; 0 when not even one token does."""
    max_context_is_position_limit: bool
    """True when the model's own position limit, and not memory, stops the context."""
    arrangement: Arrangement | None
    """None where no count of whole copies serves the shape."""
    cards_needed: int | None
    lots: LotCount | None
    evidence: Evidence
    remarks: tuple[str, ...]
    """What a buyer should know about this model on this card, in words."""
    same_card: bool = False
    """Whether the profile was measured on this very card."""
    reason: str | None = None
    """Why the verdict is what it is, in words, where the bytes alone would say that it fits."""

    @property
    def worst(self) -> PhaseNeed:
        """The phase that binds: the one with the largest need at the point estimate."""
        return worst_phase(self.phases)

    @property
    def need_lower_bytes(self) -> int:
        """What the card must offer at the least: every phase has to fit, so the largest of their lower bounds."""
        return needed_at_least(self.phases)

    @property
    def need_upper_bytes(self) -> int:
        """What is surely enough: the largest upper bound of any phase, which need not be that of the one that binds."""
        return surely_enough(self.phases)


def worst_phase(phases: Sequence[PhaseNeed]) -> PhaseNeed:
    """The phase with the largest need at the point estimate, then with the largest upper bound."""
    return max(phases, key=lambda need: (need.need_bytes, need.need_upper_bytes))


def needed_at_least(phases: Sequence[PhaseNeed]) -> int:
    """The largest lower bound of any phase."""
    return max(need.need_lower_bytes for need in phases)


def surely_enough(phases: Sequence[PhaseNeed]) -> int:
    """The largest upper bound of any phase."""
    return max(need.need_upper_bytes for need in phases)


def judge(
    predictor: Predicts,
    card: Card,
    shape: Shape,
    lot_size: int,
    same_card: bool = False,
    over: Devices | None = None,
    *,
    limits: bool = True,
) -> CardVerdict:
    """The verdict for one card at one shape; memory of several cards is never pooled.

    `over`: the devices of a copy, of which one is judged; None: as many as the profile is of. `same_card` says that the
    profile was measured on this very card, so that nothing needs replacing, and what ran out of memory there does not
    fit. Without `limits` nothing is searched for: the most sequences and the longest context stay unknown, and so does
    the number of cards wherever it would follow from them.
    """
    over = over or Devices(predictor.profile.workload.tensor_parallel_size)
    ranks = over.tensor
    carrier = carrier_to(card, predictor.profile, same_card, ranks)
    needs = tuple(carrier.need(one) for one in predictor.at(shape))
    worst = worst_phase(needs)
    capacity = card.capacity_bytes
    fitting = _Fitting(predictor, carrier, capacity or 0, shape, limits_of(predictor.profile) if same_card else ())
    verdict = _verdict(needs, capacity, fitting)
    promised = limits and capacity is not None and carrier.unpromised is None
    concurrency = fitting.concurrency() if promised else None
    context, position_bound = fitting.context() if promised else (None, False)
    copies = _copies(verdict, concurrency, shape)
    cards = None if copies is None else -(-copies * over.count // card.devices_per_card)
    return CardVerdict(
        card=card,
        capacity_bytes=capacity,
        verdict=verdict,
        phases=needs,
        binding=_binding(worst, capacity),
        headroom_bytes=None if capacity is None else capacity - worst.need_bytes,
        headroom_lower_bytes=None if capacity is None else capacity - surely_enough(needs),
        headroom_upper_bytes=None if capacity is None else capacity - needed_at_least(needs),
        max_concurrency=concurrency,
        max_context_tokens=context,
        max_context_is_position_limit=position_bound,
        arrangement=arrangement_of(copies, over),
        cards_needed=cards,
        lots=None if cards is None else lots_for(cards, lot_size),
        evidence=weakest(need.evidence for need in needs),
        remarks=(*carrier.remarks, *fitting.limit_remarks()),
        same_card=same_card,
        reason=_reason(verdict, needs, capacity, fitting),
    )


def _reason(verdict: Verdict, phases: Sequence[PhaseNeed], capacity: int | None, fitting: _Fitting) -> str | None:
    if verdict is Verdict.DOES_NOT_FIT and needed_at_least(phases) <= (capacity or 0):
        return next(iter(fitting.limit_remarks()), None)
    if verdict is Verdict.TOO_CLOSE and surely_enough(phases) <= (capacity or 0):
        return fitting.carrier.unpromised
    return None


def limits_of(profile: Profile) -> tuple[Shape, ...]:
    """The shapes that ran out of the device's own memory; a lower ceiling put on the run says nothing of the card."""
    return tuple(
        Shape(cell.context_tokens, cell.new_tokens, cell.concurrency)
        for cell in profile.cells
        if isinstance(cell.outcome, OutOfMemory)
        and (cell.outcome.limit_bytes or profile.environment.device.total_bytes)
        >= profile.environment.device.total_bytes
    )


def _verdict(phases: Sequence[PhaseNeed], capacity: int | None, fitting: _Fitting) -> Verdict:
    if capacity is None:
        return Verdict.UNKNOWN
    if fitting.limits_within(fitting.shape) or needed_at_least(phases) > capacity:
        return Verdict.DOES_NOT_FIT
    surely = surely_enough(phases) <= capacity and fitting.carrier.unpromised is None
    return Verdict.FITS if surely else Verdict.TOO_CLOSE


def arrangement_of(copies: int | None, over: Devices) -> Arrangement | None:
    """How so many copies, each over some devices, are spread; None where no count of them serves."""
    if copies is None:
        return None
    if copies > 1:
        return Arrangement.REPLICAS
    if over.stages > 1:
        return Arrangement.SHARDED_PIPELINE if over.tensor > 1 else Arrangement.PIPELINE
    return Arrangement.SHARDED if over.tensor > 1 else Arrangement.SINGLE


def _binding(worst: PhaseNeed, capacity: int | None) -> Binding:
    sizes = {name: getattr(worst.parts, name) for name in Parts.NAMES} | {"context_bytes": worst.context_bytes}
    part = max(sizes, key=sizes.__getitem__)
    short = 0 if capacity is None else max(worst.need_bytes - capacity, 0)
    return Binding(phase=worst.phase, part=part, part_bytes=sizes[part], short_bytes=short)


def _copies(verdict: Verdict, concurrency: int | None, shape: Shape) -> int | None:
    """Whole copies side by side that serve all sequences; None where not even one sequence is sure of its place."""
    if verdict is Verdict.FITS:
        return 1
    return -(-shape.concurrency // concurrency) if concurrency else None


@dataclass(frozen=True)
class _Fitting:
    """What surely fits one card, and the searches for the largest along one axis."""

    predictor: Predicts
    carrier: Carrier
    capacity_bytes: int
    shape: Shape
    limits: tuple[Shape, ...]
    """What ran out of memory on this very card."""

    def limits_within(self, shape: Shape) -> tuple[Shape, ...]:
        """What ran out of memory on this very card and is no larger than a shape."""
        return tuple(
            limit
            for limit in self.limits
            if limit.context_tokens <= shape.context_tokens and limit.concurrency <= shape.concurrency
        )

    def limit_remarks(self) -> tuple[str, ...]:
        """The first of them for the shape in question, in words."""
        return tuple(
            f"context {limit.context_tokens} x {limit.concurrency} ran out of memory on this very card"
            for limit in self.limits_within(self.shape)[:1]
        )

    def concurrency(self) -> int:
        if self.predictor.profile.memory_model is None:
            return self._measured_concurrency()
        return largest_with_room(lambda n: self._room(Shape(self.shape.context_tokens, self.shape.new_tokens, n)))

    def context(self) -> tuple[int, bool]:
        """(longest context, whether the position limit and not memory stops it)."""
        if self.predictor.profile.memory_model is None:
            return (self.shape.context_tokens if self._fits(self.shape) else 0), False
        model = self.predictor.profile.model
        limit = longest_context(model.position_limit, model.decodes_apart, self.shape.new_tokens)
        room = CEILING if limit is None else limit
        longest = largest_with_room(lambda n: self._room(Shape(n, self.shape.new_tokens, self.shape.concurrency)), room)
        return longest, limit is not None and longest == room

    def _fits(self, shape: Shape) -> bool:
        return self._room(shape) >= 0

    def _room(self, shape: Shape) -> int:
        """Bytes that are surely left; negative where something may not fit."""
        if self.limits_within(shape):
            return -1
        upper = self.carrier.upper_bytes
        return self.capacity_bytes - max(upper(one) for one in self.predictor.at(shape))

    def _measured_concurrency(self) -> int:
        fitting = [
            cell.concurrency
            for cell in self.predictor.profile.measured_cells
            if (cell.context_tokens, cell.new_tokens) == (self.shape.context_tokens, self.shape.new_tokens)
            and self._fits(Shape(cell.context_tokens, cell.new_tokens, cell.concurrency))
        ]
        return max(fitting, default=0)
