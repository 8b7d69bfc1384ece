"""The nearest changes after which one start of vLLM surely serves what is asked on a card: each is that start. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from gpufit.advice.attempts import Asked
from gpufit.advice.changes import ChangeKind, NearestChange
from gpufit.advice.served import Question, Served
from gpufit.advice.verdict import Verdict
from gpufit.catalog.record import Card
from gpufit.errors import UsageError
from gpufit.memory.engines.vllm.quantization import fp8_at_load, runs_fp8_weights, stores_fp8_cache

_FP8_CACHE, _FP8_WEIGHTS = "--kv-cache-dtype fp8", "--quantization fp8"


@dataclass(frozen=True)
class _Alternative:
    """The question with smaller numbers in memory."""

    kind: ChangeKind
    value: str
    flags: str
    taken_on: Callable[[Card], bool]
    """Whether the release runs it on a card."""
    asked: Asked


class StartChanges:
    """What else could be asked, for all cards: `cards` are those among which the next one up is looked for."""

    def __init__(self, question: Question, cards: Iterable[Card]) -> None:
        self._asked = Asked(question)
        self._alternatives = tuple(_alternatives(question))
        known = [card for card in cards if card.capacity_bytes is not None]
        self._ladder = sorted(known, key=lambda card: card.capacity_bytes or 0)
        self._starts: dict[str, Served] = {}

    def of(self, card: Card, served: Served, most: int, longest: int) -> tuple[NearestChange, ...]:
        """What would make one start serve everything on a card of known memory; none where it surely does.

        `most` sequences, and a length of `longest` tokens, are what it surely serves as it is asked.
        """
        return () if served.verdict is Verdict.FITS else tuple(self._of(card, most, longest))

    def _of(self, card: Card, most: int, longest: int) -> Iterator[NearestChange]:
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
        yield from self._smaller(card)
        yield from self._next_card_up(card)

    def _smaller(self, card: Card) -> Iterator[NearestChange]:
        """Cache and weights in fewer bits; both together only where neither does alone."""
        found = False
        for one in self._alternatives:
            if not one.taken_on(card) or (one.kind is ChangeKind.WEIGHTS_AND_KV_CACHE and found):
                continue
            try:
                served = one.asked.on(card).best()
            except UsageError:  # weights that cannot be quantised and divided so
                continue
            for change in _surely(one.kind, one.value, one.flags, served, one.asked.question):
                found = True
                yield change

    def _next_card_up(self, card: Card) -> Iterator[NearestChange]:
        """The card of the least memory beyond this one's on which the start surely serves everything."""
        for larger in self._ladder:
            if (larger.capacity_bytes or 0) <= (card.capacity_bytes or 0):
                continue
            if larger.id not in self._starts:
                self._starts[larger.id] = self._asked.on(larger).best()
            if self._starts[larger.id].verdict is Verdict.FITS:
                yield from _surely(ChangeKind.CARD, larger.id, "", self._starts[larger.id], self._asked.question)
                return


def _surely(kind: ChangeKind, value: str, flags: str, served: Served, asked: Question) -> Iterator[NearestChange]:
    """The change, where its start surely serves everything, with the number of sequences that was chosen for it."""
    if served.verdict is not Verdict.FITS:
        return
    settings = served.start.settings
    if asked.settings.max_num_seqs is None and settings.max_num_seqs is not None:
        flags = f"{flags} --max-num-seqs {settings.max_num_seqs}".strip()
    yield NearestChange(kind, value, served.need(settings.max_model_len).upper_bytes, flags)


def _alternatives(question: Question) -> Iterator[_Alternative]:
    """Cache, weights and both in FP8, of what is in 16 bit as it is asked."""
    rules = question.rules
    cache = weights = None
    if question.settings.kv_cache_dtype == "auto":
        cache = replace(question, settings=replace(question.settings, kv_cache_dtype="fp8"))
        yield _Alternative(
            ChangeKind.KV_CACHE, "fp8", _FP8_CACHE, lambda card: stores_fp8_cache(card, rules), Asked(cache)
        )
    if question.method is None:
        weights = replace(question, method=fp8_at_load(question.dtype), whole_first=True)
        yield _Alternative(ChangeKind.WEIGHTS, "fp8", _FP8_WEIGHTS, runs_fp8_weights, Asked(weights))
    if cache is not None and weights is not None:
        yield _Alternative(
            ChangeKind.WEIGHTS_AND_KV_CACHE,
            "fp8 weights, fp8 KV cache",
            f"{_FP8_WEIGHTS} {_FP8_CACHE}",
            lambda card: runs_fp8_weights(card) and stores_fp8_cache(card, rules),
            Asked(replace(weights, settings=cache.settings)),
        )
