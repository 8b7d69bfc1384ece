"""Whole profiles with any values their fields allow."""

from __future__ import annotations

import typing
from typing import Any

from hypothesis import strategies as st

from gpufit.profile.cells import Cell, Failed, Measured, OutOfMemory, Skipped
from gpufit.profile.environment import DeviceInfo, Engine, Environment, ModelInfo
from gpufit.profile.evidence import Evidence
from gpufit.profile.memory_model import Coefficient, MemoryModel, MomentModel, PartModel, PhaseModel, TermName
from gpufit.profile.peaks import DeviceReading, Moment, NamedSize, Parts, Phase, PhasePeak
from gpufit.profile.precision import ComputeDtype, DtypeShare, Precision, Quantization
from gpufit.profile.record import SCHEMA_VERSION, Profile
from gpufit.profile.workload import Workload

words = st.text(max_size=12)
sizes = st.integers(0, 2**50)
counts = st.integers(1, 2**40)
seconds = st.floats(0, 1e9)
ratios = st.floats(0, 10)
phases = st.sampled_from(Phase)
evidence = st.sampled_from(Evidence)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def some(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=2).map(tuple)


parts = st.builds(Parts, **dict.fromkeys(Parts.NAMES, sizes))
readings = st.builds(DeviceReading, source=words, quantity=words, size_bytes=sizes)
shares = st.builds(DtypeShare, dtype=words, size_bytes=sizes, tensors=sizes)


@st.composite
def peaks(draw: st.DrawFn) -> PhasePeak:
    made = draw(parts)
    return PhasePeak(
        phase=draw(phases),
        parts=made,
        allocated_bytes=sum(getattr(made, name) for name in Parts.NAMES),
        evidence=draw(evidence),
        site=draw(words),
        moments=draw(some(st.builds(Moment, site=words, parts=st.just(made) | st.just(Parts())))),
        cached_tokens=draw(sizes),
        readings=draw(some(readings)),
        largest_temporaries=draw(some(st.builds(NamedSize, name=words, size_bytes=sizes))),
    )


outcomes = st.one_of(
    st.builds(
        Measured,
        phases=some(peaks()),
        inputs_completed=sizes,
        wall_seconds=seconds,
        time_to_first_token_seconds=maybe(seconds),
    ),
    st.builds(OutOfMemory, phase=phases, message=words, asked_bytes=maybe(sizes), limit_bytes=maybe(sizes)),
    st.builds(Failed, error=words),
    st.builds(Skipped, why=words),
)
cells = st.builds(Cell, context_tokens=counts, new_tokens=sizes, concurrency=counts, outcome=outcomes)
part_models = st.builds(
    PartModel,
    part=st.sampled_from(Parts.NAMES),
    coefficients=some(
        st.builds(Coefficient, term=st.sampled_from(typing.get_args(TermName)), bytes_per_unit=st.floats(0, 1e15))
    ),
)
memory_models = st.builds(
    MemoryModel,
    phases=some(
        st.builds(
            PhaseModel,
            phase=phases,
            moments=some(st.builds(MomentModel, site=words, parts=some(part_models))),
            alternatives=some(some(part_models)),
            fitted_cells=sizes,
            held_out_cells=sizes,
            worst_fitted_error=ratios,
            worst_held_out_error=maybe(ratios),
            worst_miss_bytes=sizes,
            largest_growth_bytes=sizes,
        )
    ),
    max_cached_tokens=counts,
    max_concurrency=counts,
    max_total_tokens=counts,
)
profiles = st.builds(
    Profile,
    schema_version=st.just(SCHEMA_VERSION),
    evidence=evidence,
    model=st.builds(
        ModelInfo,
        parameters=sizes,
        position_limit=maybe(counts),
        sliding_window=maybe(counts),
        chunk_tokens=maybe(counts),
        revision=maybe(words),
    ),
    engine=st.builds(Engine),
    precision=st.builds(
        Precision,
        stored=some(shares),
        resident=some(shares),
        compute=some(st.builds(ComputeDtype, family=words, dtypes=some(words), calls=sizes, inputs=some(words))),
        kv=some(shares),
        quantization=maybe(st.builds(Quantization, method=words, parameters=st.dictionaries(words, words, max_size=2))),
        findings=some(words),
    ),
    environment=st.builds(
        Environment,
        device=st.builds(
            DeviceInfo,
            total_bytes=sizes,
            used_before_bytes=maybe(sizes),
            pci_id=maybe(words),
            context_bytes=maybe(sizes),
        ),
        versions=st.dictionaries(words, words, max_size=2),
        settings=st.dictionaries(words, words, max_size=2),
        flags=some(words),
    ),
    workload=st.builds(
        Workload,
        contexts_tokens=some(counts),
        concurrencies=some(counts),
        new_tokens=sizes,
        seed=sizes,
        quantization=maybe(words),
        compute_dtype=maybe(words),
    ),
    load=peaks(),
    cells=some(cells),
    memory_model=maybe(memory_models),
    complete=st.booleans(),
    notes=some(words),
)
