"""From measured cells to a memory model: non-negative terms, tested on cells that were held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from gpufit.memory.predict import growth_of, predict_parts
from gpufit.memory.terms import CURVES, TERMS, Shape, terms_for
from gpufit.profile.record import (
    Cell,
    Coefficient,
    Measured,
    MemoryModel,
    PartModel,
    Parts,
    Phase,
    PhaseModel,
    PhasePeak,
    TermName,
)

FEWEST_CONTEXTS = 2
FEWEST_CONCURRENCIES = 2
FEWEST_CELLS = 4
"""With fewer, growth with context cannot be told from growth with concurrency, so no model is made."""

FEWEST_CELLS_TO_HOLD_OUT = 6
"""From here on two cells can be spared to test the fit: the largest, and one from the middle."""


STRAIGHT_ENOUGH = 0.01
"""Up to this held-out error no curvature is looked for: there is none to find (assumed)."""


@dataclass(frozen=True)
class Sample:
    """One phase of one measured cell."""

    shape: Shape
    peak: PhasePeak


def fit_memory_model(cells: Sequence[Cell], attention: str, window: int | None) -> MemoryModel | None:
    """Fit every phase of the measured cells; None when they are too few or too alike to tell terms apart."""
    shapes = [_shape(cell) for cell in cells if isinstance(cell.outcome, Measured)]
    phases = []
    for phase in (Phase.PREFILL, Phase.DECODE, Phase.FORWARD):
        samples = _samples(cells, phase)
        if _tell_terms_apart(samples):
            phases.append(_fit_phase(phase, samples, attention, window))
    if not phases:
        return None
    return MemoryModel(
        phases=tuple(phases),
        max_cached_tokens=max(shape.cached_tokens for shape in shapes),
        max_concurrency=max(shape.concurrency for shape in shapes),
        max_total_tokens=max(shape.total_tokens for shape in shapes),
    )


def _tell_terms_apart(samples: Sequence[Sample]) -> bool:
    """Whether growth with context, growth with concurrency and what is constant can be told from each other."""
    return (
        len({sample.shape.context_tokens for sample in samples}) >= FEWEST_CONTEXTS
        and len({sample.shape.concurrency for sample in samples}) >= FEWEST_CONCURRENCIES
        and len(samples) >= FEWEST_CELLS
    )


def _shape(cell: Cell) -> Shape:
    return Shape(cell.context_tokens, cell.new_tokens, cell.concurrency)


def _samples(cells: Sequence[Cell], phase: Phase) -> list[Sample]:
    return [
        Sample(_shape(cell), peak)
        for cell in cells
        if isinstance(cell.outcome, Measured)
        for peak in cell.outcome.phases
        if peak.phase is phase
    ]


def _hold_out(samples: Sequence[Sample]) -> tuple[list[Sample], list[Sample]]:
    """(fitted, held out): the largest cell tests extrapolation, the middle one interpolation.

    None is held out where the rest could no longer tell the terms apart.
    """
    ordered = sorted(samples, key=lambda sample: (sample.shape.total_tokens, sample.shape.concurrency))
    if len(ordered) < FEWEST_CELLS_TO_HOLD_OUT:
        return ordered, []
    middle = ordered[len(ordered) // 2]
    held_out = [middle, ordered[-1]]
    fitted = [sample for sample in ordered if sample not in held_out]
    return (fitted, held_out) if _tell_terms_apart(fitted) else (ordered, [])


def _fit_phase(phase: Phase, samples: Sequence[Sample], attention: str, window: int | None) -> PhaseModel:
    """The phase's model: straight, unless attention is eager or the held-out cells plainly ask for a curve.

    Fused attention falls back to keeping its scores for some shapes without saying so
    (https://github.com/huggingface/transformers/issues/46960), and a mask grows with tokens squared; a straight line
    through small cells may then promise too little, so every other fit is kept beside the one that is taken.
    """
    if phase is Phase.DECODE:
        return _fit_terms(phase, samples, window, ())
    fits = {curve: _fit_terms(phase, samples, window, curve) for curve in CURVES}
    candidates = [one for curve, one in fits.items() if attention != "eager" or "per_token_squared" in curve]
    straight, best = candidates[0], min(candidates, key=lambda one: one.worst_held_out_error or 0.0)
    asked_for = (straight.worst_held_out_error or 0.0) > STRAIGHT_ENOUGH and (best.worst_held_out_error or 0.0) <= (
        straight.worst_held_out_error or 0.0
    ) / 2
    taken = best if asked_for else straight
    explained = (taken.worst_held_out_error or 0.0) <= STRAIGHT_ENOUGH
    return msgspec.structs.replace(
        taken,
        alternatives=tuple(one.parts for one in fits.values() if one is not taken),
        # Where no fit explains the cells, none of them is to be trusted further than the worst.
        worst_miss_bytes=max(one.worst_miss_bytes for one in ([taken] if explained else fits.values())),
    )


def _fit_terms(phase: Phase, samples: Sequence[Sample], window: int | None, curve: tuple[TermName, ...]) -> PhaseModel:
    fitted, held_out = _hold_out(samples)
    parts = tuple(
        _fit_part(name, fitted, phase, terms_for(name, window, curve), window or 0)
        for name in Parts.NAMES
        if any(getattr(sample.peak.parts, name) for sample in samples)
    )
    misses = {id(sample): _miss(sample, parts, phase, window) for sample in samples}
    errors = {id(sample): misses[id(sample)] / sample.peak.allocated_bytes for sample in samples}
    return PhaseModel(
        phase=phase,
        parts=parts,
        fitted_cells=len(fitted),
        held_out_cells=len(held_out),
        worst_fitted_error=max(errors[id(sample)] for sample in fitted),
        worst_held_out_error=max((errors[id(sample)] for sample in held_out), default=None),
        worst_miss_bytes=max(misses.values()),
        largest_growth_bytes=max(growth_of(sample.peak.parts) for sample in samples),
    )


def _fit_part(name: str, samples: Sequence[Sample], phase: Phase, terms: Sequence[TermName], window: int) -> PartModel:
    """Non-negative least squares, each cell scaled by all that grows in it, so that small cells count like large ones.

    The scale is the same for every part, so that what one part loses to another at a different moment of the peak
    weighs as little as it does in their sum.
    """
    from scipy.optimize import nnls

    targets = [float(getattr(sample.peak.parts, name)) for sample in samples]
    rows, values = [], []
    for sample, target in zip(samples, targets, strict=True):
        weight = 1.0 / max(growth_of(sample.peak.parts), 1)
        units = [TERMS[term](sample.shape.concurrency, sample.shape.tokens_in(phase), window) for term in terms]
        rows.append([unit * weight for unit in units])
        values.append(target * weight)
    scales = [max(abs(row[column]) for row in rows) or 1.0 for column in range(len(terms))]
    solution, _ = nnls([[cell / scale for cell, scale in zip(row, scales, strict=True)] for row in rows], values)
    return PartModel(
        part=name,
        coefficients=tuple(
            Coefficient(term=term, bytes_per_unit=float(value) / scale)
            for term, value, scale in zip(terms, solution, scales, strict=True)
            if value > 0
        ),
    )


def _miss(sample: Sample, parts: Sequence[PartModel], phase: Phase, window: int | None) -> int:
    """How far the prediction of one sample's `allocated` is off, in bytes."""
    predicted = predict_parts(parts, phase, sample.shape, window)
    return abs(predicted.total_bytes - sample.peak.allocated_bytes)
