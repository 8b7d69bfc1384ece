"""One document that holds every hard value a format can meet."""

from __future__ import annotations

import datetime
from typing import Any

from gpufit.advice.changes import ChangeKind
from gpufit.advice.lots import to_the_cent
from gpufit.advice.verdict import Verdict
from gpufit.memory.growth import CacheGrowth
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Parts, Phase
from gpufit.profile.precision import ComputeDtype, DtypeShare, Precision, Quantization
from gpufit.report.document import BindingFigures, CardRow, FitDocument, PhaseFigures, Scenario
from gpufit.report.plans import ArrangementFigures, ChangeFigures
from gpufit.report.prices import BookFigures, Price, ThroughputFigures

GIB = 2**30

PREFILL = Parts(
    weights_bytes=16 * GIB,
    buffers_bytes=256,
    kv_cache_bytes=2 * GIB,
    inputs_bytes=2**20,
    outputs_bytes=1,
    activations_bytes=GIB // 2,
    temporaries_bytes=123_456_789,
)
"""18.5 GiB, 1 MiB, 257 and 123,456,789 bytes: 19,988,647,030 in all."""
PREFILL_BYTES = 18 * GIB + GIB // 2 + 2**20 + 257 + 123_456_789

LONG_NAME = "a-very-long-name-" * 20
"""340 characters."""

SCRIPT = """</style></script><script>alert("x")</script> & 'single' <b>"""
"""What must never be more than text on a page."""
OFFERED_ON = datetime.date(2026, 1, 31)

HUGE = 2**60
"""An exbibyte: 1,073,741,824 GiB."""


