"""Decoders that differ from a Llama in one place: Arcee, BitNet, EXAONE 3, Granite with sinks, Apertus, Baichuan.

Shapes and defaults: arcee, bitnet, exaone, granite_swa and apertus in
https://github.com/huggingface/transformers/tree/main/src/transformers/models ; Baichuan has code of its own at
https://huggingface.co/baichuan-inc/Baichuan2-7B-Base , with query, key and value in one tensor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from gpufit.architecture.blocks import attention, gated_mlp, linear, norm, plain_mlp, scalars
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import (
    Block,
    Usual,
    Whole,
    attention_layers,
    decoder,
    dense_layers,
    kinds,
    of_kind,
    rotary_share,
    widths,
    windowed_caches,
)
from gpufit.architecture.record import Architecture, Kind, Split, Weight

_AT = "model.layers.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    return _BUILDERS[config.text("model_type")](config)


def _arcee(config: Config) -> Architecture:
    usual = Usual(hidden=2560, heads=32, intermediate=18432, positions=4096)
    w = widths(config, usual)
    bias = config.flag("attention_bias")
    layers = (
        *attention_layers(w, Block(qkv_bias=bias, out_bias=bias), w.stack),
        *plain_mlp(
            f"{_AT}.mlp.",
            w.stack,
            hidden=w.hidden,
            intermediate=w.intermediate,
            names=("up_proj", "down_proj"),
            bias=config.flag("mlp_bias"),
        ),
    )
    whole = Whole(
        model_type="arcee",
        class_name="ArceeForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        gated=False,
    )
    return decoder(config, w, whole, layers, (w.full_cache,))


def _bitnet(config: Config) -> Architecture:
    w = widths(config, Usual(hidden=2560, layers=30, heads=20, kv_heads=5, intermediate=6912, vocabulary=128256))
    bias = config.flag("attention_bias")
    layers = (
        *dense_layers(w, Block(qkv_bias=bias, out_bias=bias), w.stack),
        *norm(f"{_AT}.self_attn.attn_sub_norm", w.hidden, w.stack),
        *norm(f"{_AT}.mlp.ffn_sub_norm", w.intermediate, w.stack),
    )
    whole = Whole(model_type="bitnet", class_name="BitNetForCausalLM", tied=config.flag("tie_word_embeddings"))
    return decoder(config, w, whole, layers, (w.full_cache,))


def _exaone(config: Config) -> Architecture:
    """EXAONE 3, whose own keys are `num_layers` and `activation_function`."""
    w = widths(config, Usual(kv_heads=8, intermediate=14336, vocabulary=102400, positions=4096))
    at = "transformer.h.{layer}"
    bias, mlp_bias = config.flag("attention_bias"), config.flag("mlp_bias")
    layers = (
        *norm(f"{at}.ln_1", w.hidden, w.stack),
        *norm(f"{at}.ln_2", w.hidden, w.stack),
        *attention(
            f"{at}.attn.attention",
            w.stack,
            hidden=w.hidden,
            heads=w.heads,
            kv_heads=w.kv_heads,
            head_dim=w.head_dim,
            bias=bias,
            out_bias=bias,
            out_name="out_proj",
        ),
        *gated_mlp(
            f"{at}.mlp",
            w.stack,
            hidden=w.hidden,
            intermediate=w.intermediate,
            bias=mlp_bias,
            names=("c_fc_0", "c_fc_1", "c_proj"),
        ),
    )
    whole = Whole(
        model_type="exaone",
        class_name="ExaoneForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        embed="transformer.wte",
        final="transformer.ln_f",
    )
    return decoder(config, w, whole, layers, (w.full_cache,))


def _granite(config: Config) -> Architecture:
    usual = Usual(hidden=2560, layers=24, heads=20, kv_heads=4, intermediate=8192, vocabulary=100352, positions=8192)
    w = widths(config, usual)
    bias = config.flag("attention_bias")
    block = Block(qkv_bias=bias, out_bias=bias, mlp_bias=config.flag("mlp_bias"))
    layers = (*dense_layers(w, block, w.stack), scalars(f"{_AT}.self_attn.sinks", (w.heads,), w.stack))
    usual_kinds = tuple("sliding_attention" if number % 4 else "full_attention" for number in w.stack)
    sliding = len(of_kind(kinds(config, w.layers, usual_kinds), "sliding_attention"))
    whole = Whole(
        model_type="granite_swa",
        class_name="GraniteSWAForCausalLM",
        tied=config.flag("tie_word_embeddings", default=True),
    )
    return decoder(config, w, whole, layers, windowed_caches(w, sliding, config.count("sliding_window", default=128)))


def _apertus(config: Config) -> Architecture:
    w = widths(config, Usual(intermediate=14336, vocabulary=131072, positions=65536))
    bias = config.flag("attention_bias")
    block = Block(
        before="attention_layernorm",
        after="feedforward_layernorm",
        qkv_bias=bias,
        out_bias=bias,
        qk_norm="head",
    )
    at = f"{_AT}.mlp"
    # The activation's two learned numbers, and two constants stored as buffers.
    act = (
        *(scalars(f"{at}.act_fn.{name}", (1,), w.stack, Split.REPLICATED) for name in ("alpha_p", "alpha_n")),
        *(
            Weight(f"{at}.act_fn.{name}", (), Kind.STATE, Split.REPLICATED, layers=w.stack, parameter=False)
            for name in ("beta", "eps")
        ),
    )
    layers = (
        *attention_layers(w, block, w.stack),
        *plain_mlp(
            f"{at}.",
            w.stack,
            hidden=w.hidden,
            intermediate=w.intermediate,
            names=("up_proj", "down_proj"),
            bias=False,
        ),
        *act,
    )
    whole = Whole(
        model_type="apertus",
        class_name="ApertusForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        gated=False,
        rotary_dim=rotary_share(config, w.head_dim),
    )
    return decoder(config, w, whole, layers, (w.full_cache,))


def _baichuan(config: Config) -> Architecture:
    w = widths(config, Usual(vocabulary=125696, positions=4096))
    layers = (
        *norm(f"{_AT}.input_layernorm", w.hidden, w.stack),
        *norm(f"{_AT}.post_attention_layernorm", w.hidden, w.stack),
        *linear(f"{_AT}.self_attn.W_pack", 3 * w.hidden, w.hidden, Split.COLUMN, w.stack),
        *linear(f"{_AT}.self_attn.o_proj", w.hidden, w.hidden, Split.ROW, w.stack),
        *gated_mlp(f"{_AT}.mlp", w.stack, hidden=w.hidden, intermediate=w.intermediate),
    )
    whole = Whole(model_type="baichuan", class_name="BaichuanForCausalLM", tied=config.flag("tie_word_embeddings"))
    limited = replace(w, positions=config.maybe("max_position_embeddings", "model_max_length"))
    return decoder(config, limited, whole, layers, (w.full_cache,))


_BUILDERS: dict[str, Callable[[Config], Architecture]] = {
    "arcee": _arcee,
    "bitnet": _bitnet,
    "exaone": _exaone,
    "granite_swa": _granite,
    "apertus": _apertus,
    "baichuan": _baichuan,
}
