"""GLM 4 as transformers has it, ChatGLM 2 / 3 and GLM 4 with code of their own, and the first Qwen.

Shapes and defaults: glm and glm4 in https://github.com/huggingface/transformers/tree/main/src/transformers/models ;
`modeling_chatglm.py` at https://huggingface.co/THUDM/chatglm2-6b and https://huggingface.co/THUDM/glm-4-9b-chat ;
`modeling_qwen.py` at https://huggingface.co/Qwen/Qwen-7B , whose config counts both halves of the gated MLP.
"""

from __future__ import annotations

from dataclasses import replace

from gpufit.architecture.blocks import gated_mlp, linear, norm
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import (
    Block,
    Usual,
    Whole,
    attention_layers,
    decoder,
    packed_mlp,
    rotary_share,
    widths,
)
from gpufit.architecture.record import Architecture, Kind, Split, Weight

_GLM = Usual(layers=40, kv_heads=2, head_dim=128, intermediate=13696, vocabulary=151552, positions=131072)
_CHAT = Usual(layers=28, intermediate=13696, vocabulary=65024, positions=2048)
_QWEN = Usual(intermediate=22016, vocabulary=151936, positions=8192)


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    return {"chatglm": _chat, "qwen": _qwen}.get(config.text("model_type"), _glm)(config)


def _glm(config: Config) -> Architecture:
    family = config.text("model_type")
    w = widths(config, _GLM)
    more = ("post_self_attn_layernorm", "post_mlp_layernorm") if family == "glm4" else ()
    block = Block(qkv_bias=config.flag("attention_bias", default=True), more_norms=more)
    at = f"{block.at}.mlp"
    layers = (
        *attention_layers(w, block, w.stack),
        *packed_mlp(at, w.stack, hidden=w.hidden, intermediate=w.intermediate),
    )
    whole = Whole(
        model_type=family,
        class_name="Glm4ForCausalLM" if family == "glm4" else "GlmForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        rotary_dim=rotary_share(config, w.head_dim, 0.5),
    )
    return decoder(config, w, whole, layers, (w.full_cache,))


def _chat(config: Config) -> Architecture:
    heads = config.count("num_attention_heads")
    shared = config.flag("multi_query_attention")
    w = widths(
        config.with_values(
            num_hidden_layers=config.maybe("num_layers", "num_hidden_layers"),
            intermediate_size=config.count("ffn_hidden_size"),
            num_key_value_heads=config.count("multi_query_group_num", default=1) if shared else heads,
            head_dim=config.count("kv_channels", default=128),
            vocab_size=config.count("padded_vocab_size", "vocab_size"),
            max_position_embeddings=config.count("seq_length", default=2048),
        ),
        _CHAT,
    )
    at = "transformer.encoder.layers.{layer}"
    out = (w.heads + 2 * w.kv_heads) * w.head_dim
    bias = config.flag("add_bias_linear")
    norm_bias = not config.flag("rmsnorm", default=True)
    layers = (
        *norm(f"{at}.input_layernorm", w.hidden, w.stack, bias=norm_bias),
        *norm(f"{at}.post_attention_layernorm", w.hidden, w.stack, bias=norm_bias),
        *linear(
            f"{at}.self_attention.query_key_value",
            out,
            w.hidden,
            Split.COLUMN,
            w.stack,
            bias=bias or config.flag("add_qkv_bias"),
        ),
        *linear(f"{at}.self_attention.dense", w.hidden, w.heads * w.head_dim, Split.ROW, w.stack, bias=bias),
        *linear(f"{at}.mlp.dense_h_to_4h", 2 * w.intermediate, w.hidden, Split.COLUMN, w.stack, bias=bias),
        *linear(f"{at}.mlp.dense_4h_to_h", w.hidden, w.intermediate, Split.ROW, w.stack, bias=bias),
    )
    rotated = w.head_dim // 2
    frequencies = Weight(
        "transformer.rotary_pos_emb.inv_freq", (max(rotated // 2, 1),), Kind.STATE, Split.REPLICATED, parameter=False
    )
    whole = Whole(
        model_type="chatglm",
        class_name="ChatGLMModel",
        tied=config.flag("tie_word_embeddings"),
        embed="transformer.embedding.word_embeddings",
        final="transformer.encoder.final_layernorm" if config.flag("post_layer_norm", default=True) else "",
        final_bias=norm_bias,
        lm_head="transformer.output_layer",
        rotary_dim=rotated,
    )
    return decoder(config, w, whole, layers, (w.full_cache,), extra=(frequencies,))


def _qwen(config: Config) -> Architecture:
    w = widths(
        config.with_values(
            max_position_embeddings=config.count("seq_length", "max_position_embeddings", default=8192),
            head_dim=config.count("kv_channels", default=128),
        ),
        _QWEN,
    )
    at = "transformer.h.{layer}"
    inner = w.heads * w.head_dim
    bias = not config.flag("no_bias", default=True)
    layers = (
        *norm(f"{at}.ln_1", w.hidden, w.stack),
        *norm(f"{at}.ln_2", w.hidden, w.stack),
        *linear(f"{at}.attn.c_attn", 3 * inner, w.hidden, Split.COLUMN, w.stack, bias=True),
        *linear(f"{at}.attn.c_proj", w.hidden, inner, Split.ROW, w.stack, bias=bias),
        *gated_mlp(
            f"{at}.mlp",
            w.stack,
            hidden=w.hidden,
            intermediate=config.share(w.intermediate, 2, "intermediate_size"),
            bias=bias,
            names=("w2", "w1", "c_proj"),
        ),
    )
    whole = Whole(
        model_type="qwen",
        class_name="QWenLMHeadModel",
        tied=config.flag("tie_word_embeddings"),
        embed="transformer.wte",
        final="transformer.ln_f",
    )
    # Its configs name the dtype by one flag each.
    named = {"bf16": "bfloat16", "fp16": "float16"}
    dtype = next((name for flag, name in named.items() if config.flag(flag)), "float32")
    return replace(decoder(config, w, whole, layers, (w.full_cache,)), dtype=dtype)
