"""How several of a card serve what was asked, and what would make one of it do: figures of a card's row."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpufit.advice.arrangements import Plan
from gpufit.advice.changes import ChangeKind, NearestChange
from gpufit.advice.verdict import Arrangement
from gpufit.memory.carry import BETWEEN_CARDS
from gpufit.profile.record import Evidence, Record
from gpufit.report.prices import Price
from gpufit.units import format_size, format_tokens


class ArrangementFigures(Record, frozen=True, kw_only=True):
    """One way to serve the scenario with a card, taken as often as it needs."""

    arrangement: str
    """`single`, `replicas`, `sharded` or `pipeline`."""
    tensor_parallel_size: int
    """Devices that share every layer of a copy."""
    pipeline_parallel_size: int
    """Devices that the layers of a copy are spread over."""
    copies: int
    sequences_per_copy: int
    cards_needed: int
    lots: int
    idle_cards: int
    need_bytes: int
    """Of the fullest device, as all sizes here."""
    need_lower_bytes: int
    need_upper_bytes: int
    evidence: Evidence
    serve_command: str = ""
    """One line for a shell that starts a copy; empty where the engine is no server."""
    prices: tuple[Price, ...] = ()
    """As a card's, for the lots of this arrangement; what work costs only where this arrangement was measured."""


class ChangeFigures(Record, frozen=True, kw_only=True):
    """A change after which the scenario surely fits one card."""

    kind: ChangeKind
    value: str
    """Sequences, tokens, `fp8`, `4-bit`, or the id of a card."""
    need_upper_bytes: int | None
    words: str


def arrangement_figures(
    plans: Iterable[Plan], prices: Callable[[Plan], tuple[Price, ...]]
) -> tuple[ArrangementFigures, ...]:
    """The plans of a card, fewest cards first, each with its prices."""
    return tuple(
        ArrangementFigures(
            arrangement=str(one.arrangement),
            tensor_parallel_size=one.over.tensor,
            pipeline_parallel_size=one.over.stages,
            copies=one.copies,
            sequences_per_copy=one.sequences_per_copy,
            cards_needed=one.cards_needed,
            lots=one.lots.lots,
            idle_cards=one.lots.idle_cards,
            need_bytes=one.need_bytes,
            need_lower_bytes=one.need_lower_bytes,
            need_upper_bytes=one.need_upper_bytes,
            evidence=one.evidence,
            prices=prices(one),
        )
        for one in plans
    )


def change_figures(changes: Iterable[NearestChange]) -> tuple[ChangeFigures, ...]:
    """The changes with words for each."""
    return tuple(
        ChangeFigures(kind=one.kind, value=one.value, need_upper_bytes=one.need_upper_bytes, words=_words(one))
        for one in changes
    )


def arrangement_words(one: ArrangementFigures) -> str:
    """An arrangement in a few words: `2 copies, each over 4 (tensor parallel)`."""
    over = ""
    if one.tensor_parallel_size > 1:
        over = f"over {one.tensor_parallel_size:,} (tensor parallel)"
    elif one.pipeline_parallel_size > 1:
        over = f"over {one.pipeline_parallel_size:,} (pipeline)"
    if one.copies == 1:
        return f"one copy {over}" if over else "one card serves all"
    return f"{one.copies:,} copies, each {over}" if over else f"{one.copies:,} copies"


def _words(one: NearestChange) -> str:
    upper = "" if one.need_upper_bytes is None else f"at most {format_size(one.need_upper_bytes)}"
    beside = "; ".join(filter(None, (one.flags, upper)))
    most = f" ({beside})" if beside else ""
    match one.kind:
        case ChangeKind.CONCURRENCY:
            return f"{int(one.value):,} at once fit{'s' if one.value == '1' else ''}{most}"
        case ChangeKind.CONTEXT:
            return f"a context of {format_tokens(int(one.value))} fits{most}"
        case ChangeKind.KV_CACHE:
            return f"an FP8 KV cache makes it fit{most}"
        case ChangeKind.WEIGHTS:
            return f"{one.value.upper() if one.value == 'fp8' else one.value} weights make it fit{most}"
        case ChangeKind.WEIGHTS_AND_KV_CACHE:
            return f"{one.value.replace('fp8', 'FP8')} make it fit{most}"
        case ChangeKind.CARD:
            return f"next card up: {one.value}{most}"


def plan_rules(rows: Iterable[tuple[tuple[ArrangementFigures, ...], tuple[ChangeFigures, ...]]]) -> tuple[str, ...]:
    """What was assumed of several cards and of changes, for the kinds that some row has."""
    plans: set[str] = set()
    changes: set[ChangeKind] = set()
    for arrangements, some in rows:
        plans |= {one.arrangement for one in arrangements}
        changes |= {one.kind for one in some}
    found = []
    if Arrangement.SHARDED in plans:
        found.append(
            "tensor parallel: a rank's weights and KV cache by transformers' own plan, its temporaries and activations "
            "between their share and all of them, and buffers between cards of "
            f"{format_size(BETWEEN_CARDS.point_bytes)} ({format_size(BETWEEN_CARDS.lower_bytes)} to "
            f"{format_size(BETWEEN_CARDS.upper_bytes)})"
        )
    if Arrangement.PIPELINE in plans:
        found.append(
            "pipeline: the fullest of the cards, with the largest layers and all temporaries; how far the cards wait "
            "for one another is not modelled"
        )
    if changes & {ChangeKind.WEIGHTS, ChangeKind.WEIGHTS_AND_KV_CACHE, ChangeKind.KV_CACHE}:
        found.append(
            "FP8 and 4-bit: sizes by the usual settings of these formats (FP8 in blocks of 128 x 128, GPTQ or AWQ in "
            "groups of 128); what the model's answers are worth then has to be tested"
        )
    return tuple(found)
