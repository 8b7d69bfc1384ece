"""The memory model of a model in transformers: weights and buffers as they stand, and the moments of every phase."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from gpufit.architecture.record import Architecture
from gpufit.memory.allocator import Settings, handed_out, rounded_size, simulate
from gpufit.memory.engines.transformers.forward import keeps_tables, told
from gpufit.memory.engines.transformers.kernels import Kernels
from gpufit.memory.engines.transformers.passes import FIRST, PROMPT, SINGLE, STEP, Extent, Forward, Run, phase_of
from gpufit.memory.replay import Event, Window
from gpufit.profile.memory_model import Coefficient, MomentModel, PartModel, PhaseModel
from gpufit.profile.peaks import END_OF_PHASE, FIRST_STEP, Parts

MOST_SIMULATED = 50_000
"""Tensors up to which the allocator is asked block by block; of more (experts one by one) each is rounded by itself,
which differs by what shares a segment."""


@dataclass(frozen=True)
class Resident:
    """What a model keeps in memory whatever it is asked: sizes of single blocks in bytes, in the order of loading."""

    weights: tuple[int, ...]
    buffers: tuple[int, ...]
    reserved_first_bytes: int
    """What the loader asks for and gives back before it loads, so that weights are cut from it; 0: nothing."""

    @property
    def parts(self) -> Parts:
        """Weights, buffers, and what the caching allocator rounds them up by."""
        weights, buffers = sum(self.weights), sum(self.buffers)
        if len(self.weights) > MOST_SIMULATED:
            cut = bool(self.reserved_first_bytes)
            sizes = Counter(self.weights)
            blocks = sum((rounded_size(one, Settings()) if cut else handed_out(one)) * n for one, n in sizes.items())
            blocks += sum(handed_out(one) for one in self.buffers)
            return Parts(weights_bytes=weights, buffers_bytes=buffers, rounding_bytes=blocks - weights - buffers)
        first = [Event(0, self.reserved_first_bytes), Event(0, 0)] if self.reserved_first_bytes else []
        asked = [Event(number, size) for number, size in enumerate((*self.weights, *self.buffers), start=1) if size]
        end = len(first) + len(asked)
        (usage,) = simulate([*first, *asked], windows=[Window(end, end)]).windows
        blocks = 0 if usage is None else usage.allocated_bytes
        return Parts(weights_bytes=weights, buffers_bytes=buffers, rounding_bytes=blocks - weights - buffers)


def resident(model: Architecture, run: Run, weights: Iterable[int], stored_buffers: Iterable[int] = ()) -> Resident:
    """Weights as the size of every tensor in bytes, in the order of loading, with the buffers that this release
    registers beside them and those that the checkpoint stores."""
    buffers = list(stored_buffers)
    if model.rotary is not None:
        tables = keeps_tables(model, run.rules)
        owners = model.layers if tables else 1
        # Frequencies in float32; from the release without tables on a second copy of them, for scaling.
        buffers += [model.rotary.dim // 2 * SINGLE] * (owners if tables else 2)
        if tables:
            size = (model.position_limit or 0) * model.rotary.dim * run.element_bytes
            buffers += [size] * 2 * owners
    sizes = tuple(weights)
    share = run.rules.reserved_share_quantised if run.kernels.quantised else run.rules.reserved_share
    return Resident(sizes, tuple(buffers), int(sum(sizes) * share))


def phases(model: Architecture, run: Run, kept: Parts) -> tuple[PhaseModel, ...]:
    """Every phase of the model with its moments, `kept` in each of them."""
    constant = tuple(
        PartModel(part=part, coefficients=(Coefficient(term="constant", bytes_per_unit=size),))
        for part, size in msgspec.structs.asdict(kept).items()
        if size
    )
    prompt = told(model, run, PROMPT)
    found = [_phase(PROMPT, model, constant, prompt.tape.moments(), prompt)]
    if model.generates:
        step = told(model, run, STEP)
        moments = step.tape.moments()
        slides = model.sliding_window is not None and run.rules.sliding_cache
        if slides or run.rules.outputs_outlive_step:
            first = told(model, run, FIRST).tape.moments()
            moments += tuple(msgspec.structs.replace(one, site=FIRST_STEP + one.site) for one in first)
        found.append(_phase(STEP, model, constant, moments, step))
    return tuple(found)


def _phase(
    extent: Extent, model: Architecture, kept: Sequence[PartModel], moments: Sequence[MomentModel], forward: Forward
) -> PhaseModel:
    ends = forward.tape.end(END_OF_PHASE)
    found = tuple(_with(one, kept) for one in (*moments, ends))
    kernels = forward.run.kernels
    doubted = kernels.doubt_bytes or kernels.doubted_kv_share
    return PhaseModel(
        phase=phase_of(extent, model),
        moments=found,
        alternatives=tuple(_doubted(one.parts, kernels) for one in found) if doubted else (),
        fitted_cells=0,
        held_out_cells=0,
        worst_fitted_error=0.0,
        worst_held_out_error=None,
        worst_miss_bytes=0,
        largest_growth_bytes=0,
    )


def _with(moment: MomentModel, kept: Sequence[PartModel]) -> MomentModel:
    """A moment with what is there all along."""
    names = {part.part for part in moment.parts}
    clash = names & {part.part for part in kept}
    if clash:
        raise ValueError(f"a forward pass claims {sorted(clash)}, which stand before it begins")
    return msgspec.structs.replace(moment, parts=(*kept, *moment.parts))


def _doubted(parts: Sequence[PartModel], kernels: Kernels) -> tuple[PartModel, ...]:
    """The same with what the kernels may take beside it: temporaries, and a share of the KV cache once more."""
    coefficients = {one.part: {c.term: c.bytes_per_unit for c in one.coefficients} for one in parts}
    own = coefficients.setdefault("temporaries_bytes", {})
    own["constant"] = own.get("constant", 0.0) + kernels.doubt_bytes
    for term, each in coefficients.get("kv_cache_bytes", {}).items():
        own[term] = own.get(term, 0.0) + each * kernels.doubted_kv_share
    return tuple(
        PartModel(
            part=part, coefficients=tuple(Coefficient(term=term, bytes_per_unit=each) for term, each in terms.items())
        )
        for part, terms in coefficients.items()
    )
