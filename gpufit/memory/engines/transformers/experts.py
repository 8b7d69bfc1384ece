"""The routed experts of a forward pass.

Sources: integrations/moe.py and the modelling files of each release.
"""

from __future__ import annotations

from gpufit.architecture.record import Experts
from gpufit.memory.engines.tape import Size
from gpufit.memory.engines.transformers.mlp import mlp
from gpufit.memory.engines.transformers.passes import INDEX, SINGLE, Forward
from gpufit.memory.engines.transformers.rules import ALL_EXPERTS, CASTS_ROUTING, NOT_GROUPED


def expert_mlp(forward: Forward, experts: Experts) -> None:
    """Routed experts, and the ones that every token goes through."""
    tape, hidden, model_type = forward.tape, forward.model.hidden, forward.model.model_type
    router = tape.new(forward.rows(experts.count), "activations_bytes")
    scores = tape.new(forward.rows(experts.count, SINGLE))
    if model_type in ALL_EXPERTS:
        result = _all_experts(forward, experts)
    elif forward.run.rules.grouped_experts and model_type not in NOT_GROUPED:
        steps_on_a_card = forward.extent.past is not None and forward.run.on_card
        result = _gathered(forward, experts) if steps_on_a_card else _grouped(forward, experts)
    else:
        # One after another, each with the tokens that chose it: their share, if all are chosen alike.
        result = tape.new(forward.rows(hidden))
        share = experts.per_token / experts.count
        choices = tape.new(forward.rows(experts.per_token * experts.count, INDEX))
        picked = tape.new(forward.rows(share * hidden))
        _mlp_share(forward, share * experts.intermediate)
        down = tape.new(forward.rows(share * hidden))
        weighted = tape.new(forward.rows(share * hidden))
        tape.free(picked, down, weighted, choices)
    if experts.shared_intermediate:
        mlp(forward, experts.shared_intermediate)
    tape.free(router, scores, result)


def _all_experts(forward: Forward, experts: Experts) -> int:
    """Llama 4: every token through every expert, weighed by its scores."""
    tape, every, width = forward.tape, experts.count, forward.rows(experts.count * experts.intermediate)
    copied = tape.new(forward.rows(every * forward.model.hidden))
    routed = tape.new(forward.rows(every * forward.model.hidden))
    tape.free(copied)
    both = tape.new(width * 2)
    active = tape.new(width, "activations_bytes")
    product = tape.new(width)
    tape.free(active)
    out = tape.new(forward.rows(every * forward.model.hidden))
    tape.free(both, product, routed)
    return out


def _grouped(forward: Forward, experts: Experts) -> int:
    """Every token once for each expert it chose, in one product; what they add up to."""
    tape, chosen, hidden = forward.tape, experts.per_token, forward.rows(experts.per_token * forward.model.hidden)
    picked = tape.new(hidden)
    both = tape.new(forward.rows(chosen * 2 * experts.intermediate))
    if forward.has_sinks:
        product = _gate_with_biases(forward, experts, both)
    else:
        active = tape.new(forward.rows(chosen * experts.intermediate), "activations_bytes")
        product = tape.new(forward.rows(chosen * experts.intermediate))
        tape.free(both, active)
    down = tape.new(hidden)
    tape.free(product)
    casts = forward.model.model_type in CASTS_ROUTING
    scaled = hidden if casts else forward.rows(chosen * forward.model.hidden, SINGLE)
    weighted = tape.new(scaled)
    ordered = tape.new(scaled)
    tape.free(weighted)
    result = tape.new(forward.rows(forward.model.hidden))
    tape.free(picked, down, ordered)
    return result


def _gate_with_biases(forward: Forward, experts: Experts, both: int) -> int:
    """gpt-oss: biases gathered for every choice, gate and up clamped, and each step's result alive."""
    tape, width = forward.tape, forward.rows(experts.per_token * experts.intermediate)
    biases = tape.new(width * 2)
    biased = tape.new(width * 2)
    tape.free(both)
    with tape.held(width, width, width):
        product = tape.new(width)
    tape.free(biased, biases)
    return product


def _gathered(forward: Forward, experts: Experts) -> int:
    """The same for a step on a card, with a copy of the weights of every expert that each token chose; experts that
    are packed have kernels of their own."""
    tape, chosen = forward.tape, experts.per_token
    gathers = not forward.run.kernels.packed_experts
    matrix = Size.of(
        forward.extent.row, chosen * experts.intermediate * forward.model.hidden * forward.run.element_bytes
    )
    picked = tape.new(forward.rows(chosen * forward.model.hidden))
    first = tape.new(matrix * (2 if gathers else 0))
    both = tape.new(forward.rows(chosen * 2 * experts.intermediate))
    product = tape.new(forward.rows(chosen * experts.intermediate))
    tape.free(both)
    second = tape.new(matrix * (1 if gathers else 0))
    tape.free(first)
    down = tape.new(forward.rows(chosen * forward.model.hidden))
    tape.free(product)
    result = tape.new(forward.rows(chosen * forward.model.hidden, SINGLE))
    tape.free(picked, second, down)
    return result


def _mlp_share(forward: Forward, width: float) -> None:
    tape = forward.tape
    active = tape.new(forward.rows(width))
    up = tape.new(forward.rows(width))
    product = tape.new(forward.rows(width))
    tape.free(active, up, product)
