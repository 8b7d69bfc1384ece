"""Every small architecture, on parts: weights to the byte, and what its cache holds, worked out from its config.

The sums name the matrices in the order of a layer; H is the hidden size 64 and V the vocabulary of 256.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest
import torch
import transformers
from architectures import ARCHITECTURES, POSITIONS, WINDOW
from architectures import HIDDEN as H
from architectures import VOCABULARY as V
from measure_plan import cached, kept, make_decoder

from gpufit.memory.terms import Shape
from gpufit.profile.peaks import Phase
from gpufit.sources.measure.drivers.encoder import Encoder
from gpufit.sources.measure.storages import resident_model

pytestmark = pytest.mark.model

BFLOAT16, FLOAT32, INT64 = 2, 4, 8

GQA = H * H + 2 * H * 32 + H * H
"""q, k and v, o: 4 heads and 2 KV heads of 16."""
WIDE = H * 128 + 2 * H * 64 + 128 * H
"""The same with heads of 32."""
MLP = 3 * H * 128
"""Gate, up and down."""
UNTIED = 2 * V * H + H
"""Embedding, head, final norm."""


def biased(inputs: int, outputs: int) -> int:
    return inputs * outputs + outputs


PARAMETERS = {
    "llama": UNTIED + 2 * (GQA + MLP + 2 * H),
    "mistral": UNTIED + 2 * (GQA + MLP + 2 * H),
    # Tied head; learned positions; a layer: two norms with bias, qkv, o, up and down.
    "gpt2": V * H
    + POSITIONS * H
    + 2 * (4 * H + biased(H, 3 * H) + biased(H, H) + biased(H, 4 * H) + biased(4 * H, H))
    + 2 * H,
    # Tied head; four norms a layer, and one each for q and k.
    "gemma3": V * H + 6 * (WIDE + 2 * 32 + MLP + 4 * H) + H,
    # All with bias; a sink for each head; router; experts of gate and up as one matrix, and down.
    "gpt_oss": UNTIED
    + 2
    * (
        biased(H, 128)
        + 2 * biased(H, 64)
        + biased(128, H)
        + 4
        + biased(H, 4)
        + 4 * (biased(H, 128) + biased(64, H))
        + 2 * H
    ),
    "mixtral": UNTIED + 2 * (GQA + H * 4 + 4 * MLP + 2 * H),
    "qwen3_moe": UNTIED + 2 * (WIDE + 2 * 32 + H * 8 + 8 * 3 * H * 32 + 2 * H),
    # Down and up again for q (32) and for k and v (16, beside 8 rotary), each with a norm; o. Then a dense layer, and
    # one with a router, eight experts and a shared one.
    "deepseek_v3": UNTIED
    + 2 * (H * 32 + 32 + 32 * 4 * 24 + H * 24 + 16 + 16 * 4 * 32 + 64 * H + 2 * H)
    + MLP
    + (H * 8 + 9 * 3 * H * 32),
    # In: gate, what the convolution sees (128 + 16 + 16) and 8 steps; convolution of 4; A, D and the steps' bias; norm.
    "mamba2": UNTIED + 2 * (H * (128 + 160 + 8) + 160 * 4 + 160 + 3 * 8 + 128 + 128 * H + H),
    # Three linear layers, one of full attention with a gate as wide as q; a router, four experts and a gated shared one
    # in each.
    "qwen3_next": UNTIED
    + 3 * (H * 192 + H * 8 + 128 * 4 + 2 * 4 + 16 + H * H)
    + (WIDE + H * 128 + 2 * 32)
    + 4 * (H * 4 + 5 * 3 * H * 32 + H + 2 * H),
    # Three Mamba layers (in, convolution of 4, x to 4 steps and twice 8 states, steps, A, D, out, three norms), one of
    # attention; every other layer has two experts and a router.
    "jamba": UNTIED
    + 3 * (H * 256 + biased(4, 128) + 128 * 20 + biased(4, 128) + 128 * 8 + 128 + 128 * H + 20)
    + GQA
    + 2 * MLP
    + 2 * (2 * MLP + H * 2)
    + 4 * 2 * H,
    # Words, positions, two kinds of token, a norm; a layer: q, k, v and o, a norm, up and down, a norm; pooler.
    "bert": V * H
    + POSITIONS * H
    + 2 * H
    + 2 * H
    + 2 * (4 * biased(H, H) + 2 * H + biased(H, 128) + biased(128, H) + 2 * H)
    + biased(H, H),
    # One embedding for both ends and the head; 32 buckets of relative positions for 4 heads at either end.
    "t5": V * H + 2 * (4 * H * H + 2 * H * 128 + 2 * H) + 3 * (8 * H * H + 2 * H * 128 + 3 * H) + 2 * 32 * 4 + 2 * H,
    # Positions start at two; a norm over embeddings at either end.
    "bart": V * H
    + 2 * (POSITIONS + 2) * H
    + 2 * 2 * H
    + 2 * (4 * biased(H, H) + biased(H, 128) + biased(128, H) + 2 * 2 * H)
    + 3 * (8 * biased(H, H) + biased(H, 128) + biased(128, H) + 3 * 2 * H),
    # Two convolutions of 3; k without bias; fixed positions of the encoder are parameters too.
    "whisper": biased(80 * 3, H)
    + biased(H * 3, H)
    + 1500 * H
    + V * H
    + POSITIONS * H
    + 2 * (4 * biased(H, H) - H + biased(H, 128) + biased(128, H) + 2 * 2 * H)
    + 3 * (2 * (4 * biased(H, H) - H) + biased(H, 128) + biased(128, H) + 3 * 2 * H)
    + 2 * 2 * H,
    # The Llama; a tower of patches of 14, a class token, 17 positions, two layers, a norm before and after; projector.
    "llava": UNTIED
    + 2 * (GQA + MLP + 2 * H)
    + (3 * 14 * 14 * H + H + 17 * H)
    + 2 * (4 * biased(H, H) + biased(H, 128) + biased(128, H) + 2 * 2 * H)
    + 2 * 2 * H
    + 2 * biased(H, H),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_weights_are_those_of_the_config_to_the_byte(name: str) -> None:
    model = ARCHITECTURES[name]().build()
    assert sum(parameter.numel() for parameter in model.parameters()) == PARAMETERS[name]
    weights = resident_model(model, "cpu").weights.values()
    kept_wide = sum(one.size_bytes for one in weights if one.dtype == "float32")
    assert sum(one.size_bytes for one in weights) - kept_wide == (PARAMETERS[name] - kept_wide // FLOAT32) * BFLOAT16
    # DeepSeek's router stays in float32 in recent releases of transformers.
    assert kept_wide in ((0, H * 8 * FLOAT32) if name == "deepseek_v3" else (0,))


@dataclass(frozen=True)
class Cached:
    """What a sequence holds in its cache, in bytes."""

    token: int
    """A token, in layers that see all of them; bfloat16."""
    token_in_window: int = 0
    """A token, in layers that slide."""
    state: int = 0
    """What does not grow, in bfloat16."""
    wide_state: int = 0
    """What does not grow, in float32."""
    sliding_layers: int = 0


LATENT = hasattr(transformers.models.deepseek_v3.modeling_deepseek_v3.DeepseekV3Attention, "expand_kv")
"""Whether this transformers caches DeepSeek's latent; earlier releases cache the keys and values of all heads."""

