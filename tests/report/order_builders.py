"""An order that holds every hard value a format can meet."""

from __future__ import annotations

import datetime

import msgspec
from report_builders import GIB, HUGE

from gpufit.advice.verdict import Verdict
from gpufit.profile.environment import Engine, ModelInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.peaks import Phase
from gpufit.report.document import Scenario
from gpufit.report.order_document import (
    Check,
    Cost,
    EnvironmentRow,
    HeldOtherwise,
    Idle,
    Margin,
    OrderDocument,
    OrderedCard,
    Readiness,
    Saved,
    TermFigures,
    Work,
    Worker,
)
from gpufit.report.order_pieces import completion_of, pieces_of


def hard_order() -> OrderDocument:
    return OrderDocument(
        gpufit_version="0.1.0",
        evidence=Evidence.SCALED,
        ready=False,
        readiness=Readiness.NOT_READY,
        blockers=("=1+1 | too close: größer ✓",),
        spread="-2 copies | of <b>one</b>",
        profile="profiles/=1+1|ü.json",
        measured_on="Card | \x1b[31mred\x1b[0m",
        holds_for="=größer|模型, transformers 5.24.0 (sdpa)",
        model=ModelInfo(
            name='=HYPERLINK("http://x","größer|模型")',
            source="models/=x",
            fingerprint="0" * 64,
            architecture="LlamaForCausalLM",
            model_type="llama",
            parameters=8_030_261_248,
            generates=True,
            revision="+main",
        ),
        weights_read=True,
        engine=Engine(name="transformers", version="5.24.0", attention="sdpa"),
        scenario=Scenario(context_tokens=131_072, new_tokens=1000, concurrency=7, cached_tokens=132_071, weights="FP8"),
        held=HeldOtherwise(words="weights FP8", options="--dtype '=größer|1'", remarks=("@a | <b>b</b>", "-c")),
        card=OrderedCard(
            card="x1|80gb",
            name="Größte Card ✓ 测试",
            form_factor="@SXM",
            devices_per_card=2,
            arrangement="replicas",
            ranks=2,
            cards_needed=3,
            lot_size=2,
            lots=2,
            cards_paid=4,
            idle_cards=1,
        ),
        idle=Idle(cards=1, cost_share=0.25, price=50.13, copies=1, sequences=12),
        term_days=7,
        term_purpose="variants | repeated",
        terms=(
            term(3, holds=False, workers=None, lots=None, price=None),
            term(7, holds=True, workers=3, lots=2, price=100.25),
            term(30, holds=True, workers=1, lots=1, price=1_234_567.25),
        ),
        cost=Cost(
            book="=book",
            seller="@Seller|x",
            currency="EUR",
            date=datetime.date(2026, 1, 31),
            price_per_lot=100.25,
            total_price=200.5,
            stale=True,
            indicative=True,
        ),
        work=Work(
            inputs=10,
            tokens=HUGE,
            inputs_per_second=0.5,
            tokens_per_second=1e-9,
            throughput="=4 inputs | in 8 s",
            throughput_evidence=Evidence.MEASURED,
            throughput_lower_bound=True,
            processing_hours=100.125,
            setup_hours=4.0,
            checks_hours=0.0,
            export_hours=2.5,
            busy_share=0.9,
            total_hours=106.625,
            hours_upper_bound=True,
            hours_evidence=Evidence.SCALED,
        ),
        workers=(
            Worker(worker=1, devices="0-1", at_once=3, first_input=1, last_input=5, inputs=5),
            Worker(worker=2, devices="2-3", at_once=3, first_input=6, last_input=10, inputs=5),
            Worker(worker=3, devices="4-5", at_once=3, first_input=None, last_input=None, inputs=0),
        ),
        pieces=pieces_of(10, 3, 2),
        completion=completion_of(10),
        environment=(
            EnvironmentRow(component="driver", declared=None, origin="unknown", needed=None, source="unknown"),
            EnvironmentRow(component="=torch", declared="2.9|cu128", origin="measured", needed="-2", source="catalog"),
        ),
        margin=Margin(
            at_once=3,
            verdict=Verdict.TOO_CLOSE,
            reason="=no bfloat16 | größer",
            capacity_bytes=80 * GIB,
            need_bytes=79 * GIB,
            need_lower_bytes=70 * GIB,
            need_upper_bytes=81 * GIB,
            headroom_bytes=GIB,
            headroom_lower_bytes=-GIB,
            headroom_upper_bytes=10 * GIB,
            max_concurrency=2,
            binding_phase=Phase.DECODE,
            binding_part="kv_cache_bytes",
            held_out_error=0.00125,
            evidence=Evidence.SCALED,
        ),
        checks=(Check(title="=cards", command="nvidia-smi | head", expect="4 | devices", decides=True),),
        save=(Saved(what="@weights", how="revision +main | not the bytes"),),
        assumptions=("=4 h | of set-up",),
        notes=("größer ✓ | as a pipe", "=1+1"),
    )


def term(days: int, holds: bool, workers: int | None, lots: int | None, price: float | None) -> TermFigures:
    return TermFigures(
        days=days,
        hours=24 * days,
        purpose="=a | b",
        holds=holds,
        workers=workers,
        cards=None if lots is None else 2 * lots,
        lots=lots,
        price_per_lot=price,
        total_price=None if price is None or lots is None else price * lots,
    )


def empty_order() -> OrderDocument:
    """Nothing to order, and nothing known."""
    order = hard_order()
    return msgspec.structs.replace(
        order,
        spread="",
        weights_read=False,
        card=msgspec.structs.replace(
            order.card, arrangement=None, cards_needed=None, lots=None, cards_paid=None, idle_cards=None
        ),
        idle=None,
        term_days=None,
        term_purpose="",
        terms=(),
        cost=Cost(
            book="blank",
            seller=None,
            currency=None,
            date=None,
            price_per_lot=None,
            total_price=None,
            stale=False,
            indicative=False,
        ),
        work=msgspec.structs.replace(
            order.work,
            inputs=None,
            tokens=None,
            inputs_per_second=None,
            tokens_per_second=None,
            throughput="",
            throughput_evidence=None,
            throughput_lower_bound=False,
            processing_hours=None,
            total_hours=None,
            hours_upper_bound=False,
            hours_evidence=None,
        ),
        workers=(),
        pieces=None,
        completion=None,
        environment=(),
        margin=msgspec.structs.replace(
            order.margin,
            verdict=Verdict.UNKNOWN,
            reason=None,
            capacity_bytes=None,
            headroom_bytes=None,
            headroom_lower_bytes=None,
            headroom_upper_bytes=None,
            max_concurrency=None,
            held_out_error=None,
        ),
        checks=(),
        save=(),
        notes=(),
    )
