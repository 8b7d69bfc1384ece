"""BERT, RoBERTa, XLM-RoBERTa, CamemBERT, ELECTRA, DistilBERT and MPNet: encoders, which cache nothing.

Shapes and defaults: the folders of these names in
https://github.com/huggingface/transformers/tree/main/src/transformers/models
A config's class decides what stands on the encoder: a bare model has a pooler (DistilBERT and ELECTRA have none), a
classifier its own layers, a masked-language model a transform whose last matrix is tied to the embeddings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpufit.architecture.blocks import Layers, Weights, embedding, linear, norm, positions, renamed
from gpufit.architecture.config import MOST_LAYERS, Config
from gpufit.architecture.heads import labels_of
from gpufit.architecture.record import Architecture, Kind, Split, Weight
from gpufit.errors import UnreadableInputError


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    stem: str
    prefix: str
    base: str
    """Class of the bare model."""
    rows: int
    types: int = 2
    hidden: int = 768
    layers: int = 12
    heads: int = 12
    inner: int = 3072
    body: Callable[[Config, _Widths], Weights]
    pooler: bool = True
    head: str = "bert"
    """Whose layout of heads it has."""


@dataclass(frozen=True, slots=True)
class _Widths:
    hidden: int
    layers: int
    heads: int
    inner: int
    rows: int
    positions: int
    types: int
    embedded: int

    @property
    def stack(self) -> Layers:
        return tuple(range(self.layers))


def build(config: Config) -> Architecture:
    """The shapes of one of these encoders."""
    model_type = config.text("model_type")
    family = _FAMILIES[model_type]
    w = _widths(config, family)
    named = (config.texts("architectures") or (family.base,))[0]
    weights, notes = _with_head(config, family, w, named, family.body(config, w))
    return Architecture(
        model_type=model_type,
        class_name=named,
        weights=weights,
        caches=(),
        layers=w.layers,
        hidden=w.hidden,
        intermediate=w.inner,
        gated=False,
        vocabulary=w.rows,
        heads=w.heads,
        head_dim=config.share(w.hidden, w.heads, "hidden width"),
        tied=named.endswith("ForMaskedLM"),
        generates=False,
        position_limit=w.positions - (2 if family.head in ("roberta", "mpnet") else 0) or None,
        notes=notes,
    )


def _widths(config: Config, family: _Family) -> _Widths:
    hidden = config.width("hidden_size", "dim", usual=family.hidden)
    return _Widths(
        hidden,
        config.width("num_hidden_layers", "n_layers", usual=family.layers, most=MOST_LAYERS),
        config.width("num_attention_heads", "n_heads", usual=family.heads),
        config.width("intermediate_size", "hidden_dim", usual=family.inner),
        config.width("vocab_size", usual=family.rows),
        config.count("max_position_embeddings", default=512),
        config.count("type_vocab_size", default=family.types, least=0),
        config.count("embedding_size", default=hidden),
    )


def _embeddings(w: _Widths, *, types: bool = True) -> Weights:
    return (
        embedding("embeddings.word_embeddings", w.rows, w.embedded),
        positions("embeddings.position_embeddings", w.positions, w.embedded),
        *((positions("embeddings.token_type_embeddings", w.types, w.embedded),) if types and w.types else ()),
        *norm("embeddings.LayerNorm", w.embedded, bias=True),
    )


def _bert_body(config: Config, w: _Widths) -> Weights:
    return (*_embeddings(w), *_bert_layers(w, ("self.query", "self.key", "self.value", "output.dense"), "output."))


def _bert_layers(w: _Widths, names: tuple[str, str, str, str], norm_at: str) -> Weights:
    at = "encoder.layer.{layer}"
    query, key, value, out = names
    ins = (query, key, value)
    return (
        *(
            one
            for name in ins
            for one in linear(f"{at}.attention.{name}", w.hidden, w.hidden, Split.COLUMN, w.stack, bias=True)
        ),
        *linear(f"{at}.attention.{out}", w.hidden, w.hidden, Split.ROW, w.stack, bias=True),
        *norm(f"{at}.attention.{norm_at}LayerNorm", w.hidden, w.stack, bias=True),
        *linear(f"{at}.intermediate.dense", w.inner, w.hidden, Split.COLUMN, w.stack, bias=True),
        *linear(f"{at}.output.dense", w.hidden, w.inner, Split.ROW, w.stack, bias=True),
        *norm(f"{at}.output.LayerNorm", w.hidden, w.stack, bias=True),
    )


def _electra_body(config: Config, w: _Widths) -> Weights:
    project = (
        linear("embeddings_project", w.hidden, w.embedded, Split.REPLICATED, bias=True)
        if w.embedded != w.hidden
        else ()
    )
    return (*_bert_body(config, w), *project)


def _mpnet_body(config: Config, w: _Widths) -> Weights:
    buckets = config.count("relative_attention_num_buckets", default=32)
    return (
        *_embeddings(w, types=False),
        *_bert_layers(w, ("attn.q", "attn.k", "attn.v", "attn.o"), ""),
        positions("encoder.relative_attention_bias", buckets, w.heads),
    )


def _distil_body(config: Config, w: _Widths) -> Weights:
    at = "transformer.layer.{layer}"
    return (
        *_embeddings(w, types=False),
        *(
            one
            for name in ("q_lin", "k_lin", "v_lin")
            for one in linear(f"{at}.attention.{name}", w.hidden, w.hidden, Split.COLUMN, w.stack, bias=True)
        ),
        *linear(f"{at}.attention.out_lin", w.hidden, w.hidden, Split.ROW, w.stack, bias=True),
        *norm(f"{at}.sa_layer_norm", w.hidden, w.stack, bias=True),
        *linear(f"{at}.ffn.lin1", w.inner, w.hidden, Split.COLUMN, w.stack, bias=True),
        *linear(f"{at}.ffn.lin2", w.hidden, w.inner, Split.ROW, w.stack, bias=True),
        *norm(f"{at}.output_layer_norm", w.hidden, w.stack, bias=True),
    )


def _deberta_body(config: Config, w: _Widths) -> Weights:
    names = ("self.query_proj", "self.key_proj", "self.value_proj", "output.dense")
    found: Weights = (
        *_embeddings(w),
        *_bert_layers(w, names, "output."),
    )
    if not config.flag("position_biased_input", default=True):
        found = tuple(one for one in found if one.name != "embeddings.position_embeddings.weight")
    if w.embedded != w.hidden:
        found = (*found, *linear("embeddings.embed_proj", w.hidden, w.embedded, Split.REPLICATED))
    return (*found, *(_relative(config, w) if config.flag("relative_attention") else ()))


def _relative(config: Config, w: _Widths) -> Weights:
    """DeBERTa's table of relative positions, its norm, its convolution, and projections where they are not shared."""
    at = "encoder.layer.{layer}.attention.self"
    buckets = config.count("position_buckets", default=0, least=0) if config.values.get("position_buckets") != -1 else 0
    limit = config.values.get("max_relative_positions")
    reach = limit if isinstance(limit, int) and limit >= 1 else w.positions
    kinds = _position_kinds(config)
    found: Weights = (positions("encoder.rel_embeddings", 2 * (buckets or reach), w.hidden),)
    if "layer_norm" in config.text("norm_rel_ebd", default="none"):
        found = (*found, *norm("encoder.LayerNorm", w.hidden, bias=True))
    kernel = config.count("conv_kernel_size", default=0, least=0)
    if kernel:
        found = (
            *found,
            Weight("encoder.conv.conv.weight", (w.hidden, w.hidden, kernel), Kind.CONVOLUTION, Split.REPLICATED),
            Weight("encoder.conv.conv.bias", (w.hidden,), Kind.BIAS, Split.REPLICATED),
            *norm("encoder.conv.LayerNorm", w.hidden, bias=True),
        )
    if config.flag("share_att_key"):
        return found
    projections = {"c2p": "pos_key_proj", "p2c": "pos_query_proj"}
    return (
        *found,
        *(
            one
            for kind, name in projections.items()
            if kind in kinds
            for one in linear(f"{at}.{name}", w.hidden, w.hidden, Split.COLUMN, w.stack, bias=True)
        ),
    )


