"""One card and one model served by vLLM: does it start, does it serve what is asked, and with how many cards. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from gpufit.advice.attempts import Asked
from gpufit.advice.changes import NearestChange
from gpufit.advice.machines import spanning_words, spans
from gpufit.advice.served import Question, Served
from gpufit.advice.start_changes import StartChanges
from gpufit.advice.start_plans import StartPlan, devices_of, no_start_plan, start_plans, wider
from gpufit.advice.verdict import Verdict
from gpufit.catalog.record import Card


@dataclass(frozen=True)
class StartVerdict:
    """Everything said about one card, in bytes a rank."""

    card: Card
    served: Served
    """With the ranks asked for. On a card whose memory nobody has reported, that of the same size as its name says: for
    its parts alone."""
    known: bool
    """Whether the card's memory is known, so that anything is claimed."""
    max_concurrency: int | None
    """Sequences of the longest length that one start surely serves at once."""
    max_context_tokens: int | None
    """The largest `--max-model-len` that surely starts and serves as many sequences; 0 where none does."""
    max_context_is_position_limit: bool
    plans: tuple[StartPlan, ...]
    """The ways to serve everything with this card, taken as often as it needs: the fewest cards first."""
    changes: tuple[NearestChange, ...]
    """What would make one start serve everything."""
    remarks: tuple[str, ...]
    no_plan: str = ""
    """Why no number of the card is named; empty where some plan serves."""

    @property
    def verdict(self) -> Verdict:
        """The answer for the card, as many of it as there are ranks."""
        return self.served.verdict if self.known else Verdict.UNKNOWN


def judge_starts(
    question: Question, cards: Iterable[Card], lot_size: Callable[[str], int], catalog: Iterable[Card] = ()
) -> tuple[StartVerdict, ...]:
    """The verdict for each card; `lot_size` tells how many of a card, by its id, are one lot, and the next card up is
    looked for in the catalog.

    Raises UsageError where vLLM cannot divide the model, or no rule covers it.
    """
    asked = Asked(question)
    more, changes = wider(asked), StartChanges(asked, catalog)
    return tuple(_judge(asked, card, lot_size(card.id), more, changes) for card in cards)


def _judge(asked: Asked, card: Card, lot_size: int, more: Sequence[Asked], changes: StartChanges) -> StartVerdict:
    attempt = asked.on(card)
    served = attempt.best()
    if card.capacity_bytes is None:
        return StartVerdict(
            card=card,
            served=served,
            known=False,
            max_concurrency=None,
            max_context_tokens=None,
            max_context_is_position_limit=False,
            plans=(),
            changes=(),
            remarks=(),
            no_plan=no_start_plan(card, asked.question, more),
        )
    fullest = attempt.fullest(served)
    most = attempt.most(fullest)
    longest, bound = attempt.longest(served)
    plans = start_plans(attempt, card, more, lot_size)
    return StartVerdict(
        card=card,
        served=served,
        known=True,
        max_concurrency=most,
        max_context_tokens=longest,
        max_context_is_position_limit=bound,
        plans=plans,
        changes=changes.of(card, served, most, longest, plans, lot_size),
        remarks=(*attempt.remarks(served), *_spanning(asked.question, card)),
        no_plan="" if plans else served.start.refused or no_start_plan(card, asked.question, more),
    )


def _spanning(question: Question, card: Card) -> tuple[str, ...]:
    """What is wrong with ranks that were asked for and do not stand in one machine."""
    over = devices_of(question)
    return (spanning_words(card, over),) if spans(card, over) else ()
