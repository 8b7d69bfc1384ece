"""Mamba, Falcon Mamba and Mamba 2: state alone, whatever the length of a sequence.

Shapes and defaults: mamba, falcon_mamba and mamba2 in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
Positions set no limit. Mamba and Falcon Mamba tie their embeddings unless told otherwise.
"""

from __future__ import annotations

from gpufit.architecture.blocks import norm
from gpufit.architecture.config import MOST_LAYERS, Config
from gpufit.architecture.decoder import Whole, Widths, decoder
from gpufit.architecture.families.state_space import MambaOne, MambaTwo
from gpufit.architecture.record import Architecture

_AT = "backbone.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    family = config.text("model_type")
    second = family == "mamba2"
    hidden = config.width("hidden_size", "d_model", usual=4096 if second else 768)
    expanded = int(hidden * config.number("expand", 2))
    bias, conv_bias = config.flag("use_bias"), config.flag("use_conv_bias", default=True)
    state = config.count("state_size", default=128 if second else 16)
    kernel = config.count("conv_kernel", default=4)
    mixer: MambaOne | MambaTwo
    if second:
        heads = config.count("num_heads", default=128)
        mixer = MambaTwo(
            hidden=hidden,
            heads=heads,
            head_dim=config.count("head_dim", default=64),
            groups=config.count("n_groups", default=8),
            state=state,
            kernel=kernel,
            conv_bias=conv_bias,
            bias=bias,
        )
    else:
        given = config.values.get("time_step_rank")
        rank = -(-hidden // 16) if given is None or given == "auto" else config.count("time_step_rank")
        inner = config.count("intermediate_size", "d_inner", default=max(expanded, 1))
        mixer = MambaOne(
            hidden=hidden, inner=inner, state=state, kernel=kernel, rank=rank, conv_bias=conv_bias, bias=bias
        )
    layers = config.width("num_hidden_layers", "n_layer", usual=64 if second else 32, most=MOST_LAYERS)
    w = Widths(
        hidden=hidden,
        layers=layers,
        heads=mixer.heads if isinstance(mixer, MambaTwo) else 1,
        kv_heads=1,
        head_dim=mixer.head_dim if isinstance(mixer, MambaTwo) else mixer.inner,
        intermediate=mixer.inner,
        vocabulary=config.width("vocab_size", usual=32768 if second else 50280),
        positions=None,
    )
    whole = Whole(
        model_type=family,
        class_name={"mamba": "MambaForCausalLM", "mamba2": "Mamba2ForCausalLM"}.get(family, "FalconMambaForCausalLM"),
        tied=config.flag("tie_word_embeddings", default=not second),
        embed="backbone.embeddings",
        final="backbone.norm_f",
        gated=False,
        rotary_dim=0,
    )
    weights = (*norm(f"{_AT}.norm", hidden, w.stack), *mixer.weights(f"{_AT}.mixer", w.stack))
    return decoder(config, w, whole, weights, (mixer.cache(layers),))
