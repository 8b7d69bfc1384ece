"""What one rank holds of a model that transformers shards: its plans for tensor parallelism, family by family.

A plan names the modules whose weights are divided (`base_model_tp_plan` in each family's configuration of 5.24,
https://github.com/huggingface/transformers/tree/main/src/transformers/models); everything else is whole on each rank,
and so are towers here, of which one family's plan (Llama 4's) divides some layers.
Families with a plan have embeddings and head divided, too (`embedding_rowwise`, `colwise_gather_output`).
"""

from __future__ import annotations

import enum

from gpufit.architecture.record import (
    Architecture,
    AttentionCache,
    Component,
    CompressedCache,
    Kind,
    LatentCache,
    Split,
    StateCache,
    Weight,
)


class Part(enum.Flag):
    """What a plan divides beside embeddings and head."""

    ATTENTION = enum.auto()
    """Projections of queries, keys, values and output, and with them the KV heads."""
    GATHERED = enum.auto()
    """The same weights, whose outputs are gathered (`colwise_gather_output`): the KV cache is whole on each rank."""
    LATENT = enum.auto()
    """The up projections of latent attention and its output; the latent itself is not divided."""
    MLP = enum.auto()
    EXPERTS = enum.auto()
    SHARED = enum.auto()
    """Experts that every token goes through."""


_DENSE = Part.ATTENTION | Part.MLP
_SPARSE = Part.ATTENTION | Part.MLP | Part.EXPERTS
_GROUPS: tuple[tuple[Part, tuple[str, ...]], ...] = (
    (
        _DENSE,
        (
            "apertus", "arcee", "codegen", "cohere", "cohere2", "cwm", "ernie4_5", "exaone", "exaone4", "gemma",
            "gemma2", "gemma3", "gemma3_text", "glm", "glm4", "glm4v", "gpt_neox", "gptj", "granite", "granite_swa",
            "helium", "idefics3", "internlm3", "internvl", "llama", "llava", "llava_next", "llava_onevision",
            "ministral", "ministral3", "mistral", "mistral3", "nemotron", "olmo", "paligemma", "phi", "qwen2",
            "qwen2_5_omni", "qwen2_5_vl", "qwen2_audio", "qwen2_vl", "qwen3", "seed_oss", "smollm3", "smolvlm",
            "starcoder2", "voxtral",
        ),
    ),
    (_SPARSE, ("gemma4", "gemma4_text", "mimo_v2_flash", "qwen2_moe", "qwen3_moe", "qwen3_omni_moe", "qwen3_vl_moe")),
    (_SPARSE | Part.SHARED, ("dots1", "ernie4_5_moe", "glm4_moe", "glm4v_moe", "llama4", "llama4_text")),
    (Part.ATTENTION | Part.EXPERTS, ("minimax", "mixtral")),
    (Part.GATHERED | Part.MLP, ("olmo2", "olmo3", "phi3")),
    (Part.GATHERED | Part.EXPERTS, ("minimax_m2", "olmoe")),
    (Part.LATENT | Part.MLP, ("minicpm3",)),
    (Part.LATENT | Part.MLP | Part.EXPERTS, ("glm4_moe_lite",)),
    (Part.LATENT | Part.MLP | Part.EXPERTS | Part.SHARED, ("deepseek_v2", "deepseek_v32", "glm5_next", "glm_moe_dsa")),
    (Part.MLP | Part.EXPERTS | Part.SHARED, ("deepseek_v3", "kimi_k25", "kimi_linear", "mistral4")),
    (Part.EXPERTS, ("granitemoe", "granitemoeshared", "hunyuan_v1_moe", "lfm2_moe", "phimoe")),
)  # fmt: skip
PLANS: dict[str, Part] = {family: part for part, families in _GROUPS for family in families}
"""Family -> what transformers' plan divides. Families without one, and those whose plan names their embeddings alone
(gpt-oss, Falcon H1), are not in it."""

LATENT_CACHE_FROM = (5, 15)
"""From here on latent attention caches the latent, which no plan divides (`Rules.latent_cache`)."""


def refusal(model: Architecture, ranks: int) -> str:
    """Why transformers cannot divide a model over so many ranks, in words; empty where it can."""
    plan = PLANS.get(model.model_type)
    if plan is None:
        return f"transformers has no plan that divides the layers of {model.model_type}"
    if any(isinstance(one, StateCache | CompressedCache) for one in model.caches):
        return f"no rule here tells what a rank holds of the recurrent layers of {model.model_type}"
    if plan & (Part.ATTENTION | Part.LATENT) and model.heads % ranks:
        return f"{model.heads} attention heads cannot be divided over {ranks} ranks"
    if plan & Part.ATTENTION:
        for cache in model.caches:
            if isinstance(cache, AttentionCache) and cache.kv_heads % ranks:
                return f"{cache.kv_heads} KV heads cannot be divided over {ranks} ranks"
    return ""


def is_divided(weight: Weight, model: Architecture) -> bool:
    """Whether the plan of the model's family divides a weight."""
    plan = PLANS[model.model_type]
    if weight.component is not Component.DECODER or weight.split is Split.REPLICATED:
        return False
    if weight.split is Split.VOCABULARY:
        return True
    if weight.kind is Kind.EXPERT:
        return bool(plan & Part.EXPERTS)
    if ".shared_expert" in weight.name:
        return bool(plan & Part.SHARED)
    if "attn" in weight.name or "attention" in weight.name:
        return bool(plan & (Part.ATTENTION | Part.GATHERED | Part.LATENT))
    return bool(plan & Part.MLP)


def kv_share(model: Architecture, ranks: int, *, latent_cache: bool) -> float:
    """The share of the KV cache that one rank holds; `latent_cache`: whether a latent is cached as it is."""
    plan = PLANS[model.model_type]
    if any(isinstance(one, LatentCache) for one in model.caches):
        return 1.0 if latent_cache or not plan & Part.LATENT else 1 / ranks
    return 1 / ranks if plan & Part.ATTENTION else 1.0