def prices(
    *asked: float | None, cards: int | None = 1, lot_size: int = 2, currency: str | None = "EUR", **fields: Any
) -> tuple[Price, ...]:
    """A seller's three terms for so many cards; None where no number of them serves."""
    lots = None if cards is None else -(-cards // lot_size)
    return tuple(
        Price(
            term_days=days,
            currency=currency,
            price_per_lot=one,
            total_price=None if one is None or lots is None else lots * one,
            lot_size=lot_size,
            lots=lots,
            idle_cards=None if lots is None or cards is None else lots * lot_size - cards,
            idle_price=None
            if one is None or lots is None or cards is None
            else to_the_cent(lots * one * (lots * lot_size - cards) / (lots * lot_size)),
            book="=book",
            seller="@seller|ü, Ltd",
            offered_on=OFFERED_ON,
            **fields,
        )
        for days, one in zip((3, 7, 30), asked, strict=True)
    )


def arranged(arrangement: str, cards: int, lots: int, need: int, **fields: Any) -> ArrangementFigures:
    """A way to take a card, in lots of two."""
    given: dict[str, Any] = {
        "arrangement": arrangement,
        "tensor_parallel_size": 1,
        "pipeline_parallel_size": 1,
        "copies": 1,
        "sequences_per_copy": 7,
        "cards_needed": cards,
        "lots": lots,
        "idle_cards": 2 * lots - cards,
        "need_bytes": need,
        "need_lower_bytes": need - 1,
        "need_upper_bytes": need + 1,
        "evidence": Evidence.SCALED,
    }
    return ArrangementFigures(**given | fields)


FITS = CardRow(
    card="x1-80gb",
    name="Größte Card ✓ 测试",
    verdict=Verdict.FITS,
    capacity_bytes=80 * GIB,
    need_bytes=20 * GIB,
    need_lower_bytes=19 * GIB,
    need_upper_bytes=22 * GIB,
    headroom_bytes=60 * GIB,
    headroom_lower_bytes=58 * GIB,
    headroom_upper_bytes=61 * GIB,
    binding=BindingFigures(phase=Phase.PREFILL, part="weights_bytes", part_bytes=16 * GIB, short_bytes=0),
    parts=PREFILL,
    context_bytes=500 * 2**20,
    other_bytes=0,
    max_concurrency=12,
    max_context_tokens=131_072,
    max_context_is_position_limit=True,
    arrangement="single",
    cards_needed=1,
    lot_size=2,
    lots=1,
    idle_cards=1,
    idle_hosts_copies=1,
    idle_hosts_sequences=12,
    prices=prices(*(100.5, None, 1_234_567.25), cost_per_million_tokens=0.000123456, cost_per_thousand_inputs=0.0),
    remarks=("no bfloat16 | in hardware", "=1+1", SCRIPT),
    evidence=Evidence.SCALED,
    throughput=ThroughputFigures(
        inputs_per_second=0.1,
        generated_tokens_per_second=None,
        prompt_tokens_per_second=123_456_789.125,
        copies=2,
        cell_context_tokens=131_072,
        cell_new_tokens=0,
        cell_concurrency=7,
        cell_inputs_completed=7,
        cell_wall_seconds=140.0,
        lower_bound=True,
        how="=7 inputs | in 140.00 s",
        evidence=Evidence.SCALED,
    ),
    arrangements=(
        arranged(
            "single",
            1,
            1,
            20 * GIB,
            idle_hosts_copies=1,
            idle_hosts_sequences=12,
            prices=prices(
                *(100.5, None, 1_234_567.25),
                cost_per_million_tokens=0.000123456,
                cost_per_thousand_inputs=0.0,
            ),
        ),
    ),
)

DOES_NOT_FIT = CardRow(
    card="x0|1b",
    name="@SUM(A1)<script>",
    verdict=Verdict.DOES_NOT_FIT,
    capacity_bytes=0,
    need_bytes=HUGE,
    need_lower_bytes=HUGE,
    need_upper_bytes=HUGE,
    headroom_bytes=-HUGE,
    headroom_lower_bytes=-HUGE,
    headroom_upper_bytes=-HUGE,
    binding=BindingFigures(phase=Phase.DECODE, part="kv_cache_bytes", part_bytes=HUGE, short_bytes=HUGE),
    parts=Parts(kv_cache_bytes=HUGE),
    context_bytes=0,
    other_bytes=0,
    max_concurrency=0,
    max_context_tokens=0,
    max_context_is_position_limit=False,
    arrangement=None,
    cards_needed=None,
    lot_size=1,
    lots=None,
    idle_cards=None,
    prices=prices(None, None, None, cards=None, lot_size=1, currency=None),
    remarks=("no bfloat16 | in hardware", "=none of the plans | tried serves it"),
    no_plan="=none of the plans | tried serves it",
    evidence=Evidence.ASSUMED,
    changes=(
        ChangeFigures(kind=ChangeKind.CONTEXT, value="1", need_upper_bytes=None, words="=1+1 | größer ✓ 测试"),
        ChangeFigures(
            kind=ChangeKind.WEIGHTS,
            value="=fp8",
            need_upper_bytes=HUGE,
            words="=FP8 | weights: 1,000,000 cards",
            cards_paid=1_000_000,
            tensor_parallel_size=8,
            pipeline_parallel_size=125_000,
            copies=1,
        ),
        ChangeFigures(kind=ChangeKind.CARD, value="+x2", need_upper_bytes=HUGE, words=SCRIPT),
    ),
)

UNKNOWN = CardRow(
    card="+x2",
    name='-2+3 "quoted", with a comma',
    verdict=Verdict.UNKNOWN,
    capacity_bytes=None,
    need_bytes=1,
    need_lower_bytes=0,
    need_upper_bytes=107_374_181,
    headroom_bytes=None,
    headroom_lower_bytes=None,
    headroom_upper_bytes=None,
    binding=BindingFigures(phase=Phase.LOAD, part="context_bytes", part_bytes=1, short_bytes=0),
    parts=Parts(),
    context_bytes=1,
    other_bytes=0,
    max_concurrency=None,
    max_context_tokens=None,
    max_context_is_position_limit=False,
    arrangement=None,
    cards_needed=None,
    lot_size=1,
    lots=None,
    idle_cards=None,
    prices=prices(None, None, None, cards=None, lot_size=1),
    remarks=(),
    evidence=Evidence.MEASURED,
)

ODD = prices(0.01, 2.0, 3.0, cards=3, odd="=1+1 | a card")

TOO_CLOSE = CardRow(
    card="x3-24gb",
    name="-x3",
    verdict=Verdict.TOO_CLOSE,
    capacity_bytes=20 * GIB,
    need_bytes=21 * GIB,
    need_lower_bytes=19 * GIB,
    need_upper_bytes=23 * GIB,
    headroom_bytes=-GIB,
    headroom_lower_bytes=-3 * GIB,
    headroom_upper_bytes=GIB,
    binding=BindingFigures(phase=Phase.PREFILL, part="temporaries_bytes", part_bytes=17 * GIB, short_bytes=GIB),
    parts=PREFILL,
    context_bytes=500 * 2**20,
    other_bytes=3,
    max_concurrency=3,
    max_context_tokens=1000,
    max_context_is_position_limit=False,
    arrangement="replicas",
    cards_needed=3,
    lot_size=2,
    lots=2,
    idle_cards=1,
    idle_hosts_copies=1,
    prices=ODD,
    remarks=(),
    evidence=Evidence.SCALED,
    arrangements=(
        arranged("replicas", 3, 2, 19 * GIB, copies=3, sequences_per_copy=3, idle_hosts_copies=1, prices=ODD),
        arranged("sharded", 4, 2, 11 * GIB, tensor_parallel_size=4, prices=prices(0.01, 2.0, None, cards=4)),
        arranged(
            "pipeline",
            1_000_001,
            500_001,
            HUGE,
            pipeline_parallel_size=1_000_001,
            evidence=Evidence.ASSUMED,
            prices=prices(None, 2.0, None, cards=1_000_001),
        ),
    ),
    changes=(
        ChangeFigures(kind=ChangeKind.CONCURRENCY, value="3", need_upper_bytes=None, words="-3 at once fit"),
        ChangeFigures(kind=ChangeKind.KV_CACHE, value="fp8", need_upper_bytes=19 * GIB, words="@FP8\nsecond | line"),
        ChangeFigures(kind=ChangeKind.WEIGHTS, value="4-bit", need_upper_bytes=1, words=LONG_NAME),
    ),
)


def figures(parts: Parts, evidence: Evidence) -> PhaseFigures:
    size = sum(getattr(parts, name) for name in Parts.NAMES)
    return PhaseFigures(
        site="=layers.0-31.mlp | after up_proj" if parts.kv_cache_bytes else "",
        parts=parts,
        allocated_bytes=size,
        allocated_lower_bytes=max(size - 1000, 0),
        allocated_upper_bytes=size + 1000,
        need_bytes=size + GIB,
        need_upper_bytes=size + 2 * GIB,
        evidence=evidence,
    )


def hard_document() -> FitDocument:
    return FitDocument(
        gpufit_version="0.1.0",
        evidence=Evidence.ASSUMED,
        profile=f"profiles/{LONG_NAME}=1+1|ü.json",
        measured_on="Card | \x1b[31mred\x1b[0m",
        model=ModelInfo(
            name='=HYPERLINK("http://x","größer|模型")',
            source='models/=x<i>&amp;"',
            fingerprint="0" * 64,
            architecture="LlamaForCausalLM",
            model_type="llama",
            parameters=8_030_261_248,
            generates=True,
        ),
        engine=Engine(name="transformers", version="5.24.0", attention="sdpa"),
        holds_for="=größer|模型, transformers 5.24.0 (sdpa)",
        precision=Precision(
            stored=(DtypeShare(dtype="Q4_1", size_bytes=5 * GIB, tensors=200),),
            resident=(
                DtypeShare(dtype="bfloat16", size_bytes=16 * GIB, tensors=200),
                DtypeShare(dtype="float32", size_bytes=0, tensors=0),
            ),
            compute=(),
            kv=(),
            quantization=Quantization(method="gguf", parameters={"=k": "@v"}),
            findings=("stored Q4_1 | resident bfloat16",),
        ),
        scenario=Scenario(context_tokens=131_072, new_tokens=1000, concurrency=7, cached_tokens=132_071),
        kv_cache_growth=CacheGrowth(
            phase=Phase.DECODE,
            evidence=Evidence.MEASURED,
            shared_bytes=8,
            state_bytes_per_sequence=3 * 2**20,
            bytes_per_token=23_040,
            knee_tokens=4096,
            bytes_per_token_within_knee=11_520,
        ),
        phases={
            "load": figures(Parts(weights_bytes=16 * GIB), Evidence.MEASURED),
            "prefill": figures(PREFILL, Evidence.SCALED),
            "decode": figures(Parts(kv_cache_bytes=HUGE), Evidence.ASSUMED),
        },
        cards=(FITS, DOES_NOT_FIT, UNKNOWN, TOO_CLOSE),
        offers="=book",
        offer_books=(
            BookFigures(
                name="=book",
                seller="@seller|ü, Ltd",
                currency="EUR",
                offered_on=OFFERED_ON,
                age_days=31,
                stale=True,
                indicative=False,
                notes=("-1 | are 31 days old", "=note"),
            ),
        ),
        assumptions=(
            "upper bound: 2% of allocated for fragmentation; " + "a long sentence that has to be wrapped " * 4,
        ),
        notes=("größer ✓ | as a pipe", "=1+1", "first line\nsecond | line", SCRIPT),
    )


def plain_precision() -> Precision:
    return Precision(
        stored=(DtypeShare(dtype="BF16", size_bytes=GIB, tensors=1),),
        resident=(DtypeShare(dtype="bfloat16", size_bytes=GIB, tensors=1),),
        compute=(
            ComputeDtype(family="matmul", dtypes=("bfloat16",), calls=7),
            ComputeDtype(family="norm", dtypes=("float32", "bfloat16"), calls=2),
        ),
        kv=(DtypeShare(dtype="float8_e4m3fn", size_bytes=2**20, tensors=2),),
    )
