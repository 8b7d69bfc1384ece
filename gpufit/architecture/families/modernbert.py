"""ModernBERT and Nomic's BERT: encoders with rotary positions and gated MLPs; they cache nothing.

Shapes and defaults: modernbert and nomic_bert in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
ModernBERT's first layer has no norm before attention; its MLP's first matrix holds gate and input.
"""

from __future__ import annotations

from gpufit.architecture.blocks import Weights, embedding, gated_mlp, linear, norm, positions, renamed
from gpufit.architecture.config import MOST_LAYERS, Config
from gpufit.architecture.heads import labels_of
from gpufit.architecture.record import Architecture, Kind, Rotary, Split, Weight


def build(config: Config) -> Architecture:
    """The shapes of one of these encoders."""
    modern = config.text("model_type") == "modernbert"
    hidden = config.width("hidden_size", "n_embd", usual=768)
    layers = config.width("num_hidden_layers", "n_layer", usual=22 if modern else 12, most=MOST_LAYERS)
    heads = config.width("num_attention_heads", "n_head", usual=12)
    inner = config.width("intermediate_size", "n_inner", usual=1152 if modern else 3072)
    rows = config.width("vocab_size", usual=50368 if modern else 30528)
    stack = tuple(range(layers))
    head_dim = config.share(hidden, heads, "hidden width")
    base = "ModernBertModel" if modern else "NomicBertModel"
    named = (config.texts("architectures") or (base,))[0]
    if modern:
        weights, notes = _modern(config, hidden, inner, rows, stack, named)
    else:
        weights, notes = _nomic(config, hidden, inner, rows, stack), ()
    return Architecture(
        model_type=config.text("model_type"),
        class_name=named,
        weights=weights,
        caches=(),
        layers=layers,
        hidden=hidden,
        intermediate=inner,
        gated=True,
        vocabulary=rows,
        heads=heads,
        head_dim=head_dim,
        tied=named.endswith("ForMaskedLM"),
        generates=False,
        position_limit=config.count("max_position_embeddings", "n_positions", default=8192 if modern else 2048),
        rotary=Rotary(head_dim),
        notes=notes,
    )


def _modern(
    config: Config, hidden: int, inner: int, rows: int, stack: tuple[int, ...], named: str
) -> tuple[Weights, tuple[str, ...]]:
    bias, mlp_bias, norm_bias = config.flag("attention_bias"), config.flag("mlp_bias"), config.flag("norm_bias")
    at = "layers.{layer}"
    body: Weights = (
        embedding("embeddings.tok_embeddings", rows, hidden),
        *norm("embeddings.norm", hidden, bias=norm_bias),
        *linear(f"{at}.attn.Wqkv", 3 * hidden, hidden, Split.COLUMN, stack, bias=bias),
        *linear(f"{at}.attn.Wo", hidden, hidden, Split.ROW, stack, bias=bias),
        *(norm(f"{at}.attn_norm", hidden, stack[1:], bias=norm_bias) if stack[1:] else ()),
        *norm(f"{at}.mlp_norm", hidden, stack, bias=norm_bias),
        *linear(f"{at}.mlp.Wi", 2 * inner, hidden, Split.COLUMN, stack, bias=mlp_bias),
        *linear(f"{at}.mlp.Wo", hidden, inner, Split.ROW, stack, bias=mlp_bias),
        *norm("final_norm", hidden, bias=norm_bias),
    )
    if named == "ModernBertModel":
        return body, ()
    inside = renamed(body, ("", "model."))
    classifier_bias = config.flag("classifier_bias")
    head = (
        *linear("head.dense", hidden, hidden, Split.REPLICATED, bias=classifier_bias),
        *norm("head.norm", hidden, bias=norm_bias),
    )
    if named == "ModernBertForMaskedLM":
        bias_row = (Weight("decoder.bias", (rows,), Kind.BIAS, Split.VOCABULARY),)
        return (*inside, *head, *(bias_row if config.flag("decoder_bias", default=True) else ())), ()
    if named.endswith("Classification"):
        return (*inside, *head, *linear("classifier", labels_of(config), hidden, Split.REPLICATED, bias=True)), ()
    return inside, (f"the head of {named} is left out",)


def _nomic(config: Config, hidden: int, inner: int, rows: int, stack: tuple[int, ...]) -> Weights:
    at = "encoder.layers.{layer}"
    bias = config.flag("qkv_proj_bias")
    return (
        embedding("embeddings.word_embeddings", rows, hidden),
        positions("embeddings.token_type_embeddings", config.count("type_vocab_size", default=2), hidden),
        *norm("emb_ln", hidden, bias=True),
        *linear(f"{at}.attn.Wqkv", 3 * hidden, hidden, Split.COLUMN, stack, bias=bias),
        *linear(f"{at}.attn.out_proj", hidden, hidden, Split.ROW, stack, bias=bias),
        *gated_mlp(f"{at}.mlp", stack, hidden=hidden, intermediate=inner, names=("fc12", "fc11", "fc2")),
        *norm(f"{at}.norm1", hidden, stack, bias=True),
        *norm(f"{at}.norm2", hidden, stack, bias=True),
    )
