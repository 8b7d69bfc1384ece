"""Falcon, BLOOM, GPT-NeoX and MPT: one tensor for query, key and value, MLPs without a gate.

Shapes and defaults: falcon, bloom, gpt_neox and mpt in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
Falcon 7B has one KV head (`multi_query`, whatever `num_kv_heads` says); the newer decoder has `num_kv_heads`, which
transformers copies to every query head before it caches them, unlike other engines. GPT-NeoX
checkpoints of before 2023 also store rotary frequencies and masks, which are left out here.
"""

from __future__ import annotations

from gpufit.architecture.blocks import Weights, linear, norm, plain_mlp
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, Widths, decoder, rotary_share, widths
from gpufit.architecture.record import Architecture, AttentionCache, Split

_FALCON = Usual(hidden=4544, heads=71, vocabulary=65024)
_BLOOM = Usual(hidden=64, layers=2, heads=8, vocabulary=250880, positions=None)
_NEOX = Usual(hidden=6144, layers=44, heads=64, intermediate=24576, vocabulary=50432)
_MPT = Usual(hidden=2048, layers=24, heads=16, vocabulary=50368)


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    return {"falcon": _falcon, "bloom": _bloom, "gpt_neox": _neox, "mpt": _mpt}[config.text("model_type")](config)


def _four_times(config: Config, usual: Usual, *keys: str) -> Widths:
    """Widths where the inner one is four times the hidden one unless a key says otherwise."""
    hidden = config.width("hidden_size", "n_embed", "d_model", usual=usual.hidden)
    inner = config.maybe(*keys) or 4 * hidden
    return widths(config.with_values(intermediate_size=inner, hidden_size=hidden, num_key_value_heads=None), usual)


def _packed(at: str, w: Widths, out: int, names: tuple[str, str], *, bias: bool) -> Weights:
    qkv, dense = names
    return (
        *linear(f"{at}.{qkv}", out, w.hidden, Split.COLUMN, w.stack, bias=bias),
        *linear(f"{at}.{dense}", w.hidden, w.heads * w.head_dim, Split.ROW, w.stack, bias=bias),
    )


def _mlp(at: str, w: Widths, *, bias: bool, names: tuple[str, str] = ("dense_h_to_4h", "dense_4h_to_h")) -> Weights:
    return plain_mlp(f"{at}.", w.stack, hidden=w.hidden, intermediate=w.intermediate, names=names, bias=bias)


def _falcon(config: Config) -> Architecture:
    w = _four_times(config, _FALCON, "ffn_hidden_size")
    newer, bias = config.flag("new_decoder_architecture"), config.flag("bias")
    kv_heads = 1 if config.flag("multi_query", default=True) else w.heads
    if newer:
        kv_heads = config.count("num_kv_heads", "n_head_kv", default=w.heads)
    at = "transformer.h.{layer}"
    parallel = config.flag("parallel_attn", default=True)
    two = newer and config.count("num_ln_in_parallel_attn", default=2) == 2
    second = () if parallel else norm(f"{at}.post_attention_layernorm", w.hidden, w.stack, bias=True)
    first = ("ln_attn", "ln_mlp") if two else ("input_layernorm",)
    layers = (
        *(one for name in first for one in norm(f"{at}.{name}", w.hidden, w.stack, bias=True)),
        *(() if newer else second),
        *_packed(
            f"{at}.self_attention",
            w,
            (w.heads + 2 * kv_heads) * w.head_dim,
            ("query_key_value", "dense"),
            bias=bias,
        ),
        *_mlp(f"{at}.mlp", w, bias=bias),
    )
    alibi = config.flag("alibi")
    whole = Whole(
        model_type="falcon",
        class_name="FalconForCausalLM",
        tied=config.flag("tie_word_embeddings", default=True),
        embed="transformer.word_embeddings",
        final="transformer.ln_f",
        final_bias=True,
        gated=False,
        rotary_dim=0 if alibi else None,
    )
    return decoder(config, w, whole, layers, (AttentionCache(w.layers, kv_heads, w.head_dim, w.head_dim),))


def _bloom(config: Config) -> Architecture:
    w = _four_times(config, _BLOOM)
    at = "transformer.h.{layer}"
    layers = (
        *norm("transformer.word_embeddings_layernorm", w.hidden, bias=True),
        *norm(f"{at}.input_layernorm", w.hidden, w.stack, bias=True),
        *norm(f"{at}.post_attention_layernorm", w.hidden, w.stack, bias=True),
        *_packed(f"{at}.self_attention", w, 3 * w.hidden, ("query_key_value", "dense"), bias=True),
        *_mlp(f"{at}.mlp", w, bias=True),
    )
    whole = Whole(
        model_type="bloom",
        class_name="BloomForCausalLM",
        tied=config.flag("tie_word_embeddings", default=True),
        embed="transformer.word_embeddings",
        final="transformer.ln_f",
        final_bias=True,
        gated=False,
        rotary_dim=0,
    )
    return decoder(config, w, whole, layers, (w.full_cache,))


def _neox(config: Config) -> Architecture:
    w = widths(config.with_values(num_key_value_heads=None), _NEOX)
    at = "gpt_neox.layers.{layer}"
    bias = config.flag("attention_bias", default=True)
    layers = (
        *norm(f"{at}.input_layernorm", w.hidden, w.stack, bias=True),
        *norm(f"{at}.post_attention_layernorm", w.hidden, w.stack, bias=True),
        *_packed(f"{at}.attention", w, 3 * w.hidden, ("query_key_value", "dense"), bias=bias),
        *_mlp(f"{at}.mlp", w, bias=True),
    )
    whole = Whole(
        model_type="gpt_neox",
        class_name="GPTNeoXForCausalLM",
        tied=config.flag("tie_word_embeddings"),
        embed="gpt_neox.embed_in",
        final="gpt_neox.final_layer_norm",
        final_bias=True,
        lm_head="embed_out",
        gated=False,
        rotary_dim=rotary_share(config, w.head_dim, 0.25, "rotary_pct", "partial_rotary_factor"),
    )
    return decoder(config, w, whole, layers, (w.full_cache,))


def _mpt(config: Config) -> Architecture:
    ratio = config.count("expansion_ratio", default=4)
    hidden = config.width("d_model", usual=2048)
    w = widths(
        config.with_values(
            intermediate_size=ratio * hidden,
            num_hidden_layers=config.width("n_layers", usual=24),
            max_position_embeddings=config.count("max_seq_len", default=2048),
        ),
        _MPT,
    )
    at = "transformer.blocks.{layer}"
    layers = (
        *norm(f"{at}.norm_1", w.hidden, w.stack),
        *norm(f"{at}.norm_2", w.hidden, w.stack),
        *_packed(f"{at}.attn", w, 3 * w.hidden, ("Wqkv", "out_proj"), bias=False),
        *_mlp(f"{at}.ffn", w, bias=False, names=("up_proj", "down_proj")),
    )
    whole = Whole(
        model_type="mpt",
        class_name="MptForCausalLM",
        tied=config.flag("tie_word_embeddings", default=True),
        embed="transformer.wte",
        final="transformer.norm_f",
        gated=False,
        rotary_dim=0,
    )
    return decoder(config, w, whole, layers, (w.full_cache,))
