"""One forward pass: what it depends on, the terms that its sizes are told in, and the tape that it is told on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpufit.architecture.record import Architecture
from gpufit.memory.engines.tape import Size, Tape
from gpufit.memory.engines.transformers.kernels import NO_KERNELS, Kernels
from gpufit.memory.engines.transformers.rules import Rules
from gpufit.profile.memory_model import TermName
from gpufit.profile.peaks import Phase

SINGLE = 4
"""Bytes of float32, which norms and scores are computed in."""
INDEX = 8
"""Bytes of int64: token ids and masks as the tokenizer gives them."""


@dataclass(frozen=True)
class Run:
    """What a forward pass depends on beside the model."""

    rules: Rules
    element_bytes: int
    """Of a weight and an activation, in the dtype that is computed in."""
    kv_element_bytes: int
    attention: str
    """`eager`, `sdpa` or `flash_attention_2`."""
    widens_for_softmax: bool = False
    """Whether scores are copied to float32 before the softmax: those in bfloat16."""
    kernels: Kernels = NO_KERNELS
    """What the kernels of quantised weights take."""
    on_card: bool = True
    """False for a CPU, where steps run experts as prompts do."""


@dataclass(frozen=True)
class Extent:
    """The terms that sizes of one phase are told in."""

    row: TermName
    """One for each token that the pass computes."""
    position: TermName
    """One for each position that it computes, shared by all sequences."""
    score: TermName
    """One for each pair of a query and a key, of every sequence."""
    pair: TermName
    """The same, shared by all sequences."""
    cached: TermName
    """One for each token in the cache when the pass ends."""
    past: TermName | None
    """One for each token in it before; None for a prompt."""
    in_window: TermName
    """One for each token that a sliding layer holds until the pass reaches it."""
    left_in_window: TermName
    """One for each token that it holds afterwards."""


PROMPT = Extent("per_token", "per_position", "per_token_squared", "mask", "per_token", None, "per_token", "per_token")
STEP = Extent(
    "per_sequence",
    "constant",
    "per_token",
    "per_position",
    "per_token",
    "per_past_token",
    "per_token_in_window",
    "per_token_in_window",
)
FIRST = replace(STEP, in_window="per_prompt_token")
"""The first step: sliding layers still hold the whole prompt, as prefill left it."""


class Forward:
    """The tape of one pass of one model, and what its layers have in common."""

    def __init__(self, model: Architecture, run: Run, extent: Extent) -> None:
        self.model, self.run, self.extent = model, run, extent
        self.tape = Tape()
        self.fused_gate = any(one.name.endswith(".mlp.gate_up_proj.weight") for one in model.weights)
        """Whether the checkpoint holds gate and up as one matrix (Phi 3, GLM 4)."""
        self.has_sinks = any(one.name.endswith(".sinks") for one in model.weights)
        """Whether attention has a sink beside the scores (gpt-oss)."""

    def rows(self, elements: float, element_bytes: int | None = None) -> Size:
        """So many elements for each token computed, in the compute dtype unless said otherwise."""
        return Size.of(self.extent.row, elements * (element_bytes or self.run.element_bytes))

    def norm(self) -> int:
        """RMSNorm: widened to float32, squared, scaled, cast back, times its weight."""
        tape, hidden = self.tape, self.model.hidden
        wide = tape.new(self.rows(hidden, SINGLE))
        squares = tape.new(self.rows(hidden, SINGLE))
        tape.free(squares)
        scaled = tape.new(self.rows(hidden, SINGLE))
        tape.free(wide)
        cast = tape.new(self.rows(hidden))
        normed = tape.new(self.rows(hidden), "activations_bytes")
        tape.free(cast, scaled)
        return normed


def phase_of(extent: Extent, model: Architecture) -> Phase:
    """Which phase an extent is of."""
    if not model.generates:
        return Phase.FORWARD
    return Phase.PREFILL if extent.past is None else Phase.DECODE