WIDE_STATES = hasattr(transformers.cache_utils, "LinearAttentionLayer")
"""Whether this transformers keeps Mamba 2's recurrent state in float32; earlier releases keep it in bfloat16."""

MAMBA2_CONVOLUTION, MAMBA2_STATE = 2 * 160 * 4, 2 * 8 * 16 * 16
"""Numbers of both layers: 128 + 16 + 16 channels over 4 tokens; 8 heads of 16 by 16."""

CACHED = {
    "llama": Cached(2 * 2 * 2 * 16 * BFLOAT16),  # layers x (key, value) x KV heads x head size
    "gpt2": Cached(2 * 2 * 4 * 16 * BFLOAT16),
    "mistral": Cached(0, 2 * 2 * 2 * 16 * BFLOAT16, sliding_layers=2),
    "gemma3": Cached(2 * 2 * 32 * BFLOAT16, 5 * 2 * 2 * 32 * BFLOAT16, sliding_layers=5),
    "gpt_oss": Cached(2 * 2 * 32 * BFLOAT16, 2 * 2 * 32 * BFLOAT16, sliding_layers=1),
    "mixtral": Cached(2 * 2 * 2 * 16 * BFLOAT16),
    "qwen3_moe": Cached(2 * 2 * 2 * 32 * BFLOAT16),
    # Layers x (latent of 16 and 8 rotary numbers), or the keys (16 + 8) and values (16) of 4 heads.
    "deepseek_v3": Cached(2 * (16 + 8 if LATENT else 4 * (16 + 8 + 16)) * BFLOAT16),
    "mamba2": Cached(0, state=MAMBA2_CONVOLUTION * BFLOAT16, wide_state=MAMBA2_STATE * FLOAT32)
    if WIDE_STATES
    else Cached(0, state=(MAMBA2_CONVOLUTION + MAMBA2_STATE) * BFLOAT16),
    # Three layers: two keys of 2 x 16 and a value of 4 x 16 over 4 tokens; a 16 x 16 matrix for each value head.
    "qwen3_next": Cached(2 * 2 * 32 * BFLOAT16, state=3 * 128 * 4 * BFLOAT16, wide_state=3 * 4 * 16 * 16 * FLOAT32),
    # Three layers: 128 channels over 4 tokens, and 8 states of each.
    "jamba": Cached(2 * 2 * 16 * BFLOAT16, state=3 * 128 * 4 * BFLOAT16, wide_state=3 * 128 * 8 * FLOAT32),
}


