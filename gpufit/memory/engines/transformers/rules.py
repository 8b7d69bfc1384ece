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


NO_FLASH_2 = ("gpt_oss",)
"""Families that name other flash kernels only (`_compatible_flash_implementations` in modeling_gpt_oss.py)."""

WIDEST_FLASH_HEAD = 256
"""Numbers a head that flash-attention 2 takes: https://github.com/Dao-AILab/flash-attention."""

SDPA_FROM = (4, 36)
"""The first release that asks for SDPA by itself (`_supports_sdpa` in modeling_utils.py)."""

NOT_GROUPED = ("dbrx", "jetmoe", "longcat_flash", "nllb_moe", "switch_transformers")
"""Families whose experts run one after another in every release: without `use_experts_implementation` in 5.24."""

ALL_EXPERTS = ("llama4", "llama4_text")
"""Families that send every token through every expert (`Llama4TextMoe` in modeling_llama4.py)."""

OWNERS_OF_TABLES = ("llama",)
"""Families whose rotary tables went away with Llama's."""

HYBRID_CACHE = ("cohere2", "gemma2", "gemma3", "gemma3_text", "gemma4", "gemma4_text")
"""Families that before 4.56 cache all tokens of an answer from its start, windows and all (`cache_implementation =
"hybrid"` in their configurations of 4.50)."""

LACKED_BY: dict[tuple[int, int], tuple[str, ...]] = {
    (4, 33): ("mistral",),
    (4, 35): ("llava", "mixtral", "phi"),
    (4, 37): ("gemma", "qwen2", "siglip", "stablelm"),
    (4, 38): ("cohere", "dbrx", "jamba", "llava_next", "mamba", "olmo", "qwen2_moe", "recurrent_gemma", "starcoder2"),
    (4, 40): ("paligemma", "phi3"),
    (4, 41): ("gemma2",),
    (4, 43): ("mamba2", "nemotron"),
    (4, 44): ("falcon_mamba", "granite", "granitemoe", "mllama", "olmoe", "qwen2_audio", "qwen2_vl"),
    (4, 45): ("glm", "idefics3", "phimoe"),
    (4, 46): ("bamba", "cohere2", "modernbert", "olmo2"),
    (4, 48): ("granitemoeshared", "helium", "qwen2_5_vl"),
    (4, 49): ("gemma3", "gemma3_text", "mistral3", "smolvlm"),
    (4, 50): ("deepseek_v3", "glm4", "llama4", "llama4_text", "qwen3", "qwen3_moe"),
    (4, 51): ("arcee", "bitnet", "dots1", "falcon_h1", "granitemoehybrid", "minimax", "qwen2_5_omni", "smollm3"),
    (4, 53): ("deepseek_v2", "ernie4_5", "ernie4_5_moe", "exaone4", "glm4_moe", "lfm2", "voxtral"),
    (4, 54): ("gpt_oss",),
    (4, 55): ("apertus", "glm4v_moe", "hunyuan_v1_dense", "hunyuan_v1_moe", "seed_oss"),
    (4, 56): ("ministral", "olmo3", "qwen3_next", "qwen3_omni_moe", "qwen3_vl", "qwen3_vl_moe"),
    (4, 57): ("cwm", "glm4_moe_lite", "lfm2_moe", "minimax_m2", "ministral3"),
    (5, 0): ("deepseek_v4", "gemma4", "gemma4_text", "glm_moe_dsa", "mistral4", "nemotron_h", "qwen3_5", "qwen3_5_moe"),
}
"""The last release that was read and has no folder for a family; one between it and the next may lack it too."""


def lacks(version: str, model_type: str) -> bool:
    """Whether a release surely has no class for a family."""
    parsed = parse_version(version)
    return any((parsed.major, parsed.minor) <= last for last, families in LACKED_BY.items() if model_type in families)


def default_attention(model_type: str, version: str) -> str:
    """The attention that a family runs in a release where none is asked for."""
    parsed = parse_version(version)
    eager = model_type in EAGER_ONLY or (parsed.major, parsed.minor) < SDPA_FROM
    return "eager" if eager else "sdpa"


@dataclass(frozen=True)
class Rules:
    """How one release runs a model."""

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
    """Before 4.54 SDPA gets keys and values repeated to all heads; since then only where there is a mask, or heads are
    wider than 256 (`use_gqa_in_sdpa` in integrations/sdpa_attention.py)."""
    reserved_share: float
    """From 4.50 on loading first asks for one block of this share of the weights, gives it back and cuts them from it,
    so that they are not rounded up to segments of their own (`caching_allocator_warmup` in modeling_utils.py)."""
    reserved_share_quantised: float
    """The same for quantised weights: before 5.0 half of them (its `factor` is 4 then)."""
    grouped_experts: bool
    """From 5.0 on experts run as one grouped product over every token's choices (`grouped_mm_experts_forward` in
    integrations/moe.py), and in a step on a card as one batched product for which `generate()` gathers the weights of
    every token's experts (`_optimize_model_for_decode`, `batched_mm_experts_forward`); before, one expert after
    another."""
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
