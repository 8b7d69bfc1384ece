"""Llama, and the families that are a Llama with switches: Mistral, Granite, Seed-OSS, SmolLM3, Ernie 4.5, StableLM ...

Shapes and defaults: `configuration_*.py` and `modeling_*.py` of each in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from gpufit.architecture.blocks import Weights
from gpufit.architecture.config import MOST_LAYERS, Config
from gpufit.architecture.decoder import (
    Block,
    Usual,
    Whole,
    Widths,
    decoder,
    dense_layers,
    kinds,
    of_kind,
    rotary_share,
    widths,
    windowed_caches,
)
from gpufit.architecture.record import Architecture, Kind, Split, Weight


def _no_window(config: Config, w: Widths) -> tuple[int, int | None]:
    """Every layer sees everything."""
    return 0, None


def _all_slide(usual: int | None) -> Callable[[Config, Widths], tuple[int, int | None]]:
    """All layers slide where `sliding_window` says so; a key that is not there means the class's default."""

    def found(config: Config, w: Widths) -> tuple[int, int | None]:
        return w.layers, config.maybe("sliding_window") if "sliding_window" in config.values else usual

    return found


def _only_typed(config: Config, w: Widths) -> tuple[int, int | None]:
    """Layers slide only where `use_sliding_window` or `layer_types` says so."""
    usual = ("full_attention",) * w.layers
    window = config.maybe("sliding_window")
    return len(of_kind(kinds(config, w.layers, usual), "sliding_attention")) if window else 0, window


_PLAIN = Block()


def _first_of_four(config: Config, w: Widths) -> tuple[int, int | None]:
    """Layers of `layer_types` slide; where it is not there, all but each fourth from the first on."""
    usual = tuple("sliding_attention" if number % 4 else "full_attention" for number in w.stack)
    window = config.count("sliding_window", default=8192)
    return len(of_kind(kinds(config, w.layers, usual), "sliding_attention")), window


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    class_name: str
    usual: Usual
    tied: bool = False
    """What a config without `tie_word_embeddings` means."""
    block: Block = _PLAIN
    qkv_bias: tuple[str, ...] = ("attention_bias",)
    """The keys that say whether queries, keys and values have biases, and what their absence means in `block`."""
    out_bias: tuple[str, ...] = ("attention_bias",)
    mlp_bias: tuple[str, ...] = ("mlp_bias",)
    windows: Callable[[Config, Widths], tuple[int, int | None]] = _no_window
    rotated: float = 1.0
    """The share of a head that is rotated, unless the config says otherwise."""
    final_bias: bool = False


_FAMILIES: dict[str, _Family] = {
    "llama": _Family(class_name="LlamaForCausalLM", usual=Usual()),
    "mistral": _Family(
        class_name="MistralForCausalLM",
        usual=Usual(kv_heads=8, intermediate=14336, positions=131072),
        qkv_bias=(),
        out_bias=(),
        mlp_bias=(),
        windows=_all_slide(4096),
    ),
    "ministral": _Family(
        class_name="MinistralForCausalLM",
        usual=Usual(kv_heads=8, intermediate=14336, positions=131072),
        qkv_bias=(),
        out_bias=(),
        mlp_bias=(),
        windows=_only_typed,
    ),
    "ministral3": _Family(
        class_name="Ministral3ForCausalLM",
        usual=Usual(layers=34, kv_heads=8, head_dim=128, intermediate=14336, vocabulary=131072, positions=262144),
        qkv_bias=(),
        out_bias=(),
        mlp_bias=(),
        windows=_all_slide(None),
    ),
    "granite": _Family(class_name="GraniteForCausalLM", usual=Usual()),
    "seed_oss": _Family(
        class_name="SeedOssForCausalLM",
        usual=Usual(
            layers=64, heads=80, kv_heads=8, head_dim=128, intermediate=27648, vocabulary=155136, positions=524288
        ),
        block=Block(qkv_bias=True),
        out_bias=("attention_out_bias",),
    ),
    "smollm3": _Family(
        class_name="SmolLM3ForCausalLM",
        usual=Usual(hidden=2048, layers=36, heads=16, kv_heads=4, vocabulary=128256, positions=32768),
        tied=True,
        windows=_only_typed,
    ),
    "helium": _Family(
        class_name="HeliumForCausalLM",
        usual=Usual(
            hidden=2560,
            layers=24,
            heads=20,
            kv_heads=20,
            head_dim=128,
            intermediate=7040,
            vocabulary=48000,
            positions=4096,
        ),
        out_bias=(),
    ),
    "ernie4_5": _Family(
        class_name="Ernie4_5ForCausalLM",
        usual=Usual(
            hidden=1024,
            layers=18,
            heads=16,
            kv_heads=2,
            head_dim=128,
            intermediate=3072,
            vocabulary=103424,
            positions=131072,
        ),
        tied=True,
        qkv_bias=("use_bias",),
        out_bias=("use_bias",),
        mlp_bias=("use_bias",),
    ),
    "stablelm": _Family(
        class_name="StableLmForCausalLM",
        usual=Usual(hidden=2560, intermediate=6912, vocabulary=50304, positions=4096),
        block=Block(norm_bias=True),
        qkv_bias=("use_qkv_bias",),
        out_bias=(),
        mlp_bias=(),
        rotated=0.25,
        final_bias=True,
    ),
    "internlm3": _Family(
        class_name="InternLM3ForCausalLM",
        usual=Usual(layers=48, kv_heads=2, head_dim=128, intermediate=10240, vocabulary=128512, positions=32768),
        qkv_bias=("qkv_bias", "attention_bias"),
        out_bias=("qkv_bias", "attention_bias"),
        mlp_bias=("bias", "mlp_bias"),
    ),
    "minicpm": _Family(class_name="MiniCPMForCausalLM", usual=Usual(), tied=True),
    "cwm": _Family(
        class_name="CwmForCausalLM",
        usual=Usual(
            hidden=6144,
            layers=64,
            heads=48,
            kv_heads=8,
            head_dim=128,
            intermediate=21504,
            vocabulary=128256,
            positions=131072,
        ),
        qkv_bias=(),
        out_bias=(),
        windows=_first_of_four,
    ),
}


