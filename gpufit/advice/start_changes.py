"""The nearest changes after which a start of vLLM surely serves what is asked, on one card or on fewer. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from gpufit.advice.attempts import Asked
from gpufit.advice.changes import SMALLER, ChangeKind, NearestChange, cards_up, other_vendor
from gpufit.advice.served import Question, Served
from gpufit.advice.start_plans import StartPlan, fewest_start, wider
from gpufit.advice.verdict import Verdict
from gpufit.catalog.record import Card
from gpufit.errors import UsageError
from gpufit.memory.engines.vllm.quantization import (
    awq_beforehand,
    fp8_at_load,
    runs_awq_weights,
    runs_fp8_weights,
    stores_fp8_cache,
)

_FP8_CACHE, _FP8_WEIGHTS = "--kv-cache-dtype fp8", "--quantization fp8"

_BEFOREHAND_FP8, _BEFOREHAND_AWQ = "fp8 checkpoint", "4-bit checkpoint"
"""What was quantised before it is loaded: FP8 with a scale a matrix, AWQ in groups of 128."""


@dataclass(frozen=True)
class _Alternative:
    """The question with smaller numbers in memory."""

    kind: ChangeKind
    value: str
    flags: str
    taken_on: Callable[[Card], bool]
    """Whether the release runs it on a card."""
    asked: Asked

    @cached_property
    def wider(self) -> tuple[Asked, ...]:
        """The same over more ranks."""
        return wider(self.asked)


class StartChanges:
    """What else could be asked, for all cards: `cards` are those among which the next one up is looked for."""

    def __init__(self, asked: Asked, cards: Iterable[Card]) -> None:
        self._asked = asked
        self._alternatives = tuple(_alternatives(asked))
        self._cards = [card for card in cards if card.capacity_bytes is not None]
        self._starts: dict[str, Served] = {}

    def of(
        self, card: Card, served: Served, most: int, longest: int, plans: Sequence[StartPlan] = (), lot_size: int = 1
    ) -> tuple[NearestChange, ...]:
        """What would make one start serve everything on a card of known memory, or fewer cards than the first of its
        `plans` takes; none where one surely does.

        `most` sequences, and a length of `longest` tokens, are what it surely serves as it is asked.
        """
        if served.verdict is Verdict.FITS:
            return ()
        paid = plans[0].plan.lots.cards if plans else None
        smaller = list(self._smaller(card)) or self._with_fewer_cards(card, lot_size, paid)
        return (*self._less(card, most, longest), *smaller, *self._cards_up(card))

    def _less(self, card: Card, most: int, longest: int) -> Iterator[NearestChange]:
        question = self._asked.question
        attempt = self._asked.on(card)
        if most:
            fewer = replace(attempt, question=replace(question, concurrency=most)).best()
            yield from _surely(ChangeKind.CONCURRENCY, str(most), "", fewer, question)
        if longest:
            settings = replace(question.settings, max_model_len=longest)
            shorter = replace(attempt, question=replace(question, settings=settings)).best()
            flags = f"--max-model-len {longest}"
            yield from _surely(ChangeKind.CONTEXT, str(longest), flags, shorter, question)

    def _smaller(self, card: Card) -> Iterator[NearestChange]:
        """Cache and weights in fewer bits, the first of each kind; both together only where neither does alone."""
        found: set[ChangeKind] = set()
        for one in sorted(self._alternatives, key=lambda one: SMALLER.index(one.kind)):
            both = one.kind is ChangeKind.WEIGHTS_AND_KV_CACHE
            if one.kind in found or (both and found) or not one.taken_on(card):
                continue
            try:
                served = one.asked.on(card).best()
            except UsageError:  # weights that cannot be quantised and divided so
                continue
            for change in _surely(one.kind, one.value, one.flags, served, one.asked.question):
                found.add(one.kind)
                yield change

    def _with_fewer_cards(self, card: Card, lot_size: int, paid: int | None) -> Iterator[NearestChange]:
        """Those with which fewer cards are paid for, each with fewer than those before it."""
        fewest = paid
        for one in self._alternatives:
            if not one.taken_on(card):
                continue
            found = fewest_start(card, one.asked, one.wider, lot_size, fewest)
            if found is None:
                continue
            fewest = found.plan.lots.cards
            flags = _with_sequences(one.flags, found.served, one.asked.question)
            upper = found.plan.need_upper_bytes
            yield NearestChange(one.kind, one.value, upper, flags, plan=found.plan, in_place_of=paid)

    def _cards_up(self, card: Card) -> Iterator[NearestChange]:
        """The cards of the least memory beyond this one's on which the start surely serves everything."""
        question = self._asked.question
        for larger in cards_up(card, (one for one in self._cards if self._serves(one))):
            vendor = other_vendor(card, larger)
            for change in _surely(ChangeKind.CARD, larger.id, "", self._starts[larger.id], question):
                yield replace(change, vendor=vendor)

    def _serves(self, card: Card) -> bool:
        if card.id not in self._starts:
            self._starts[card.id] = self._asked.on(card).best()
        return self._starts[card.id].verdict is Verdict.FITS


