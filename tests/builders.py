"""Records with defaults, for tests that care about one field of many.

The default profile is a small decoder whose bytes are plain arithmetic: weights 256,000,000; buffers 4,000; a cache of
20,000 bytes a token; activations 3,000 a token of the prompt (prefill) or 5,000 a sequence (decode);
temporaries 1,000,000 and 2,000 a token (prefill) or 600 a cached token (decode); logits of 100,000 a sequence.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import Any

import msgspec

from gpufit.catalog.card_parts import CardMemory, ContextFigure
from gpufit.catalog.offers import OfferBook, Offers
from gpufit.catalog.record import Card
from gpufit.memory.predict import MomentPrediction, PhasePrediction
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Cell, Measured
from gpufit.profile.environment import DeviceInfo, Engine, Environment, ModelInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.layout import Layout, Shard
from gpufit.profile.memory_model import Coefficient, MemoryModel, MomentModel, PartModel, PhaseModel
from gpufit.profile.peaks import Parts, Phase, PhasePeak
from gpufit.profile.precision import ComputeDtype, DtypeShare, Precision
from gpufit.profile.record import Profile
from gpufit.profile.workload import Workload

TODAY = datetime.date(2026, 3, 1)

WEIGHTS = 256_000_000
BUFFERS = 4_000
KV_PER_TOKEN = 20_000


def make_parts(**sizes: int) -> Parts:
    return msgspec.structs.replace(Parts(weights_bytes=WEIGHTS, buffers_bytes=BUFFERS), **sizes)


def make_peak(phase: Phase, parts: Parts, cached_tokens: int = 0) -> PhasePeak:
    return PhasePeak(
        phase=phase,
        parts=parts,
        allocated_bytes=parts.total_bytes,
        evidence=Evidence.MEASURED,
        cached_tokens=cached_tokens,
    )


def prefill_parts(shape: Shape) -> Parts:
    tokens = shape.context_tokens * shape.concurrency
    return make_parts(
        kv_cache_bytes=KV_PER_TOKEN * tokens,
        inputs_bytes=16 * tokens,
        outputs_bytes=100_000 * shape.concurrency,
        activations_bytes=3_000 * tokens,
        temporaries_bytes=1_000_000 + 2_000 * tokens,
    )


def decode_parts(shape: Shape) -> Parts:
    tokens = shape.cached_tokens * shape.concurrency
    return make_parts(
        kv_cache_bytes=KV_PER_TOKEN * tokens,
        inputs_bytes=16 * tokens,
        outputs_bytes=100_000 * shape.concurrency,
        activations_bytes=5_000 * shape.concurrency,
        temporaries_bytes=1_000_000 + 600 * tokens,
    )


def make_cell(context: int = 128, concurrency: int = 1, new_tokens: int = 4) -> Cell:
    shape = Shape(context, new_tokens, concurrency)
    return Cell(
        context_tokens=context,
        new_tokens=new_tokens,
        concurrency=concurrency,
        outcome=Measured(
            phases=(
                make_peak(Phase.PREFILL, prefill_parts(shape), context),
                make_peak(Phase.DECODE, decode_parts(shape), shape.cached_tokens),
            ),
            inputs_completed=concurrency,
            wall_seconds=1.0,
            time_to_first_token_seconds=0.5,
        ),
    )


def _part(name: str, **terms: float) -> PartModel:
    return PartModel(
        part=name,
        coefficients=tuple(Coefficient(term=term, bytes_per_unit=value) for term, value in terms.items()),
    )


def make_moment(parts: Sequence[PartModel], site: str = "layers.0-1.mlp") -> MomentModel:
    return MomentModel(site=site, parts=tuple(parts))


def make_memory_model(**changes: Any) -> MemoryModel:
    shared = (
        _part("weights_bytes", constant=WEIGHTS),
        _part("buffers_bytes", constant=BUFFERS),
        _part("kv_cache_bytes", per_token=KV_PER_TOKEN),
        _part("inputs_bytes", per_token=16),
        _part("outputs_bytes", per_sequence=100_000),
    )
    prefill = (
        *shared,
        _part("activations_bytes", per_token=3_000),
        _part("temporaries_bytes", constant=1_000_000, per_token=2_000),
    )
    decode = (
        *shared,
        _part("activations_bytes", per_sequence=5_000),
        _part("temporaries_bytes", constant=1_000_000, per_token=600),
    )
    fit = {
        "fitted_cells": 4,
        "held_out_cells": 2,
        "worst_fitted_error": 0.0,
        "worst_held_out_error": 0.0,
        "worst_miss_bytes": 0,
    }
    model = MemoryModel(
        phases=(
            PhaseModel(phase=Phase.PREFILL, moments=(make_moment(prefill),), largest_growth_bytes=52_632_768, **fit),
            PhaseModel(phase=Phase.DECODE, moments=(make_moment(decode),), largest_growth_bytes=43_888_960, **fit),
        ),
        max_cached_tokens=515,
        max_concurrency=4,
        max_total_tokens=2060,
    )
    return msgspec.structs.replace(model, **changes)


def make_profile(**changes: Any) -> Profile:
    profile = Profile(
        gpufit_version="0.1.0",
        created_at="2026-01-02T03:04:05Z",
        evidence=Evidence.MEASURED,
        model=ModelInfo(
            name="tiny-llama",
            source="models/tiny-llama",
            fingerprint="0" * 64,
            architecture="LlamaForCausalLM",
            model_type="llama",
            parameters=128_000_000,
            generates=True,
            position_limit=32_768,
        ),
        engine=Engine(name="transformers", version="5.24.0", attention="sdpa"),
        precision=Precision(
            stored=(DtypeShare(dtype="Q4_1", size_bytes=80_000_000, tensors=200),),
            resident=(DtypeShare(dtype="float16", size_bytes=WEIGHTS, tensors=200),),
            compute=(ComputeDtype(family="matmul", dtypes=("float16",), calls=211),),
            kv=(DtypeShare(dtype="float16", size_bytes=KV_PER_TOKEN * 128, tensors=60),),
            findings=("stored Q4_1, resident float16: dequantised at load",),
        ),
        environment=Environment(
            device=DeviceInfo(kind="cpu", name="AMD EPYC", total_bytes=24 * 2**30),
            versions={"torch": "2.13.0", "transformers": "5.24.0"},
            host="Linux",
        ),
        workload=Workload(
            contexts_tokens=(128, 512),
            concurrencies=(1, 2, 4),
            new_tokens=4,
            seed=0,
            dtype_requested="auto",
            logits_kept="last",
        ),
        load=make_peak(Phase.LOAD, make_parts(temporaries_bytes=500_000)),
        cells=tuple(make_cell(context, concurrency) for context in (128, 512) for concurrency in (1, 2, 4)),
        memory_model=make_memory_model(),
        complete=True,
    )
    return msgspec.structs.replace(profile, **changes)


def make_rank(ranks: int) -> Layout:
    """What one of so many ranks holds of `make_layout`: its share of everything."""
    return Layout(
        layers=10,
        largest_layer_bytes=20_000_000 // ranks,
        first_bytes=28_000_000 // ranks,
        last_bytes=28_000_000 // ranks,
        linear_bytes=200_000_000 // ranks,
        linear_elements=100_000_000 // ranks,
        largest_linear_elements=4_000_000 // ranks,
        largest_layer_rest_bytes=0,
        largest_layer_linear_elements=10_000_000 // ranks,
    )


def make_layout(**changes: Any) -> Layout:
    """Ten layers of 20,000,000 B between embeddings and head of 28,000,000 B each; two ranks hold half of it."""
    layout = Layout(
        layers=10,
        largest_layer_bytes=20_000_000,
        first_bytes=28_000_000,
        last_bytes=28_000_000,
        linear_bytes=200_000_000,
        linear_elements=100_000_000,
        largest_linear_elements=4_000_000,
        largest_layer_rest_bytes=0,
        largest_layer_linear_elements=10_000_000,
        shards=(
            Shard(ranks=2, weights_bytes=WEIGHTS // 2, kv_share=0.5, layout=make_rank(2)),
            Shard(ranks=4, weights_bytes=WEIGHTS // 4, kv_share=0.25, layout=make_rank(4)),
            Shard(ranks=8, refusal="4 KV heads cannot be divided over 8 ranks"),
        ),
    )
    return msgspec.structs.replace(layout, **changes)


def make_card(card_id: str = "x1-80gb", capacity_gib: float | None = 80.0, **fields: Any) -> Card:
    """A card of compute capability 9.0 whose driver context is 500 MiB, 512 at most."""
    given = {
        "vendor": "NVIDIA",
        "name": f"Card {card_id}",
        "compute_capability": "9.0",
        "memory": CardMemory(nominal_gb=80, planning_torch_gib=capacity_gib),
        "context": ContextFigure(mib=500, range_mib=(490, 512)),
    }
    return Card(id=card_id, **(given | fields))


def make_prediction(phase: Phase, parts: Parts, lower: int | None = None, upper: int | None = None) -> PhasePrediction:
    """A prediction with its point as both bounds, unless told otherwise."""
    bounds = (parts.total_bytes if lower is None else lower, parts.total_bytes if upper is None else upper)
    return PhasePrediction(
        phase=phase,
        parts=parts,
        lower_bytes=bounds[0],
        upper_bytes=bounds[1],
        evidence=Evidence.MEASURED,
        moments=(MomentPrediction(parts, *bounds),),
    )


def make_offers(*books: OfferBook, today: datetime.date = TODAY) -> Offers:
    """Some books, or one that is blank, on a day that stays."""
    return Offers(books or (OfferBook(name="b"),), today)
