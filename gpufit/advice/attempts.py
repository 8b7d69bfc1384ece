"""One question put to one card: which start answers it best, how long sequences may be, what to change. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from gpufit.advice.limits import CEILING, largest_that_fits
from gpufit.advice.served import Question, Served
from gpufit.advice.verdict import Verdict
from gpufit.catalog.record import Card
from gpufit.memory.carry import (
    LOADED_KERNELS_BYTES,
    LOADED_KERNELS_UPPER_BYTES,
    card_context_bytes,
    card_context_upper_bytes,
)
from gpufit.memory.engines.base import Amount, Outcome, Part
from gpufit.memory.engines.vllm.dtypes import lacks_bfloat16
from gpufit.memory.engines.vllm.settings import Device, Settings, device_of
from gpufit.memory.engines.vllm.start import loaded_parts, start
from gpufit.memory.engines.vllm.versions import Rules
from gpufit.units import format_size

_OLD_DEFINITION = (0, 6, 5)
"""Before this release the part `non_torch` holds the driver context (`engines.vllm.overheads`)."""
_ORDER = (Verdict.DOES_NOT_FIT, Verdict.TOO_CLOSE, Verdict.FITS)


class Asked:
    """A question for any card; what its start loads is worked out once for all on which it is the same."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self._known: dict[tuple[object, bool], tuple[Part, ...]] = {}

    def on(self, card: Card) -> Attempt:
        """The question on one card; of unknown memory, as if it had what its name says.

        Raises UsageError where vLLM cannot divide the model so, or no rule covers it.
        """
        device = device_of(card, card.capacity_bytes or card.memory.nominal_gb * 10**9)
        return Attempt(self.question, device, self._loaded(device), _context(card, self.question.rules))

    def _loaded(self, device: Device) -> tuple[Part, ...]:
        asked = self.question
        precision = asked.precision(device)
        key = (precision.steps, device.compute_capability is None)
        if key not in self._known:
            self._known[key] = loaded_parts(asked.architecture, precision, device, asked.settings, asked.rules)
        return self._known[key]


def _context(card: Card, rules: Rules) -> Amount:
    if not rules.version.at_least(*_OLD_DEFINITION):
        return Amount(0, 0, 0)
    least = card_context_bytes(card) + LOADED_KERNELS_BYTES
    return Amount(least, least, card_context_upper_bytes(card) + LOADED_KERNELS_UPPER_BYTES)


@dataclass(frozen=True)
class Attempt:
    """One question on one card, with what is the same for every length and number of sequences."""

    question: Question
    device: Device
    loaded: tuple[Part, ...]
    """The weights, and slots for adapters where they are on."""
    context: Amount

    def with_settings(self, settings: Settings) -> Served:
        """The start with these flags."""
        asked = self.question
        precision = asked.precision(self.device)
        one = start(asked.architecture, precision, self.device, settings, asked.rules, asked.name, loaded=self.loaded)
        return Served(one, asked.concurrency, self.context)

    def best(self) -> Served:
        """The start with vLLM's default number of sequences; where that does not serve all that are asked for, the one
        with as many as are asked for, if its verdict is better; or else with the most that one start surely serves."""
        asked = self.question
        default = self.default
        if asked.settings.max_num_seqs is not None or default.verdict is Verdict.FITS:
            return default
        if asked.concurrency <= default.start.batch.tokens:
            exact = self.with_sequences(asked.concurrency)
            if _ORDER.index(exact.verdict) > _ORDER.index(default.verdict):
                return exact
        most = self._most_of_one()
        return self.with_sequences(most) if most > math.floor(default.lower) else default

    @cached_property
    def default(self) -> Served:
        """The start with the flags as they were given."""
        return self.with_settings(self.question.settings)

    def with_sequences(self, count: int) -> Served:
        """The start with so many sequences in a step."""
        return self.with_settings(replace(self.question.settings, max_num_seqs=count))

    def _most_of_one(self) -> int:
        """The most sequences that one start surely serves where it schedules no more: what copies side by side get."""
        if self.default.verdict is not Verdict.DOES_NOT_FIT:
            return 0
        return self._most_up_to(min(self.question.concurrency, self.default.start.batch.tokens))

    def most(self, fullest: Served) -> int:
        """The most sequences that one start surely serves: of one that serves all that is asked, and whose number of
        them was chosen to, one like it with another."""
        chosen = self.question.settings.max_num_seqs is None and fullest.start.settings.max_num_seqs is not None
        if fullest.verdict is Verdict.FITS and chosen:
            return self._most_up_to(fullest.start.batch.tokens)
        return math.floor(fullest.lower)

    def _most_up_to(self, ceiling: int) -> int:
        return largest_that_fits(lambda count: math.floor(self.with_sequences(count).lower) >= count, ceiling)

    def fullest(self, best: Served) -> Served:
        """The start that surely serves the most of the sequences asked for: `best`, or of one that is too close another
        with fewer of them in a step."""
        if best.verdict is not Verdict.TOO_CLOSE or self.question.settings.max_num_seqs is not None:
            return best
        most = self._most_up_to(min(self.question.concurrency, self.default.start.batch.tokens))
        return self.with_sequences(most) if most > math.floor(best.lower) else best

    def longest(self, served: Served) -> tuple[int, bool]:
        """(longest sequence, whether the model's own positions stop it and not memory)."""
        limit = self.question.architecture.position_limit
        settings = self.question.settings
        if settings.max_num_seqs is None and served.verdict is not Verdict.FITS:
            # A shorter one is served wherever that is with no more sequences in a step than are asked for.
            settings = replace(settings, max_num_seqs=min(self.question.concurrency, served.start.batch.tokens))
        elif served.verdict is Verdict.FITS:
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
        if self.question.settings.max_num_seqs is not None:
            return
        if one.settings.max_num_seqs is not None:
            yield self._chosen(served)
        elif served.verdict is not Verdict.FITS and self.question.concurrency < one.batch.sequences:
            yield from self._fewer(served)

    def _fewer(self, served: Served) -> Iterator[str]:
        """What no more sequences than are asked for would free."""
        asked, one = self.question.concurrency, served.start
        fewer = self.with_sequences(asked)
        if math.floor(fewer.lower) > math.floor(served.lower):
            freed = fewer.start.pool_bytes.point_bytes - one.pool_bytes.point_bytes
            yield (
                f"--max-num-seqs {asked} in place of {one.batch.sequences} leaves {format_size(freed)} more for the KV "
                "pool"
            )

    def _chosen(self, served: Served) -> str:
        """What the number of sequences in the command is there for."""
        now = {
            Verdict.FITS: "surely serves this",
            Verdict.TOO_CLOSE: "may serve this",
            Verdict.DOES_NOT_FIT: f"surely serves {math.floor(served.lower)} a copy",
        }[served.verdict]
        before = {
            Outcome.FITS: f"surely serves {math.floor(self.default.lower)}",
            Outcome.TOO_CLOSE: "may not start",
            Outcome.DOES_NOT_FIT: "does not start",
        }[self.default.start.outcome]
        chosen, default = served.start.batch.sequences, self.default.start.batch.sequences
        return f"--max-num-seqs {chosen} {now}; vLLM's default of {default} {before}"
