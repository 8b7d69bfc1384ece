"""The nearest changes after which a card does that does not surely do, or fewer of it: each worked out. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from gpufit.advice.arrangements import Division, Plan, divisions_of, fewest_cards
from gpufit.advice.verdict import CardVerdict, Verdict, surely_enough
from gpufit.catalog.record import Card
from gpufit.memory.adapt import FOUR_BITS, FP8_BITS, Changed, Predicts, in_bits, with_kv_bytes, with_weight_bits
from gpufit.memory.carry import carrier_to
from gpufit.memory.terms import Shape
from gpufit.profile.layout import Layout


class ChangeKind(enum.StrEnum):
    """What is changed."""

    CONCURRENCY = "concurrency"
    CONTEXT = "context"
    KV_CACHE = "kv_cache"
    WEIGHTS = "weights"
    WEIGHTS_AND_KV_CACHE = "weights_and_kv_cache"
    CARD = "card"


@dataclass(frozen=True)
class NearestChange:
    """A change after which everything asked for surely fits one card, or fewer of them than without it."""

    kind: ChangeKind
    value: str
    """What it becomes: a number of sequences or tokens, `fp8`, `4-bit`, the id of a card."""
    need_upper_bytes: int | None
    """What is surely enough then, where that was worked out: of the fullest device, where there are several."""
    flags: str = ""
    """The engine's flags for it, where it has some."""
    vendor: str = ""
    """Of a card that is another vendor's: whose it is."""
    plan: Plan | None = None
    """How the fewest cards do then; None: one does."""
    in_place_of: int | None = None
    """With a plan: cards that are paid for without the change; None where no number of them serves."""


@dataclass(frozen=True)
class _Alternative:
    kind: ChangeKind
    value: str
    needs_fp8: bool
    predictor: Predicts
    layout: Layout | None
    """How its weights lie; None: as the profile's."""

    @cached_property
    def divisions(self) -> tuple[Division, ...]:
        """The ways to divide it over cards."""
        return divisions_of(self.predictor, self.layout)

    def runs_on(self, card: Card) -> bool:
        """Whether the card has the formats that it computes in."""
        return not self.needs_fp8 or card.supports("float8_e4m3fn") is not False


class Alternatives:
    """A profile held in fewer bytes: each alternative is worked out once for all cards."""

    def __init__(self, predictor: Predicts) -> None:
        profile = predictor.profile
        self._known: tuple[_Alternative, ...] = ()
        if profile.memory_model is None:
            return
        cache = with_kv_bytes(profile, 1)
        known = []
        if cache is not None:
            known.append(_Alternative(ChangeKind.KV_CACHE, "fp8", False, Changed(predictor, cache), None))
        for name, bits, needs_fp8 in (("fp8", FP8_BITS, True), ("4-bit", FOUR_BITS, False)):
            layout = profile.layout
            weights = None if layout is None else with_weight_bits(profile, layout, bits)
            if layout is None or weights is None:
                continue
            smaller, held = Changed(predictor, weights), in_bits(layout, bits)
            known.append(_Alternative(ChangeKind.WEIGHTS, name, needs_fp8, smaller, held))
            if cache is not None:
                both = Changed(smaller, cache)
                value = f"{name} weights, fp8 KV cache"
                known.append(_Alternative(ChangeKind.WEIGHTS_AND_KV_CACHE, value, needs_fp8, both, held))
        self._known = tuple(known)

    def that_fit(self, verdict: CardVerdict, shape: Shape) -> Iterator[NearestChange]:
        """The first of each kind with which everything surely fits; both together only where neither does alone."""
        card, found = verdict.card, set[ChangeKind]()
        for kind in SMALLER:
            if kind is ChangeKind.WEIGHTS_AND_KV_CACHE and found:
                return
            for one in self._known:
                if one.kind is not kind or not one.runs_on(card):
                    continue
                upper = _upper(one.predictor, card, shape, verdict.same_card)
                if upper <= (card.capacity_bytes or 0):
                    found.add(kind)
                    yield NearestChange(kind, one.value, upper)
                    break

    def with_fewer_cards(
        self, verdict: CardVerdict, shape: Shape, lot_size: int, paid: int | None
    ) -> Iterator[NearestChange]:
        """Those with which fewer cards are paid for than `paid` (None: no number of them serves), each with fewer than
        those before it."""
        fewest = paid
        for one in self._known:
            plan = None
            if one.runs_on(verdict.card):
                plan = fewest_cards(verdict, one.divisions, shape, lot_size, fewest)
            if plan is not None:
                fewest = plan.lots.cards
                yield NearestChange(one.kind, one.value, plan.need_upper_bytes, plan=plan, in_place_of=paid)


def nearest_changes(
    verdict: CardVerdict,
    alternatives: Alternatives,
    shape: Shape,
    verdicts: Sequence[CardVerdict],
    plans: Sequence[Plan] = (),
    lot_size: int = 1,
) -> tuple[NearestChange, ...]:
    """What would make everything asked for fit one of a card, or fewer of it than the first of its `plans` takes: none
    for one that it surely fits, or that promises nothing at all. `verdicts` are those of all cards, of which the next
    one up is chosen."""
    if verdict.verdict is Verdict.FITS or verdict.max_concurrency is None:
        return ()
    found = []
    if verdict.max_concurrency:
        found.append(NearestChange(ChangeKind.CONCURRENCY, str(verdict.max_concurrency), None))
    if verdict.max_context_tokens:
        found.append(NearestChange(ChangeKind.CONTEXT, str(verdict.max_context_tokens), None))
    smaller = list(alternatives.that_fit(verdict, shape))
    paid = plans[0].lots.cards if plans else None
    found += smaller or alternatives.with_fewer_cards(verdict, shape, lot_size, paid)
    fitting = {one.card.id: one for one in verdicts if one.verdict is Verdict.FITS}
    for card in cards_up(verdict.card, (one.card for one in fitting.values())):
        enough = surely_enough(fitting[card.id].phases)
        found.append(NearestChange(ChangeKind.CARD, card.id, enough, vendor=other_vendor(verdict.card, card)))
    return tuple(found)


SMALLER = (ChangeKind.KV_CACHE, ChangeKind.WEIGHTS, ChangeKind.WEIGHTS_AND_KV_CACHE)
"""Changes that hold the same in fewer bytes."""


def cards_up(card: Card, larger: Iterable[Card]) -> list[Card]:
    """Of cards that do, the larger one of the least memory of the same vendor, and behind it another vendor's where
    that has less, or the same vendor has none."""
    ladder = sorted((one for one in larger if _bytes(one) > _bytes(card)), key=_bytes)
    same = next((one for one in ladder if one.vendor == card.vendor), None)
    if same is None:
        return ladder[:1]
    return [same, *(one for one in ladder[:1] if _bytes(one) < _bytes(same))]


def other_vendor(card: Card, other: Card) -> str:
    """Whose another card is, where it is another vendor's."""
    return "" if other.vendor == card.vendor else other.vendor


def _bytes(card: Card) -> int:
    return card.capacity_bytes or 0


def _upper(predictor: Predicts, card: Card, shape: Shape, same_card: bool) -> int:
    carrier = carrier_to(card, predictor.profile, same_card, predictor.profile.workload.tensor_parallel_size)
    return max(carrier.upper_bytes(one) for one in predictor.at(shape))
