"""One card and one model served by vLLM: does it start, does it serve what is asked, and with how many cards. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from gpufit.advice.attempts import Attempt, LoadedOnce
from gpufit.advice.lots import LotCount, lots_for
from gpufit.advice.served import Question, Served
from gpufit.advice.verdict import Arrangement, Devices, Verdict, arrangement_of
from gpufit.catalog.record import Card
from gpufit.errors import UsageError
from gpufit.memory.carry import (
    LOADED_KERNELS_BYTES,
    LOADED_KERNELS_UPPER_BYTES,
    card_context_bytes,
    card_context_upper_bytes,
)
from gpufit.memory.engines.base import Amount, exactly
from gpufit.memory.engines.vllm.layers import kinds_of
from gpufit.memory.engines.vllm.settings import Device, device_of
from gpufit.memory.engines.vllm.versions import Rules
from gpufit.memory.engines.vllm.weights import refuse_indivisible

_OLD_DEFINITION = (0, 6, 5)
"""Before this release the part `non_torch` holds the driver context (`engines.vllm.overheads`)."""
_MORE_RANKS = (2, 4, 8)
"""Ranks that are tried where one card is not enough: as many as servers have cards."""


@dataclass(frozen=True)
class StartVerdict:
    """Everything said about one card, in bytes a rank."""

    card: Card
    served: Served
    """On a card whose memory nobody has reported, that of the same size as its name says: for its parts alone."""
    known: bool
    """Whether the card's memory is known, so that anything is claimed."""
    max_concurrency: int | None
    """Sequences of the longest length that one start surely serves at once."""
    max_context_tokens: int | None
    """The largest `--max-model-len` that surely starts and serves as many sequences; 0 where none does."""
    max_context_is_position_limit: bool
    arrangement: Arrangement | None
    cards_needed: int | None
    """For all copies, each of as many cards as there are ranks."""
    lots: LotCount | None
    remarks: tuple[str, ...]

    @property
    def verdict(self) -> Verdict:
        """The answer for the card, as many of it as there are ranks."""
        return self.served.verdict if self.known else Verdict.UNKNOWN

    def kv_bytes(self, tokens: int) -> int:
        """What the sequences asked for take of the pool at a length."""
        return self.served.asked * self.served.start.pool.sequence_bytes(tokens, self.served.start.batch.tokens)

    def allocated(self, tokens: int) -> Amount:
        """Weights, activation and the KV blocks of the sequences asked for."""
        return self.served.resident + exactly(self.kv_bytes(tokens))

    def need(self, tokens: int) -> Amount:
        """What a card must offer for them; vLLM takes all of its share, whatever is asked."""
        return self.served.context + self.served.other + self.allocated(tokens)


def judge_starts(question: Question, cards: Iterable[Card], lot_size: Callable[[str], int]) -> tuple[StartVerdict, ...]:
    """The verdict for each card; `lot_size` tells how many of a card, by its id, are one lot.

    Raises UsageError where vLLM cannot divide the model, or no rule covers it.
    """
    loaded = LoadedOnce(question)
    wider = tuple(_wider(question)) if question.spread else ()
    return tuple(_judge(question, card, lot_size(card.id), loaded, wider) for card in cards)


def _wider(question: Question) -> Iterator[tuple[Question, LoadedOnce]]:
    """The question over more ranks, as far as vLLM can divide the model so."""
    for ranks in _MORE_RANKS:
        settings = replace(question.settings, ranks=replace(question.settings.ranks, tensor=ranks))
        asked = replace(question, settings=settings)
        try:
            kinds_of(asked.architecture, settings.ranks)
            refuse_indivisible(asked.architecture, settings.ranks)
        except UsageError:  # what cannot be divided so is not suggested
            continue
        yield asked, LoadedOnce(asked)


def _spread_remark(card: Card, device: Device, wider: Iterable[tuple[Question, LoadedOnce]]) -> Iterator[str]:
    """With how many ranks it surely serves what is asked, where one is not enough."""
    for question, loaded in wider:
        attempt = Attempt(question, device, loaded.on(device), _context(card, question.rules))
        if attempt.best().verdict is Verdict.FITS:
            ranks = question.settings.ranks.tensor
            cards = -(-ranks // card.devices_per_card)
            yield f"fits on {cards} of them with --tp {ranks}" if cards > 1 else f"fits with --tp {ranks}"
            return


def _judge(
    question: Question,
    card: Card,
    lot_size: int,
    loaded: LoadedOnce,
    wider: Iterable[tuple[Question, LoadedOnce]],
) -> StartVerdict:
    known = card.capacity_bytes is not None
    device = device_of(card, card.capacity_bytes or card.memory.nominal_gb * 10**9)
    attempt = Attempt(question, device, loaded.on(device), _context(card, question.rules))
    served = attempt.best()
    longest, bound = attempt.longest(served) if known else (None, False)
    copies = _copies(served) if known else None
    ranks = question.settings.ranks.tensor
    needed = None if copies is None else -(-copies * ranks // card.devices_per_card)
    remarks = list(attempt.remarks(served)) if known else []
    if known and served.verdict is Verdict.DOES_NOT_FIT:
        remarks += _spread_remark(card, device, wider)
    return StartVerdict(
        card=card,
        served=served,
        known=known,
        max_concurrency=attempt.most(served) if known else None,
        max_context_tokens=longest,
        max_context_is_position_limit=bound,
        arrangement=arrangement_of(copies, Devices(ranks)),
        cards_needed=needed,
        lots=None if needed is None else lots_for(needed, lot_size),
        remarks=tuple(remarks),
    )


def _copies(served: Served) -> int | None:
    """Whole starts side by side that serve all sequences; None where not even one sequence is sure of its place."""
    each = math.floor(served.lower)
    return -(-served.asked // each) if each else None


def _context(card: Card, rules: Rules) -> Amount:
    if not rules.version.at_least(*_OLD_DEFINITION):
        return Amount(0, 0, 0)
    least = card_context_bytes(card) + LOADED_KERNELS_BYTES
    return Amount(least, least, card_context_upper_bytes(card) + LOADED_KERNELS_UPPER_BYTES)
