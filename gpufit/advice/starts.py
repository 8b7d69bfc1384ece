"""One card and one model served by vLLM: does it start, does it serve what is asked, and with how many cards. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from gpufit.advice.limits import CEILING, largest_that_fits
from gpufit.advice.lots import LotCount, lots_for
from gpufit.advice.served import Question, Served
from gpufit.advice.verdict import Arrangement, Verdict
from gpufit.catalog.record import Card
from gpufit.memory.carry import (
    LOADED_KERNELS_BYTES,
    LOADED_KERNELS_UPPER_BYTES,
    card_context_bytes,
    card_context_upper_bytes,
)
from gpufit.memory.engines.base import Amount, Part, exactly
from gpufit.memory.engines.vllm.dtypes import lacks_bfloat16
from gpufit.memory.engines.vllm.settings import Device, Settings, device_of
from gpufit.memory.engines.vllm.start import start, weights_part
from gpufit.memory.engines.vllm.versions import Rules
from gpufit.units import format_size

_OLD_DEFINITION = (0, 6, 5)
"""Before this release the part `non_torch` holds the driver context (`engines.vllm.overheads`)."""


@dataclass(frozen=True)
class StartVerdict:
    """Everything said about one card, in bytes a rank."""

    card: Card
    served: Served
    """On a card whose memory nobody has reported, that of the same size as its name says: for its parts alone."""
    known: bool
    """Whether the card's memory is known, so that anything is claimed."""
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

    @property
    def max_concurrency(self) -> int | None:
        """Sequences of the longest length that surely run at once."""
        return math.floor(self.served.lower) if self.known else None

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
    weights = _Weights(question)
    return tuple(_judge(question, card, lot_size(card.id), weights) for card in cards)


def _judge(question: Question, card: Card, lot_size: int, weights: _Weights) -> StartVerdict:
    known = card.capacity_bytes is not None
    device = device_of(card, card.capacity_bytes or card.memory.nominal_gb * 10**9)
    attempt = _Attempt(question, device, weights.on(device), _context(card, question.rules))
    served = attempt.best()
    longest, bound = attempt.longest(served) if known else (None, False)
    copies = _copies(served) if known else None
    ranks = question.settings.ranks.tensor
    needed = None if copies is None else -(-copies * ranks // card.devices_per_card)
    return StartVerdict(
        card=card,
        served=served,
        known=known,
        max_context_tokens=longest,
        max_context_is_position_limit=bound,
        arrangement=_arrangement(copies, ranks),
        cards_needed=needed,
        lots=None if needed is None else lots_for(needed, lot_size),
        remarks=tuple(attempt.remarks(served)) if known else (),
    )


class _Weights:
    """The weights part of a question, worked out once for all cards on which it is the same."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._known: dict[tuple[object, bool], Part] = {}

    def on(self, device: Device) -> Part:
        """The weights on one such card."""
        asked = self._question
        precision = asked.precision(device)
        key = (precision.steps, device.compute_capability is None)
        if key not in self._known:
            self._known[key] = weights_part(asked.architecture, precision, device, asked.settings)
        return self._known[key]


@dataclass(frozen=True)
class _Attempt:
    """One question on one card, with what is the same for every length and number of sequences."""

    question: Question
    device: Device
    loaded: Part
    """The weights."""
    context: Amount

    def with_settings(self, settings: Settings) -> Served:
        """The start with these flags."""
        asked = self.question
        precision = asked.precision(self.device)
        one = start(asked.architecture, precision, self.device, settings, asked.rules, asked.name, loaded=self.loaded)
        return Served(one, asked.concurrency, self.context)

    def best(self) -> Served:
        """The start with vLLM's default number of sequences; where more are asked for, with as many, if that serves
        them."""
        asked = self.question
        default = self.with_settings(asked.settings)
        batch = default.start.batch
        if asked.settings.max_num_seqs is not None or not batch.sequences < asked.concurrency <= batch.tokens:
            return default
        more = self.with_settings(replace(asked.settings, max_num_seqs=asked.concurrency))
        return more if more.verdict is Verdict.FITS else default

    def longest(self, served: Served) -> tuple[int, bool]:
        """(longest sequence, whether the model's own positions stop it and not memory)."""
        limit = self.question.architecture.position_limit
        settings = served.start.settings

        def fits(tokens: int) -> bool:
            return self.with_settings(replace(settings, max_model_len=tokens)).verdict is Verdict.FITS

        longest = largest_that_fits(fits, CEILING if limit is None else limit)
        return longest, limit is not None and longest == limit

    def remarks(self, served: Served) -> Iterator[str]:
        """What to know or to change on this card."""
        one = served.start
        if one.refused:
            yield one.refused
            return
        if one.loading:
            yield one.loading
        if lacks_bfloat16(one.device) and self.question.dtype == "BF16":
            yield "no bfloat16 in this card's hardware: vLLM starts in half (--dtype half)"
        share = served.least_utilization
        if served.verdict is not Verdict.FITS and share is not None and share > one.utilization:
            yield f"--gpu-memory-utilization {share:g} surely serves this; {one.utilization:g} may not"
        default = one.settings.max_num_seqs is None and served.verdict is not Verdict.FITS
        if default and self.question.concurrency < one.batch.sequences:
            yield from self._fewer(served)

    def _fewer(self, served: Served) -> Iterator[str]:
        """What no more sequences than are asked for would free."""
        asked, one = self.question.concurrency, served.start
        fewer = self.with_settings(replace(one.settings, max_num_seqs=asked))
        if fewer.verdict is not served.verdict or math.floor(fewer.lower) > math.floor(served.lower):
            freed = fewer.start.pool_bytes.point_bytes - one.pool_bytes.point_bytes
            answer = ", and surely serves this" if fewer.verdict is Verdict.FITS else ""
            yield (
                f"--max-num-seqs {asked} in place of {one.batch.sequences} leaves {format_size(freed)} more for the KV "
                f"pool{answer}"
            )


def _copies(served: Served) -> int | None:
    """Whole starts side by side that serve all sequences; None where not even one sequence is sure of its place."""
    each = math.floor(served.lower)
    return -(-served.asked // each) if each else None


def _arrangement(copies: int | None, ranks: int) -> Arrangement | None:
    if copies is None:
        return None
    if copies > 1:
        return Arrangement.REPLICAS
    return Arrangement.SHARDED if ranks > 1 else Arrangement.SINGLE


def _context(card: Card, rules: Rules) -> Amount:
    if not rules.version.at_least(*_OLD_DEFINITION):
        return Amount(0, 0, 0)
    least = card_context_bytes(card) + LOADED_KERNELS_BYTES
    return Amount(least, least, card_context_upper_bytes(card) + LOADED_KERNELS_UPPER_BYTES)
