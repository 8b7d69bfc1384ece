"""The memory model of a model in transformers: weights and buffers as they stand, and the moments of every phase."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from gpufit.architecture.record import Architecture
from gpufit.memory.allocator import Settings, handed_out, rounded_size
from gpufit.memory.engines.transformers.forward import (
    FIRST,
    PROMPT,
    SINGLE,
    STEP,
    Extent,
    Forward,
    Run,
    keeps_tables,
    phase_of,
)
from gpufit.profile.record import (
    END_OF_PHASE,
    FIRST_STEP,
    Coefficient,
    MomentModel,
    PartModel,
    Parts,
    PhaseModel,
)


@dataclass(frozen=True)
class Resident:
    """What a model keeps in memory whatever it is asked: sizes in bytes of single blocks, each with how many there
    are."""

    weights: tuple[tuple[int, int], ...]
    buffers: tuple[tuple[int, int], ...]
    carved: bool
    """Whether the weights are cut from one block, or each asks the allocator for its own."""

    @property
    def parts(self) -> Parts:
        """Weights, buffers, and what the caching allocator rounds them up by."""
        weights, buffers = _total(self.weights), _total(self.buffers)
        block_of = block_size if self.carved else handed_out
        blocks = sum(block_of(size) * count for size, count in self.weights)
        blocks += sum(handed_out(size) * count for size, count in self.buffers)
        return Parts(weights_bytes=weights, buffers_bytes=buffers, rounding_bytes=blocks - weights - buffers)


def resident(model: Architecture, run: Run, weights: Iterable[tuple[int, int]]) -> Resident:
    """Weights as (bytes, how many), with the buffers that this release registers beside them."""
    buffers: list[tuple[int, int]] = []
    if model.rotary is not None:
        tables = keeps_tables(model, run.rules)
        owners = model.layers if tables else 1
        # Frequencies in float32; from the release without tables on a second copy of them, for scaling.
        buffers.append((model.rotary.dim // 2 * SINGLE, owners if tables else 2))
        if tables:
            size = (model.position_limit or 0) * model.rotary.dim * run.element_bytes
            buffers.append((size, 2 * owners))
    return Resident(tuple(weights), tuple(buffers), run.rules.carves_weights)


def block_size(size: int) -> int:
    """Bytes of a block that is cut from a larger one."""
    return rounded_size(size, Settings())


def phases(model: Architecture, run: Run, kept: Parts) -> tuple[PhaseModel, ...]:
    """Every phase of the model with its moments, `kept` in each of them."""
    constant = tuple(
        PartModel(part=part, coefficients=(Coefficient(term="constant", bytes_per_unit=size),))
        for part, size in msgspec.structs.asdict(kept).items()
        if size
    )
    prompt = _told(model, run, PROMPT)
    found = [_phase(PROMPT, model, constant, prompt.tape.moments(), prompt)]
    if model.generates:
        step = _told(model, run, STEP)
        moments = step.tape.moments()
        if model.sliding_window is not None and run.rules.sliding_cache:
            first = _told(model, run, FIRST).tape.moments()
            moments += tuple(msgspec.structs.replace(one, site=FIRST_STEP + one.site) for one in first)
        found.append(_phase(STEP, model, constant, moments, step))
    return tuple(found)


def _told(model: Architecture, run: Run, extent: Extent) -> Forward:
    forward = Forward(model, run, extent)
    forward.tell()
    return forward


def _phase(
    extent: Extent, model: Architecture, kept: Sequence[PartModel], moments: Sequence[MomentModel], told: Forward
) -> PhaseModel:
    ends = told.tape.end(END_OF_PHASE)
    return PhaseModel(
        phase=phase_of(extent, model),
        moments=tuple(_with(one, kept) for one in (*moments, ends)),
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


def _total(sizes: Iterable[tuple[int, int]]) -> int:
    return sum(size * count for size, count in sizes)
