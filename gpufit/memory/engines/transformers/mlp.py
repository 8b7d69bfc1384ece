"""The MLP of a forward pass.

Sources: the modelling files of each release; https://github.com/huggingface/transformers/blob/main/src/transformers/
models/llama/modeling_llama.py and its like.
"""

from __future__ import annotations

from gpufit.memory.engines.transformers.passes import Forward

STEPS_OF_GELU = 3
"""Results alive beside input and output of 0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x ** 3))), which
`gelu_new` writes out (activations.py)."""


def mlp(forward: Forward, intermediate: int) -> None:
    """Gate, activation, up, product, down; without a gate: up, activation, down."""
    tape = forward.tape
    width = forward.rows(intermediate)
    if forward.fused_gate:
        # One matrix makes gate and up; both are views of what it made until the layer returns.
        both = tape.new(width * 2, "activations_bytes")
        active = tape.new(width, "activations_bytes")
        product = tape.new(width)
        tape.free(active)
        down = tape.new(forward.rows(forward.model.hidden), "activations_bytes")
        tape.free(both, product, down)
        return
    gate = tape.new(width, "activations_bytes")
    steps = (width,) * STEPS_OF_GELU if _in_steps(forward) else ()
    with tape.held(*steps):
        active = tape.new(width, "activations_bytes")
    if forward.model.gated:
        tape.free(gate)
        up = tape.new(width, "activations_bytes")
        product = tape.new(width)
        tape.free(active, up)
        active = product
    else:
        tape.free(gate)
    down = tape.new(forward.rows(forward.model.hidden), "activations_bytes")
    tape.free(active, down)


def _in_steps(forward: Forward) -> bool:
    """Whether the activation is made of several operations, each with a result of its own."""
    named = forward.model.activation
    return named in ("gelu_new", "gelu_fast", "gelu_python") or (not named and not forward.model.gated)
