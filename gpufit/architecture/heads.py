"""The same stack under another head: a bare model, a classifier, a reward model."""

from __future__ import annotations

from dataclasses import replace

from gpufit.architecture.blocks import Weights, linear
from gpufit.architecture.config import Config
from gpufit.architecture.record import Architecture, Kind, Split

_CAUSAL = "ForCausalLM"


def labels_of(config: Config) -> int:
    """Labels of a classifier: as many as `id2label` names, else `num_labels`, else transformers' two."""
    named = config.section("id2label")
    if named is not None:
        return max(len(named.values), 1)
    return config.count("num_labels", default=2)


def with_head_of(built: Architecture, class_name: str, config: Config) -> Architecture:
    """The architecture as its config's first class holds it.

    transformers names a decoder's classes after its causal one: `QwenModel` has no head and no `model.` before its
    names, `QwenForSequenceClassification` has `score` in the head's place. Neither generates.
    """
    stem = built.class_name.removesuffix(_CAUSAL)
    if not built.class_name.endswith(_CAUSAL) or class_name == built.class_name:
        return replace(built, class_name=class_name)
    headless = tuple(one for one in built.weights if one.kind is not Kind.HEAD and not one.name.startswith("lm_head."))
    if class_name == f"{stem}Model":
        bare = tuple(replace(one, name=_bare(one.name)) for one in headless)
        return replace(built, class_name=class_name, weights=bare, caches=(), generates=False, tied=False)
    score: Weights = ()
    if class_name in (f"{stem}ForSequenceClassification", f"{stem}ForTokenClassification"):
        token = class_name.endswith("TokenClassification")
        score = linear("score", labels_of(config), built.hidden, Split.REPLICATED, bias=token)
        return replace(
            built, class_name=class_name, weights=(*headless, *score), caches=(), generates=False, tied=False
        )
    return replace(built, class_name=class_name)


def _bare(name: str) -> str:
    for prefix in ("model.", "transformer.", "backbone.", "gpt_neox."):
        if name.startswith(prefix):
            return name.removeprefix(prefix)
    return name
