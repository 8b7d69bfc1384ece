"""How releases of transformers differ in what they allocate.

Every rule was read in the released wheels (https://pypi.org/project/transformers/#history), in the file that its
docstring names, and holds from the release it names on.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.errors import UsageError
from gpufit.memory.engines.base import parse_version

OLDEST, NEWEST = (4, 33), (5, 24)
"""Releases whose sources the rules were read in; a later one is taken for the newest, and said to be."""


EAGER_ONLY = (
    "bloom", "deepseek_v4", "falcon_mamba", "gemma2", "gpt_neo", "gpt_oss", "granite_swa", "mamba", "mamba2",
    "mimo_v2_flash", "mpnet", "mpt",
)  # fmt: skip
"""Families without SDPA: `_supports_sdpa` is not true in their modelling files of 5.24. They run eager attention unless
flash is asked for."""


CASTS_ROUTING = (
    "ernie4_5_moe", "flex_olmo", "gpt_oss", "granitemoe", "granitemoehybrid", "granitemoeshared", "lfm2_moe", "olmoe",
    "qwen2_moe", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_moe", "qwen3_next", "qwen3_omni_moe", "qwen3_vl_moe",
)  # fmt: skip
"""Families that cast what a token gives each of its experts back to the model's dtype (`router_top_value.to(...)` in
their modelling files of 5.24); in all others it stays float32, and so do the experts' outputs that it multiplies."""


def default_attention(model_type: str) -> str:
    """The attention that a family runs where none is asked for."""
    return "eager" if model_type in EAGER_ONLY else "sdpa"


@dataclass(frozen=True)
class Rules:
    """How one release runs a decoder."""

    whole_cache_twice: bool
    """Before 4.42 `generate()` hands over tuples: every step makes all layers' keys and values anew while the caller
    still holds the old ones. From 4.42 on a DynamicCache grows layer by layer (`_get_cache` in generation/utils.py)."""
    outputs_outlive_step: bool
    """Before 4.42 the last step's logits live until the next are there; since then `del outputs`
    (generation/utils.py)."""
    first_update_copies: bool
    """From 4.56 on a layer of DynamicCache begins with an empty tensor, so the prompt's keys and values are copied by
    `torch.cat` too (`DynamicLayer.update` in cache_utils.py)."""
    sliding_cache: bool
    """From 4.56 on a DynamicCache drops what a sliding layer no longer sees (`DynamicSlidingWindowLayer` in
    cache_utils.py); before, it keeps every token."""
    all_logits_twice: bool
    """Before 4.45 `forward` makes logits of every position, and then a float32 copy of them; since then of the last
    position alone, in the model's dtype (`num_logits_to_keep` in modeling_llama.py)."""
    llama_rotary_tables: bool
    """Before 4.41 every layer of a Llama keeps tables of cosines and sines for all positions (`cos_cached`, from 4.38
    on `_cos_cached`, in modeling_llama.py)."""
    other_rotary_tables: bool
    """Before 4.45 the same for other families (`cos_cached` in modeling_qwen2.py)."""
    repeats_kv_for_flash: bool
    """Before 4.48 families other than Llama repeat keys and values to all heads before flash attention
    (`repeat_kv` in modeling_qwen2.py)."""
    repeats_kv_for_sdpa: bool
    """Before 4.54 SDPA gets keys and values repeated to all heads; since then only where there is a mask
    (`use_gqa_in_sdpa` in integrations/sdpa_attention.py)."""
    reserved_share: float
    """From 4.50 on loading first asks for one block of this share of the weights, gives it back and cuts them from it,
    so that they are not rounded up to segments of their own (`caching_allocator_warmup` in modeling_utils.py)."""
    reserved_share_quantised: float
    """The same for quantised weights: before 5.0 half of them (its `factor` is 4 then)."""
    grouped_experts: bool
    """From 5.0 on experts run as one grouped product over every token's choices (`grouped_mm_experts_forward` in
    integrations/moe.py); before, one expert after another."""
    latent_cache: bool
    """From 5.15 on multi-head latent attention caches the latent; before, every head's key and value
    (`expand_kv` in modeling_deepseek_v3.py). https://github.com/huggingface/transformers/pull/47761"""


def rules_of(version: str) -> Rules:
    """The rules of a release. Raises UsageError for one older than any that was read."""
    parsed = parse_version(version)
    release = parsed.major, parsed.minor
    if release < OLDEST:
        raise UsageError(
            f"transformers {version}: its rules were read from {OLDEST[0]}.{OLDEST[1]} on; name a later release"
        )
    return Rules(
        whole_cache_twice=release < (4, 42),
        outputs_outlive_step=release < (4, 42),
        first_update_copies=release >= (4, 56),
        sliding_cache=release >= (4, 56),
        all_logits_twice=release < (4, 45),
        llama_rotary_tables=release < (4, 41),
        other_rotary_tables=release < (4, 45),
        repeats_kv_for_flash=release < (4, 48),
        repeats_kv_for_sdpa=release < (4, 54),
        reserved_share=1.0 if release >= (4, 50) else 0.0,
        reserved_share_quantised=1.0 if release >= (5, 0) else 0.5 if release >= (4, 50) else 0.0,
        grouped_experts=release >= (5, 0),
        latent_cache=release >= (5, 15),
    )
