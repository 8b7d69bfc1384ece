"""How several of a card serve what was asked, and what would make one of it do: figures of a card's row."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from gpufit.advice.arrangements import Plan
from gpufit.advice.changes import ChangeKind, NearestChange
from gpufit.advice.verdict import Arrangement
from gpufit.memory.carry import BETWEEN_CARDS
from gpufit.profile.base import Record
from gpufit.profile.evidence import Evidence
from gpufit.report.prices import Price
from gpufit.units import format_size, format_tokens


class ArrangementFigures(Record, frozen=True, kw_only=True):
    """One way to serve the scenario with a card, taken as often as it needs."""

    arrangement: str
    """`single`, `replicas`, `sharded`, `pipeline` or `sharded+pipeline`."""
    tensor_parallel_size: int
    """Devices that share every layer of a copy, or of each stage of a pipeline."""
    pipeline_parallel_size: int
    """Stages that the layers of a copy are spread over."""
    copies: int
    sequences_per_copy: int
    cards_needed: int
    lots: int
    idle_cards: int
    idle_hosts_copies: int = 0
    """Whole further copies of the model that the idle cards could host."""
    idle_hosts_sequences: int | None = None
    """Sequences at once that those surely serve, of this length; null where that is not known."""
    machines: int = 1
    """The fewest machines that hold the cards needed, devices that share a layer each in one."""
    spans_machines: bool = False
    """Whether devices that share every layer reach over several machines, which is not modelled."""
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
    """A change after which the scenario surely fits one card, or fewer cards than without it."""

    kind: ChangeKind
    value: str
    """Sequences, tokens, `fp8`, `4-bit`, or the id of a card."""
    need_upper_bytes: int | None
    """Of the fullest device, where there are several."""
    words: str
    cards_paid: int | None = None
    """Cards that are paid for then; null where a single one does, or one start as it was asked for."""
    cards_paid_now: int | None = None
    """Cards that are paid for without the change; null where no plan serves, or one card does with it."""
    tensor_parallel_size: int | None = None
    """With `cards_paid`, as the next two: how those cards do it."""
    pipeline_parallel_size: int | None = None
    copies: int | None = None


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
            idle_hosts_copies=one.remainder.copies,
            idle_hosts_sequences=one.remainder.sequences,
            machines=one.machines,
            spans_machines=one.spans_machines,
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
    return tuple(_change(one) for one in changes)


def _change(one: NearestChange) -> ChangeFigures:
    plan = one.plan
    return ChangeFigures(
        kind=one.kind,
        value=one.value,
        need_upper_bytes=one.need_upper_bytes,
        words=_words(one) if plan is None else _fewer_words(one, plan),
        cards_paid=None if plan is None else plan.lots.cards,
        cards_paid_now=one.in_place_of,
        tensor_parallel_size=None if plan is None else plan.over.tensor,
        pipeline_parallel_size=None if plan is None else plan.over.stages,
        copies=None if plan is None else plan.copies,
    )


def arrangement_words(one: ArrangementFigures) -> str:
    """An arrangement in a few words: `2 copies, each over 4 (tensor parallel)`."""
    return copies_words(one.copies, one.tensor_parallel_size, one.pipeline_parallel_size)


def copies_words(copies: int, tensor: int, stages: int) -> str:
    """So many copies of a model, each over devices that share every layer and over stages of a pipeline."""
    over = ""
    if tensor > 1 and stages > 1:
        over = f"over {tensor:,} (tensor parallel) x {stages:,} (pipeline)"
    elif tensor > 1:
        over = f"over {tensor:,} (tensor parallel)"
    elif stages > 1:
        over = f"over {stages:,} (pipeline)"
    if copies == 1:
        return f"one copy {over}" if over else "one card serves all"
    return f"{copies:,} copies, each {over}" if over else f"{copies:,} copies"


def _fewer_words(one: NearestChange, plan: Plan) -> str:
    """`FP8 weights (--quantization fp8): 8 cards in place of 16, one copy over 8 (tensor parallel), at most ...`."""
    flags = f" ({one.flags})" if one.flags else ""
    paid = f"{plan.lots.cards:,} {'card' if plan.lots.cards == 1 else 'cards'}"
    now = f" in place of {one.in_place_of:,}" if one.in_place_of is not None else ""
    how = copies_words(plan.copies, plan.over.tensor, plan.over.stages)
    return f"{_what(one)}{flags}: {paid}{now}, {how}, at most {format_size(plan.need_upper_bytes)} each"


def _what(one: NearestChange) -> str:
    """What is held in fewer bytes, at the beginning of a sentence."""
    match one.kind:
        case ChangeKind.KV_CACHE:
            return "an FP8 KV cache"
        case ChangeKind.WEIGHTS if one.value.endswith("checkpoint"):
            return _a_checkpoint(one.value)
        case ChangeKind.WEIGHTS:
            return f"{one.value.replace('fp8', 'FP8')} weights"
        case _ if "checkpoint" in one.value:
            return _a_checkpoint(one.value.replace(", ", " and an "))
        case _:
            return one.value.replace("fp8", "FP8")


def _a_checkpoint(value: str) -> str:
    """What was quantised beforehand, with its article."""
    return f"{'an' if value.startswith('fp8') else 'a'} {value.replace('fp8', 'FP8')}"


def _words(one: NearestChange) -> str:
    upper = "" if one.need_upper_bytes is None else f"at most {format_size(one.need_upper_bytes)}"
    beside = "; ".join(filter(None, (one.flags, upper)))
    most = f" ({beside})" if beside else ""
    match one.kind:
        case ChangeKind.CONCURRENCY:
            return f"{int(one.value):,} at once fit{'s' if one.value == '1' else ''}{most}"
        case ChangeKind.CONTEXT:
            return f"a context of {format_tokens(int(one.value))} fits{most}"
        case ChangeKind.KV_CACHE | ChangeKind.WEIGHTS | ChangeKind.WEIGHTS_AND_KV_CACHE:
            what = _what(one)
            makes = "makes" if what.startswith(("a ", "an ")) and " and " not in what else "make"
            return f"{what} {makes} it fit{most}"
        case ChangeKind.CARD:
            other = f" of another vendor ({one.vendor})" if one.vendor else ""
            return f"next card up{other}: {one.value}{most}"


def plan_rules(rows: Iterable[tuple[tuple[ArrangementFigures, ...], tuple[ChangeFigures, ...]]]) -> tuple[str, ...]:
    """What was assumed of several cards and of changes, for the kinds that some row has."""
    plans: set[str] = set()
    changes: set[ChangeKind] = set()
    for arrangements, some in rows:
        plans |= {one.arrangement for one in arrangements}
        changes |= {one.kind for one in some}
    found = []
    if plans & {Arrangement.SHARDED, Arrangement.SHARDED_PIPELINE}:
        found.append(
            "tensor parallel: a rank's weights and KV cache by transformers' own plan, its temporaries and activations "
            "between their share and all of them, and buffers between cards of "
            f"{format_size(BETWEEN_CARDS.point_bytes)} ({format_size(BETWEEN_CARDS.lower_bytes)} to "
            f"{format_size(BETWEEN_CARDS.upper_bytes)})"
        )
    if plans & {Arrangement.PIPELINE, Arrangement.SHARDED_PIPELINE}:
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
