"""One forward pass of a model in transformers, as blocks that come and go.

Layers of a kind ask for the same, so each kind is told once, as the last layer of the stack: every other layer has its
keys and values in place by then, and at no earlier layer is more alive.

Sources: the modelling files of each release; https://github.com/huggingface/transformers/blob/main/src/transformers/
models/llama/modeling_llama.py and its like.
"""

from __future__ import annotations

from gpufit.architecture.record import Architecture, Experts
from gpufit.memory.engines.tape import Size
from gpufit.memory.engines.transformers.attention import BEYOND_WINDOW, attention_layer
from gpufit.memory.engines.transformers.cache import whole_cache
from gpufit.memory.engines.transformers.experts import expert_mlp
from gpufit.memory.engines.transformers.mlp import mlp
from gpufit.memory.engines.transformers.passes import INDEX, SINGLE, Extent, Forward, Run
from gpufit.memory.engines.transformers.rules import OWNERS_OF_TABLES, Rules

MASK = 1
"""Bytes of an entry of a boolean mask."""


def told(model: Architecture, run: Run, extent: Extent) -> Forward:
    """The pass on its tape: every layer kind once, then the logits."""
    forward = Forward(model, run, extent)
    tape = forward.tape
    tape.new(Size.of("constant", run.kernels.buffer_bytes))
    tape.new(Size.of(extent.cached if model.generates else extent.row, 2 * INDEX), "inputs_bytes")
    held = [tape.new(forward.rows(model.hidden), "activations_bytes") for _ in range(2 if model.layers > 1 else 1)]
    shared = [*_shared(forward), *_outputs_before(forward)]
    for kind in model.caches or (None,):
        attention_layer(forward, kind)
    whole_cache(forward)
    for experts in _mlp_kinds(forward):
        _mlp_layer(forward, experts)
    tape.free(*held, *shared)
    _logits(forward)
    return forward


def _shared(forward: Forward) -> list[int]:
    """What all layers of the pass use: rotary cosines and sines, a mask where attention takes one."""
    tape, model, run, extent = forward.tape, forward.model, forward.run, forward.extent
    made = []
    if model.rotary is not None and not keeps_tables(model, run.rules):
        turns = Size.of(extent.position, 2 * model.rotary.dim * run.element_bytes)
        made.append(tape.new(turns, "activations_bytes"))
    if model.sliding_window is not None and extent.past is None and run.attention == "sdpa":
        made.append(tape.new(Size.of(BEYOND_WINDOW, MASK)))
    if run.attention == "eager" and model.generates:
        whole = extent.score if run.rules.all_logits_twice else extent.pair
        made.append(tape.new(Size.of(whole, run.element_bytes)))
    return made


def _outputs_before(forward: Forward) -> list[int]:
    """Logits of the step before, where they outlive it: in the first step those of the prompt."""
    if forward.extent.past is None or not forward.run.rules.outputs_outlive_step:
        return []
    rows = "per_prompt_token" if forward.extent.in_window == "per_prompt_token" else forward.extent.row
    return [forward.tape.new(Size.of(rows, forward.model.vocabulary * SINGLE), "outputs_bytes")]


def _mlp_kinds(forward: Forward) -> tuple[Experts | None, ...]:
    experts = forward.model.experts
    if experts is None:
        return (None,)
    return (experts,) if experts.layers >= forward.model.layers else (None, experts)


def _mlp_layer(forward: Forward, experts: Experts | None) -> None:
    tape = forward.tape
    with tape.at("mlp" if experts is None else "experts"):
        summed = tape.new(forward.rows(forward.model.hidden))
        normed = forward.norm()
        if experts is None:
            mlp(forward, forward.model.intermediate)
        else:
            expert_mlp(forward, experts)
        tape.free(normed, summed)


def _logits(forward: Forward) -> None:
    """The last norm, and the projection to the vocabulary of every position or of the last."""
    tape, model = forward.tape, forward.model
    with tape.at("logits"):
        hidden = tape.new(forward.rows(model.hidden), "activations_bytes")
        if not model.generates:
            tape.become(hidden, "outputs_bytes")
            return
        if forward.run.rules.all_logits_twice:
            half = tape.new(forward.rows(model.vocabulary), "activations_bytes")
            tape.new(forward.rows(model.vocabulary, SINGLE), "outputs_bytes")
            tape.free(half, hidden)
            return
        tape.new(Size.of("per_sequence", model.vocabulary * forward.run.element_bytes), "outputs_bytes")
        tape.free(hidden)


def keeps_tables(model: Architecture, rules: Rules) -> bool:
    """Whether every layer keeps cosines and sines of all positions."""
    if model.rotary is None:
        return False
    return rules.llama_rotary_tables if model.model_type in OWNERS_OF_TABLES else rules.other_rotary_tables