def expected(one: Cached, tokens: int, in_window: int, sequences: int) -> dict[str, int]:
    """Bytes by dtype; each sliding layer keeps the width of its window as an int64."""
    sizes = {
        "bfloat16": (one.token * tokens + one.token_in_window * in_window + one.state) * sequences,
        "float32": one.wide_state * sequences,
        "int64": one.sliding_layers * INT64,
    }
    return {dtype: size for dtype, size in sizes.items() if size}


@pytest.mark.parametrize("name", CACHED)
def test_a_cache_holds_what_its_config_says_a_token_and_a_sequence(name: str) -> None:
    model = ARCHITECTURES[name]().build()
    for context, sequences in ((40, 1), (40, 3), (56, 2)):
        found = cached(model, make_decoder(), Shape(context, 5, sequences))
        assert found[Phase.PREFILL] == expected(CACHED[name], context, context, sequences)
        # Four more tokens; the fifth new one is never fed back. All of it lies within the window.
        assert found[Phase.DECODE] == expected(CACHED[name], context + 4, context + 4, sequences)


@pytest.mark.parametrize("name", CACHED)
def test_beyond_the_window_a_sliding_layer_grows_no_more_and_the_others_do(name: str) -> None:
    model = ARCHITECTURES[name]().build()
    for context in (400, 600):
        found = cached(model, make_decoder(), Shape(context, 5, 2))
        # A prompt is cached through a view of its whole storage; the first step lets go of that.
        assert found[Phase.PREFILL] == expected(CACHED[name], context, context, 2)
        assert found[Phase.DECODE] == expected(CACHED[name], context + 4, WINDOW, 2)


def test_an_encoder_has_no_cache() -> None:
    encoder = Encoder(torch.device("cpu"), V, 0)
    watch = kept(ARCHITECTURES["bert"]().build(), encoder, Shape(40, 0, 3))
    # Token ids and mask; the hidden states of 40 tokens and the pooled one, 64 numbers of two bytes each.
    assert watch.ended == {
        Phase.FORWARD: {
            "inputs": {"int64": 2 * 40 * 3 * INT64},
            "outputs": {"bfloat16": (40 + 1) * 3 * H * BFLOAT16},
        }
    }