def _surely(kind: ChangeKind, value: str, flags: str, served: Served, asked: Question) -> Iterator[NearestChange]:
    """The change, where its start surely serves everything, with the number of sequences that was chosen for it."""
    if served.verdict is Verdict.FITS:
        upper = served.need(served.start.settings.max_model_len).upper_bytes
        yield NearestChange(kind, value, upper, _with_sequences(flags, served, asked))


def _with_sequences(flags: str, served: Served, asked: Question) -> str:
    chosen = served.start.settings.max_num_seqs
    if asked.settings.max_num_seqs is None and chosen is not None:
        return f"{flags} --max-num-seqs {chosen}".strip()
    return flags


def _alternatives(asked: Asked) -> Iterator[_Alternative]:
    """Cache and weights in FP8, weights in 4 bits, and both, of what is in 16 bit as it is asked: what takes the least
    from the model's answers first. Weights that vLLM quantises itself come before a checkpoint that is quantised
    beforehand, which loads without a copy in 16 bit."""
    question = asked.question
    cached = replace(question.settings, kv_cache_dtype="fp8")
    caches = question.settings.kv_cache_dtype == "auto"

    def stores(card: Card) -> bool:
        return stores_fp8_cache(card, question.rules)

    def beside_cache(one: _Alternative) -> _Alternative:
        weights = f"{one.value} weights" if one.flags else one.value
        return _Alternative(
            ChangeKind.WEIGHTS_AND_KV_CACHE,
            f"{weights}, fp8 KV cache",
            f"{one.flags} {_FP8_CACHE}".strip(),
            lambda card: one.taken_on(card) and stores(card),
            one.asked.with_settings(cached),
        )

    if caches:
        yield _Alternative(ChangeKind.KV_CACHE, "fp8", _FP8_CACHE, stores, asked.with_settings(cached))
    for weights in (_fp8(question), _four_bits(question)) if question.method is None else ():
        yield from weights
        yield from map(beside_cache, weights) if caches else ()


def _fp8(question: Question) -> tuple[_Alternative, ...]:
    fp8 = replace(question, method=fp8_at_load(question.dtype))
    at_load = Asked(replace(fp8, whole_first=True))
    return (
        _Alternative(ChangeKind.WEIGHTS, "fp8", _FP8_WEIGHTS, runs_fp8_weights, at_load),
        _Alternative(ChangeKind.WEIGHTS, _BEFOREHAND_FP8, "", runs_fp8_weights, Asked(fp8)),
    )


def _four_bits(question: Question) -> tuple[_Alternative, ...]:
    awq = Asked(replace(question, method=awq_beforehand(question.dtype)))
    return (_Alternative(ChangeKind.WEIGHTS, _BEFOREHAND_AWQ, "", runs_awq_weights, awq),)
