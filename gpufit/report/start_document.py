"""The fit document of a model that vLLM is to serve: the same document as a profile's, each row with its start."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from msgspec import structs

from gpufit.advice.changes import ChangeKind
from gpufit.advice.served import Question, ServedModel
from gpufit.advice.starts import StartVerdict
from gpufit.advice.verdict import Devices, Verdict
from gpufit.catalog.offers import Offer, OfferBook, Offers
from gpufit.memory.engines.base import Part
from gpufit.memory.engines.vllm.dtypes import torch_name
from gpufit.memory.engines.vllm.layers import kinds_of, token_bytes
from gpufit.memory.engines.vllm.serve import serve_flags
from gpufit.memory.engines.vllm.stages import fullest_stage
from gpufit.memory.engines.vllm.start import Count, VllmStart
from gpufit.memory.engines.vllm.weights import tensors_per_rank
from gpufit.profile.environment import Engine
from gpufit.profile.evidence import weakest
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.precision import ComputeDtype, DtypeShare, Precision, Quantization
from gpufit.report.document import BindingFigures, CardRow, FitDocument, PhaseFigures, Scenario
from gpufit.report.fit_builder import with_no_plan
from gpufit.report.plans import ArrangementFigures, arrangement_figures, change_figures
from gpufit.report.prices import book_figures, price_notes, prices_of
from gpufit.report.start_figures import CountFigures, PartFigures, StartFigures

_IN_FP8 = (ChangeKind.KV_CACHE, ChangeKind.WEIGHTS, ChangeKind.WEIGHTS_AND_KV_CACHE)


def build_start_document(asked: ServedModel, verdicts: Sequence[StartVerdict], offers: Offers) -> FitDocument:
    """Put the starts on some cards, at least one, into the document that all formats render."""
    question = asked.question
    length = question.settings.max_model_len
    rows = tuple(_card_row(asked, verdict, offers) for verdict in verdicts)
    books = book_figures(offers)
    largest = max(verdicts, key=lambda one: one.served.need(length).point_bytes)
    one = largest.served.start
    return FitDocument(
        evidence=weakest(row.evidence for row in rows),
        profile=asked.info.source,
        measured_on="no device (arithmetic)",
        model=asked.info,
        engine=Engine(name="vllm", version=str(question.rules.version), attention="paged"),
        holds_for=_holds_for(one, verdicts),
        precision=_precision(asked, one),
        scenario=Scenario(
            context_tokens=length,
            new_tokens=asked.new_tokens,
            concurrency=question.concurrency,
            cached_tokens=length,
        ),
        phases=_phases(asked, largest),
        kv_cache_growth=None,
        cards=rows,
        offers=offers.names,
        offer_books=books,
        assumptions=(
            *asked.assumed,
            *_assumptions(question, [verdict.served.start for verdict in verdicts]),
            *_planned(verdicts),
        ),
        notes=(*asked.notes, *price_notes(books, [row.prices for row in rows])),
    )


def _holds_for(one: VllmStart, verdicts: Sequence[StartVerdict]) -> str:
    if len(verdicts) == 1:
        return one.holds_for
    ranks = one.settings.ranks.count
    return f"{one.model}, {one.rules.name}, {one.precisions}, {ranks} of each card"


def _card_row(asked: ServedModel, verdict: StartVerdict, offers: Offers) -> CardRow:
    length = asked.question.settings.max_model_len
    served, card = verdict.served, verdict.card
    need, capacity = served.need(length), card.capacity_bytes
    offered = offers.of(card.id)
    plans = _arrangements(asked, verdict, offered)
    best = plans[0] if plans else None
    return CardRow(
        card=card.id,
        name=card.display_name,
        verdict=verdict.verdict,
        capacity_bytes=capacity,
        need_bytes=need.point_bytes,
        need_lower_bytes=need.lower_bytes,
        need_upper_bytes=need.upper_bytes,
        headroom_bytes=None if capacity is None else capacity - need.point_bytes,
        headroom_lower_bytes=None if capacity is None else capacity - need.upper_bytes,
        headroom_upper_bytes=None if capacity is None else capacity - need.lower_bytes,
        binding=_binding(asked, verdict),
        parts=_parts(verdict, length),
        context_bytes=served.context.point_bytes,
        other_bytes=served.other.point_bytes,
        max_concurrency=verdict.max_concurrency,
        max_context_tokens=verdict.max_context_tokens,
        max_context_is_position_limit=verdict.max_context_is_position_limit,
        arrangement=None if best is None else best.arrangement,
        cards_needed=None if best is None else best.cards_needed,
        lot_size=offers.lot_size(card.id),
        lots=None if best is None else best.lots,
        idle_cards=None if best is None else best.idle_cards,
        idle_hosts_copies=None if best is None else best.idle_hosts_copies,
        idle_hosts_sequences=None if best is None else best.idle_hosts_sequences,
        prices=prices_of(offered, None if best is None else best.cards_needed),
        remarks=with_no_plan(verdict.remarks, verdict.no_plan),
        evidence=served.start.evidence,
        arrangements=plans,
        changes=change_figures(verdict.changes),
        no_plan=verdict.no_plan,
        start=_start_figures(asked, verdict) if verdict.known else None,
    )


def _start_figures(asked: ServedModel, verdict: StartVerdict) -> StartFigures:
    served, one = verdict.served, verdict.served.start
    return StartFigures(
        holds_for=one.holds_for,
        tensor_parallel_size=one.settings.ranks.tensor,
        pipeline_parallel_size=one.settings.ranks.stages,
        parts=tuple(_part(part) for part in one.parts),
        gpu_memory_utilization=one.utilization,
        least_gpu_memory_utilization=served.least_utilization,
        budget_bytes=one.budget_bytes,
        kv_pool_bytes=one.pool_bytes.point_bytes,
        kv_pool_lower_bytes=one.pool_bytes.lower_bytes,
        kv_pool_upper_bytes=one.pool_bytes.upper_bytes,
        kv_needed_bytes=served.needed_bytes,
        sequence_bytes=one.sequence_bytes,
        kv_tokens=_tokens(one.tokens),
        pool_concurrency=CountFigures(
            lower=one.concurrency.lower, point=one.concurrency.point, upper=one.concurrency.upper
        ),
        max_concurrency=CountFigures(lower=served.lower, point=served.point, upper=served.upper),
        max_num_seqs=one.batch.sequences,
        max_num_batched_tokens=one.batch.tokens,
        pool=one.pool.words,
        binding=served.binding,
        serve_command=_serve_command(asked, verdict),
    )


def _arrangements(
    asked: ServedModel, verdict: StartVerdict, offered: Sequence[tuple[OfferBook, Offer]]
) -> tuple[ArrangementFigures, ...]:
    """The plans, each with its prices and the command that starts one copy."""
    figures = arrangement_figures(
        [one.plan for one in verdict.plans], lambda plan: prices_of(offered, plan.cards_needed)
    )
    commands = [_command(asked, one.served.start) for one in verdict.plans]
    return tuple(structs.replace(one, serve_command=command) for one, command in zip(figures, commands, strict=True))


def _serve_command(asked: ServedModel, verdict: StartVerdict) -> str | None:
    """The command of the start, or of each of several copies; None where another arrangement serves better, or none
    does."""
    own = verdict.served.start
    over = Devices(own.settings.ranks.tensor, own.settings.ranks.stages)
    if verdict.verdict is Verdict.DOES_NOT_FIT and (not verdict.plans or verdict.plans[0].plan.over != over):
        return None
    return _command(asked, own)


def _command(asked: ServedModel, one: VllmStart) -> str:
    return shlex.join(
        serve_flags(
            one,
            asked.source,
            dtype=asked.dtype,
            quantization=asked.quantization,
            revision=asked.revision,
            trust_remote_code=asked.trust_remote_code,
        )
    )


def _part(part: Part) -> PartFigures:
    return PartFigures(
        name=part.name,
        size_bytes=part.amount.point_bytes,
        lower_bytes=part.amount.lower_bytes,
        upper_bytes=part.amount.upper_bytes,
        evidence=part.evidence,
        words=part.words,
    )


def _tokens(count: Count) -> CountFigures:
    return CountFigures(lower=int(count.lower), point=int(count.point), upper=int(count.upper))


def _parts(verdict: StartVerdict, tokens: int) -> Parts:
    one = verdict.served.start
    return Parts(
        weights_bytes=one.part("weights").amount.point_bytes,
        buffers_bytes=sum(part.amount.point_bytes for part in one.parts if part.name == "lora"),
        kv_cache_bytes=verdict.served.kv_bytes(tokens),
        activations_bytes=one.part("activation").amount.point_bytes,
    )


def _lengths(asked: ServedModel) -> dict[Phase, int]:
    """Tokens that a sequence holds at the end of each phase."""
    length = asked.question.settings.max_model_len
    if not asked.info.generates:
        return {Phase.FORWARD: length}
    return {Phase.PREFILL: length - asked.new_tokens, Phase.DECODE: length}


def _phases(asked: ServedModel, verdict: StartVerdict) -> dict[str, PhaseFigures]:
    return {str(phase): _phase(verdict, tokens) for phase, tokens in _lengths(asked).items()}


def _phase(verdict: StartVerdict, tokens: int) -> PhaseFigures:
    allocated, need = verdict.served.allocated(tokens), verdict.served.need(tokens)
    return PhaseFigures(
        site="",
        parts=_parts(verdict, tokens),
        allocated_bytes=allocated.point_bytes,
        allocated_lower_bytes=allocated.lower_bytes,
        allocated_upper_bytes=allocated.upper_bytes,
        need_bytes=need.point_bytes,
        need_upper_bytes=need.upper_bytes,
        evidence=verdict.served.start.evidence,
    )


def _binding(asked: ServedModel, verdict: StartVerdict) -> BindingFigures:
    phase, tokens = list(_lengths(asked).items())[-1]
    parts = _parts(verdict, tokens)
    sizes = {name: getattr(parts, name) for name in Parts.NAMES}
    part = max(sizes, key=sizes.__getitem__)
    short = verdict.served.needed_bytes - verdict.served.start.pool_bytes.point_bytes
    return BindingFigures(
        phase=phase, part=part, part_bytes=sizes[part], short_bytes=max(short, 0) if verdict.known else 0
    )


def _precision(asked: ServedModel, one: VllmStart) -> Precision:
    """Stored is the whole model's; resident and KV are those of one rank."""
    question = asked.question
    totals: dict[str, list[int]] = {}
    settings = one.settings
    stage = fullest_stage(question.architecture, settings.ranks.stages, question.rules)
    for _, dtype, size in tensors_per_rank(stage, settings.ranks, one.precision, language_only=settings.language_only):
        total = totals.setdefault(torch_name(dtype), [0, 0])
        total[0] += size
        total[1] += 1
    ordered = sorted(totals.items(), key=lambda item: (-item[1][0], item[0]))
    dtype = torch_name(one.precision.dtype)
    a_token = token_bytes(kinds_of(stage, settings.ranks, one.pool.cache_dtype))
    method = one.precision.method
    return Precision(
        stored=asked.stored,
        resident=tuple(DtypeShare(dtype=name, size_bytes=size, tensors=count) for name, (size, count) in ordered),
        compute=(ComputeDtype(family="matmul", dtypes=(dtype,), calls=0, inputs=(dtype,)),),
        kv=(DtypeShare(dtype=one.kv_dtype, size_bytes=a_token, tensors=0),) if a_token and one.kv_dtype else (),
        quantization=None if method is None else Quantization(method=method.name),
    )


