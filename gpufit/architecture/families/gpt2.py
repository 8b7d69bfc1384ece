"""GPT-2 and its heirs: GPT-BigCode (StarCoder), GPT-Neo, GPT-J, CodeGen.

Shapes and defaults: gpt2, gpt_bigcode, gpt_neo, gptj and codegen in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
GPT-2 stores its matrices turned, (in, out). With `multi_query`, GPT-BigCode keeps one KV head for all.
"""

from __future__ import annotations

from gpufit.architecture.blocks import Weights, linear, norm, plain_mlp, positions
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Usual, Whole, Widths, decoder, widths, windowed_caches
from gpufit.architecture.record import Architecture, AttentionCache, Kind, Split, Weight

_SMALL = Usual(hidden=768, layers=12, heads=12, vocabulary=50257, positions=1024)
_NEO = Usual(hidden=2048, layers=24, heads=16, vocabulary=50257, positions=2048)
_J = Usual(hidden=4096, layers=28, heads=16, vocabulary=50400, positions=2048)
_FAMILIES = {
    "gpt2": ("GPT2LMHeadModel", _SMALL, True),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", _SMALL, True),
    "gpt_neo": ("GPTNeoForCausalLM", _NEO, True),
    "gptj": ("GPTJForCausalLM", _J, False),
    "codegen": ("CodeGenForCausalLM", _J, False),
}
_AT = "transformer.h.{layer}"


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    family = config.text("model_type")
    class_name, usual, tied = _FAMILIES[family]
    w = _widths(config, usual)
    rotated = family in ("gptj", "codegen")
    whole = Whole(
        model_type=family,
        class_name=class_name,
        tied=config.flag("tie_word_embeddings", default=tied),
        embed="transformer.wte",
        final="transformer.ln_f",
        final_bias=True,
        head_bias=rotated,
        gated=False,
        rotary_dim=config.count("rotary_dim", default=64) if rotated else 0,
    )
    layers, caches = _layers(config, w, family)
    wpe = () if rotated else (positions("transformer.wpe", w.positions or 0, w.hidden),)
    return decoder(config, w, whole, layers, caches, extra=wpe)


def _widths(config: Config, usual: Usual) -> Widths:
    hidden = config.width("n_embd", "hidden_size", usual=usual.hidden)
    heads = config.maybe("n_head", "num_attention_heads", "num_heads")
    return widths(
        config.with_values(
            intermediate_size=config.maybe("n_inner", "intermediate_size") or 4 * hidden,
            hidden_size=hidden,
            num_attention_heads=heads,
        ),
        usual,
    )


def _layers(config: Config, w: Widths, family: str) -> tuple[Weights, tuple[AttentionCache, ...]]:
    norms = (*norm(f"{_AT}.ln_1", w.hidden, w.stack, bias=True),)
    if family in ("gptj", "codegen"):
        mlp = plain_mlp(f"{_AT}.mlp.", w.stack, hidden=w.hidden, intermediate=w.intermediate, names=("fc_in", "fc_out"))
        return (*norms, *_straight(w, f"{_AT}.attn", packed=family == "codegen"), *mlp), (w.full_cache,)
    norms = (*norms, *norm(f"{_AT}.ln_2", w.hidden, w.stack, bias=True))
    if family == "gpt2":
        return (*norms, *_turned(w)), (w.full_cache,)
    mlp = plain_mlp(f"{_AT}.mlp.", w.stack, hidden=w.hidden, intermediate=w.intermediate, names=("c_fc", "c_proj"))
    if family == "gpt_neo":
        local = _local(config, w)
        window = config.count("window_size", default=256)
        attention = (
            *_straight(w, f"{_AT}.attn.attention"),
            Weight(f"{_AT}.attn.attention.out_proj.bias", (w.hidden,), Kind.BIAS, Split.REPLICATED, layers=w.stack),
        )
        return (*norms, *attention, *mlp), windowed_caches(w, local, window)
    kv_heads = 1 if config.flag("multi_query", default=True) else w.heads
    out = (w.heads + 2 * kv_heads) * w.head_dim
    attention = (
        *linear(f"{_AT}.attn.c_attn", out, w.hidden, Split.COLUMN, w.stack, bias=True),
        *linear(f"{_AT}.attn.c_proj", w.hidden, w.hidden, Split.ROW, w.stack, bias=True),
    )
    return (*norms, *attention, *mlp), (AttentionCache(w.layers, kv_heads, w.head_dim, w.head_dim),)


def _straight(w: Widths, at: str, *, packed: bool = False) -> Weights:
    """Attention without biases, in three tensors or one."""
    names = {"qkv_proj": 3 * w.hidden} if packed else dict.fromkeys(("q_proj", "k_proj", "v_proj"), w.hidden)
    return (
        *(one for name, out in names.items() for one in linear(f"{at}.{name}", out, w.hidden, Split.COLUMN, w.stack)),
        *linear(f"{at}.out_proj", w.hidden, w.hidden, Split.ROW, w.stack),
    )


def _turned(w: Widths) -> Weights:
    """GPT-2's matrices, stored (in, out): what divides outputs divides columns here."""
    parts = (
        ("attn.c_attn", w.hidden, 3 * w.hidden, Split.COLUMN),
        ("attn.c_proj", w.hidden, w.hidden, Split.ROW),
        ("mlp.c_fc", w.hidden, w.intermediate, Split.COLUMN),
        ("mlp.c_proj", w.intermediate, w.hidden, Split.ROW),
    )
    return tuple(
        one
        for name, into, out, split in parts
        for one in (
            Weight(f"{_AT}.{name}.weight", (into, out), Kind.LINEAR, split, layers=w.stack),
            Weight(
                f"{_AT}.{name}.bias",
                (out,),
                Kind.BIAS,
                Split.REPLICATED if split is Split.ROW else split,
                layers=w.stack,
            ),
        )
    )


def _local(config: Config, w: Widths) -> int:
    """Layers of GPT-Neo that see a window: a list of kinds, or pairs of kinds and how often they repeat."""
    named = config.texts("attention_layers")
    if named is None:
        named = tuple(
            str(kind)
            for pair in config.items("attention_types") or ((["global", "local"], w.layers),)
            if isinstance(pair, (list, tuple)) and len(pair) == 2 and isinstance(pair[0], (list, tuple))
            for kind in list(pair[0]) * min(int(pair[1]) if isinstance(pair[1], int) else 1, w.layers)
        )
    return sum(kind == "local" for kind in named[: w.layers])