def _position_kinds(config: Config) -> tuple[str, ...]:
    """`pos_att_type` is a list, or names joined by `|`."""
    value = config.values.get("pos_att_type")
    if isinstance(value, str):
        return tuple(one.strip() for one in value.lower().split("|"))
    return config.texts("pos_att_type") or ()


def _pooler(family: _Family, w: _Widths) -> Weights:
    return linear("pooler.dense", w.hidden, w.hidden, Split.REPLICATED, bias=True) if family.pooler else ()


def _with_head(
    config: Config, family: _Family, w: _Widths, named: str, body: Weights
) -> tuple[Weights, tuple[str, ...]]:
    if named in (family.base, ""):
        return (*body, *_pooler(family, w)), ()
    inside = renamed(body, ("", f"{family.prefix}."))
    if named.endswith("ForMaskedLM"):
        return (*inside, *_masked(family, w)), ()
    if named.endswith("ForSequenceClassification"):
        return (*inside, *_pooled(family, w), *_classifier(family, w, labels_of(config))), ()
    if named.endswith(("ForTokenClassification", "ForQuestionAnswering")):
        name = "classifier" if named.endswith("ForTokenClassification") else "qa_outputs"
        count = labels_of(config) if name == "classifier" else 2
        return (*inside, *linear(name, count, w.hidden, Split.REPLICATED, bias=True)), ()
    if named.startswith(family.stem):
        return (*inside, *renamed(_pooler(family, w), ("", f"{family.prefix}."))), (f"the head of {named} is left out",)
    raise UnreadableInputError(f"{config.where}: architectures names {named}, which is no {family.stem}")