def _assumptions(question: Question, starts: Sequence[VllmStart]) -> tuple[str, ...]:
    found = []
    if question.settings.utilization is None:
        rules = question.rules
        found.append(f"--gpu-memory-utilization {rules.default_utilization:g}, the default of {rules.name}")
    by_default = {one.batch.sequences for one in starts if one.settings.max_num_seqs is None}
    if by_default:
        found.append(f"--max-num-seqs {_either(by_default)}, by the release's defaults for the card")
    chosen = {one.batch.sequences for one in starts if one.settings.max_num_seqs is not None}
    if chosen and question.settings.max_num_seqs is None:
        found.append(
            f"--max-num-seqs {_either(chosen)}, in place of the default where that serves more (see the notes)"
        )
    if question.settings.max_num_batched_tokens is None:
        tokens = {one.batch.tokens for one in starts}
        found.append(f"--max-num-batched-tokens {_either(tokens)}, by the release's defaults for the card")
    return (*found, *_ALWAYS_ASSUMED)


def _planned(verdicts: Sequence[StartVerdict]) -> Iterator[str]:
    """What was assumed of other arrangements than were asked for, and of changes."""
    if any(
        plan.served.start.settings.ranks != one.served.start.settings.ranks for one in verdicts for plan in one.plans
    ):
        yield (
            "several ranks: each by the same rules, NCCL's buffers among what is outside torch; ranks that share every "
            "layer stand in one machine, and how fast they exchange is not modelled"
        )
    if any(plan.plan.over.stages > 1 for one in verdicts for plan in one.plans):
        yield (
            "pipeline: the fullest stage, with as many layers as any and the head; stages may stand in several "
            "machines, which Ray brings together, and how far they wait for one another is not modelled; vLLM runs "
            "pipelines of most families, not of all"
        )
    if any(change.kind in _IN_FP8 for one in verdicts for change in one.changes):
        yield (
            "FP8 and 4-bit: a cache of a byte an element, weights with one FP8 scale a matrix, at load or in a "
            "checkpoint, or AWQ in groups of 128; what the model's answers are worth then has to be tested"
        )


def _either(counts: set[int]) -> str:
    return " or ".join(map(str, sorted(counts)))


_ALWAYS_ASSUMED = (
    "activation is the peak of vLLM's start-up profile, reserved from then on in every phase",
    "every size is one rank's, and all ranks take as much as the first",
    "the whole of each card is free when vLLM starts",
    "need adds the catalog's driver context (where none is known the largest of any card) with loaded kernels",
)
