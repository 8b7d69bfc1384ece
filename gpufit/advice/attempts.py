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
from gpufit.memory.allocator import Settings as AllocatorSettings
from gpufit.memory.carry import (
    LOADED_KERNELS_BYTES,
    LOADED_KERNELS_UPPER_BYTES,
    card_context_bytes,
    card_context_upper_bytes,
)
from gpufit.memory.engines.base import Amount, Outcome, Part
from gpufit.memory.engines.vllm.dtypes import lacks_bfloat16
from gpufit.memory.engines.vllm.lora import Lora
from gpufit.memory.engines.vllm.precision import ExpertSteps
from gpufit.memory.engines.vllm.settings import Device, Settings, device_of
from gpufit.memory.engines.vllm.start import loaded_parts, start
from gpufit.memory.engines.vllm.versions import Rules
from gpufit.memory.engines.vllm.weights import Ranks

_OLD_DEFINITION = (0, 6, 5)
"""Before this release the part `non_torch` holds the driver context (`engines.vllm.overheads`)."""
_ORDER = (Verdict.DOES_NOT_FIT, Verdict.TOO_CLOSE, Verdict.FITS)


_Loads = tuple[Ranks, Lora | None, bool, AllocatorSettings, ExpertSteps | None, bool]
"""What of a start's flags, and of a card, its weights depend on."""


class Asked:
    """A question for any card; what its start loads is worked out once for all on which it is the same."""

    def __init__(self, question: Question, loads: dict[_Loads, tuple[Part, ...]] | None = None) -> None:
        self.question = question
        self._known = {} if loads is None else loads

    def with_settings(self, settings: Settings) -> Asked:
        """The same model, held alike, started with other flags: where those load the same, it is not worked out
        again."""
        return Asked(replace(self.question, settings=settings), self._known)

    def on(self, card: Card) -> Attempt:
        """The question on one card; of unknown memory, as if it had what its name says.

        Raises UsageError where vLLM cannot divide the model so, or no rule covers it.
        """
        device = device_of(card, card.capacity_bytes or card.memory.nominal_gb * 10**9)
        return Attempt(self.question, device, self._loaded(device), _context(card, self.question.rules))

    def _loaded(self, device: Device) -> tuple[Part, ...]:
        asked, flags = self.question, self.question.settings
        precision = asked.precision(device)
        nvidia = device.compute_capability is not None
        key = (flags.ranks, flags.lora, flags.language_only, flags.allocator, precision.steps, nvidia)
        if key not in self._known:
            self._known[key] = loaded_parts(asked.architecture, precision, device, flags, asked.rules)
        return self._known[key]


def _served(one: Served) -> tuple[int, int, int]:
    """How good a start is: its verdict, then how many it surely and how many it likely runs of what is asked."""
    sure, likely = (math.floor(min(count, one.asked)) for count in (one.lower, one.point))
    return _ORDER.index(one.verdict), sure, likely


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
        """The start with vLLM's default number of sequences; where that does not surely serve all that are asked for,
        the one with as many as are asked for, if it serves more of them; and where no start may serve all, with as many
        as one likely runs at once, and surely no fewer than with any other number."""
        asked, default = self.question, self.default
        if asked.settings.max_num_seqs is not None or default.verdict is Verdict.FITS:
            return default
        most = min(asked.concurrency, default.start.batch.tokens)
        if most == asked.concurrency:
            best = max(default, self.with_sequences(most), key=_served)  # of equals the default, which stands first
            if best.verdict is not Verdict.DOES_NOT_FIT:
                return best
        count = self._likely_up_to(most)
        return max(default, self.with_sequences(count), key=_served) if count else default

    @cached_property
    def default(self) -> Served:
        """The start with the flags as they were given."""
        return self.with_settings(self.question.settings)

    def with_sequences(self, count: int) -> Served:
        """The start with so many sequences in a step."""
        return self.with_settings(replace(self.question.settings, max_num_seqs=count))

    def _likely_up_to(self, ceiling: int) -> int:
        """The most sequences in a step that one start likely runs at once, of those numbers with which it surely runs
        as many as with any: a pool that holds more than it must is then used."""
        sure = self._most_up_to(ceiling)

        def likely(count: int) -> bool:
            if count <= sure:
                return True
            one = self.with_sequences(count)
            return math.floor(one.lower) >= sure and math.floor(one.point) >= count

        return largest_that_fits(likely, ceiling)

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
        count = self._likely_up_to(min(self.question.concurrency, self.default.start.batch.tokens))
        fewer = self.with_sequences(count) if count else best
        return fewer if math.floor(fewer.lower) > math.floor(best.lower) else best

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
        if self.question.settings.max_num_seqs is None and one.settings.max_num_seqs is not None:
            yield self._chosen(served)

    def _chosen(self, served: Served) -> str:
        """What the number of sequences in the command is there for."""
        sure, likely = math.floor(served.lower), math.floor(served.point)
        serves = [f"surely serves {sure}"] if sure else []
        serves += [f"likely {'' if sure else 'serves '}{likely}"] if likely > sure else []
        now = {
            Verdict.FITS: "surely serves this",
            Verdict.TOO_CLOSE: f"may serve this ({', '.join(serves)})" if serves else "may serve this",
            Verdict.DOES_NOT_FIT: f"{', '.join(serves)} a copy",
        }[served.verdict]
        before = {
            Outcome.FITS: f"surely serves {math.floor(self.default.lower)}",
            Outcome.TOO_CLOSE: "may not start",
            Outcome.DOES_NOT_FIT: "does not start",
        }[self.default.start.outcome]
        chosen, default = served.start.batch.sequences, self.default.start.batch.sequences
        return f"--max-num-seqs {chosen} {now}; vLLM's default of {default} {before}"