def _switched(config: Config, keys: tuple[str, ...], usual: bool) -> bool:
    return config.flag(*keys, default=usual) if keys else usual


def build(config: Config) -> Architecture:
    """The shapes of one of these families."""
    model_type = config.text("model_type")
    family = _FAMILIES[model_type]
    w = widths(config, family.usual)
    block = replace(
        family.block,
        qkv_bias=_switched(config, family.qkv_bias, family.block.qkv_bias),
        out_bias=_switched(config, family.out_bias, family.block.out_bias),
        mlp_bias=_switched(config, family.mlp_bias, family.block.mlp_bias),
        after="" if config.flag("use_parallel_residual") else family.block.after,
    )
    whole = Whole(
        model_type=model_type,
        class_name=family.class_name,
        tied=config.flag("tie_word_embeddings", default=family.tied),
        final_bias=family.final_bias,
        rotary_dim=rotary_share(config, w.head_dim, family.rotated),
    )
    layers = dense_layers(w, block, w.stack)
    if model_type == "stablelm" and config.flag("qk_layernorm"):
        layers = (*layers, *_norms_a_head(config, w))
    extra = _stored_frequencies(config, w) if model_type == "llama" else ()
    return decoder(config, w, whole, layers, windowed_caches(w, *family.windows(config, w)), extra=extra)


def _norms_a_head(config: Config, w: Widths) -> Weights:
    """StableLM 2 12B normalises each head by a norm of its own."""
    if w.heads > MOST_LAYERS or w.kv_heads > MOST_LAYERS:
        raise config.wrong("num_attention_heads", f"a whole number of at most {MOST_LAYERS}")
    return tuple(
        Weight(
            f"model.layers.{{layer}}.self_attn.{side}_layernorm.norms.{number}.weight",
            (w.head_dim,),
            Kind.NORM,
            Split.REPLICATED,
            layers=w.stack,
        )
        for side, heads in (("q", w.heads), ("k", w.kv_heads))
        for number in range(heads)
    )


def _stored_frequencies(config: Config, w: Widths) -> Weights:
    """Rotary frequencies, which transformers stored with each layer until 4.31 (Llama 1 and 2).

    https://github.com/huggingface/transformers/pull/24998 stopped it. Newer loaders pass over them.
    """
    parts = config.text("transformers_version").split(".")
    if len(parts) < 2 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        return ()
    if (int(parts[0][:6]), int(parts[1][:6])) >= (4, 32):
        return ()
    name = "model.layers.{layer}.self_attn.rotary_emb.inv_freq"
    return (
        Weight(
            name, (max(w.head_dim // 2, 1),), Kind.STATE, Split.REPLICATED, layers=w.stack, dtype="F32", parameter=False
        ),
    )