def _pooled(family: _Family, w: _Widths) -> Weights:
    """The pooler before a classifier: BERT's inside the encoder, DeBERTa's outside."""
    if family.head == "deberta":
        return linear("pooler.dense", w.hidden, w.hidden, Split.REPLICATED, bias=True)
    return renamed(_pooler(family, w), ("", f"{family.prefix}.")) if family.head == "bert" else ()


def _masked(family: _Family, w: _Widths) -> Weights:
    """The head of a masked-language model; its matrix over the vocabulary is the embeddings'."""
    at, inner_norm, dense, bias = {
        "bert": ("cls.predictions", "transform.LayerNorm", "transform.dense", "bias"),
        "deberta": ("cls.predictions", "transform.LayerNorm", "transform.dense", "bias"),
        "roberta": ("lm_head", "layer_norm", "dense", "bias"),
        "mpnet": ("lm_head", "layer_norm", "dense", "bias"),
        "distilbert": ("", "vocab_layer_norm", "vocab_transform", "vocab_projector.bias"),
        "electra": ("", "generator_predictions.LayerNorm", "generator_predictions.dense", "generator_lm_head.bias"),
    }[family.head]
    lead = f"{at}." if at else ""
    return (
        *linear(f"{lead}{dense}", w.embedded, w.hidden, Split.REPLICATED, bias=True),
        *norm(f"{lead}{inner_norm}", w.embedded, bias=True),
        Weight(f"{lead}{bias}", (w.rows,), Kind.BIAS, Split.VOCABULARY),
    )


def _classifier(family: _Family, w: _Widths, labels: int) -> Weights:
    if family.head in ("roberta", "electra", "mpnet"):
        return (
            *linear("classifier.dense", w.hidden, w.hidden, Split.REPLICATED, bias=True),
            *linear("classifier.out_proj", labels, w.hidden, Split.REPLICATED, bias=True),
        )
    first = (
        linear("pre_classifier", w.hidden, w.hidden, Split.REPLICATED, bias=True) if family.head == "distilbert" else ()
    )
    return (*first, *linear("classifier", labels, w.hidden, Split.REPLICATED, bias=True))


def _roberta(stem: str, rows: int) -> _Family:
    return _Family(stem=stem, prefix="roberta", base=f"{stem}Model", rows=rows, body=_bert_body, head="roberta")


_FAMILIES = {
    "bert": _Family(stem="Bert", prefix="bert", base="BertModel", rows=30522, body=_bert_body),
    "roberta": _roberta("Roberta", 50265),
    "xlm-roberta": _roberta("XLMRoberta", 30522),
    "camembert": _roberta("Camembert", 30522),
    "electra": _Family(
        stem="Electra",
        prefix="electra",
        base="ElectraModel",
        rows=30522,
        hidden=256,
        heads=4,
        inner=1024,
        body=_electra_body,
        pooler=False,
        head="electra",
    ),
    "distilbert": _Family(
        stem="DistilBert",
        prefix="distilbert",
        base="DistilBertModel",
        rows=30522,
        layers=6,
        body=_distil_body,
        pooler=False,
        head="distilbert",
    ),
    "mpnet": _Family(stem="MPNet", prefix="mpnet", base="MPNetModel", rows=30527, body=_mpnet_body, head="mpnet"),
    "deberta-v2": _Family(
        stem="DebertaV2",
        prefix="deberta",
        base="DebertaV2Model",
        rows=128100,
        types=0,
        hidden=1536,
        layers=24,
        heads=24,
        inner=6144,
        body=_deberta_body,
        pooler=False,
        head="deberta",
    ),
}
