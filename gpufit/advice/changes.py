"""The nearest changes that would make a model fit a card that it does not surely fit: each worked out. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpufit.advice.verdict import CardVerdict, Verdict, surely_enough
from gpufit.catalog.record import Card
from gpufit.memory.adapt import FOUR_BITS, FP8_BITS, Changed, Predicts, with_kv_bytes, with_weight_bits
from gpufit.memory.carry import carrier_to
from gpufit.memory.terms import Shape


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
    """A change after which everything asked for surely fits one card."""

    kind: ChangeKind
    value: str
    """What it becomes: a number of sequences or tokens, `fp8`, `4-bit`, the id of a card."""
    need_upper_bytes: int | None
    """What is surely enough then, where that was worked out."""
    flags: str = ""
    """The engine's flags for it, where it has some."""


@dataclass(frozen=True)
class _Alternative:
    kind: ChangeKind
    value: str
    needs_fp8: bool
    predictor: Predicts


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
            known.append(_Alternative(ChangeKind.KV_CACHE, "fp8", False, Changed(predictor, cache)))
        for name, bits, needs_fp8 in (("fp8", FP8_BITS, True), ("4-bit", FOUR_BITS, False)):
            weights = None if profile.layout is None else with_weight_bits(profile, profile.layout, bits)
            if weights is None:
                continue
            smaller = Changed(predictor, weights)
            known.append(_Alternative(ChangeKind.WEIGHTS, name, needs_fp8, smaller))
            if cache is not None:
                both = Changed(smaller, cache)
                value = f"{name} weights, fp8 KV cache"
                known.append(_Alternative(ChangeKind.WEIGHTS_AND_KV_CACHE, value, needs_fp8, both))
        self._known = tuple(known)

    def that_fit(self, verdict: CardVerdict, shape: Shape) -> Iterator[NearestChange]:
        """The first of each kind with which everything surely fits; both together only where neither does alone."""
        card, found = verdict.card, set[ChangeKind]()
        for kind in (ChangeKind.KV_CACHE, ChangeKind.WEIGHTS, ChangeKind.WEIGHTS_AND_KV_CACHE):
            if kind is ChangeKind.WEIGHTS_AND_KV_CACHE and found:
                return
            for one in self._known:
                if one.kind is not kind or (one.needs_fp8 and card.supports("float8_e4m3fn") is False):
                    continue
                upper = _upper(one.predictor, card, shape, verdict.same_card)
                if upper <= (card.capacity_bytes or 0):
                    found.add(kind)
                    yield NearestChange(kind, one.value, upper)
                    break


def nearest_changes(
    verdict: CardVerdict, alternatives: Alternatives, shape: Shape, verdicts: Sequence[CardVerdict]
) -> tuple[NearestChange, ...]:
    """What would make everything asked for fit one of a card: none for one that it surely fits, or that promises
    nothing at all. `verdicts` are those of all cards, of which the next one up is chosen."""
    if verdict.verdict is Verdict.FITS or verdict.max_concurrency is None:
        return ()
    found = []
    if verdict.max_concurrency:
        found.append(NearestChange(ChangeKind.CONCURRENCY, str(verdict.max_concurrency), None))
    if verdict.max_context_tokens:
        found.append(NearestChange(ChangeKind.CONTEXT, str(verdict.max_context_tokens), None))
    found += alternatives.that_fit(verdict, shape)
    card = next_card_up(verdict, verdicts)
    if card is not None:
        found.append(NearestChange(ChangeKind.CARD, card.card.id, surely_enough(card.phases)))
    return tuple(found)


def next_card_up(verdict: CardVerdict, verdicts: Sequence[CardVerdict]) -> CardVerdict | None:
    """The card of the least memory beyond this one's that everything surely fits."""
    larger = [
        one
        for one in verdicts
        if one.verdict is Verdict.FITS and (one.capacity_bytes or 0) > (verdict.capacity_bytes or 0)
    ]
    return min(larger, key=lambda one: one.capacity_bytes or 0, default=None)


def _upper(predictor: Predicts, card: Card, shape: Shape, same_card: bool) -> int:
    carrier = carrier_to(card, predictor.profile, same_card, predictor.profile.workload.tensor_parallel_size)
    return max(carrier.upper_bytes(one) for one in predictor.at(shape))
