"""Multi-head latent attention, and the indexer that picks tokens for it.

https://arxiv.org/abs/2405.04434 (latents) and https://huggingface.co/deepseek-ai/DeepSeek-V3.2-Exp (indexer); names and
shapes as in deepseek_v3, deepseek_v32 and glm_moe_dsa of
https://github.com/huggingface/transformers/tree/main/src/transformers/models
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.architecture.blocks import Layers, Weights, linear, norm
from gpufit.architecture.config import Config
from gpufit.architecture.decoder import Widths
from gpufit.architecture.record import Split

_LETTERS = {"F": "full", "S": "shared"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Latent:
    """Widths of latent attention."""

    q_rank: int | None
    """Absent where queries are projected at once."""
    kv_rank: int
    nope: int
    """Elements of a head's key without positions, and of one with them."""
    rope: int
    value: int
    indexer_dim: int = 0
    indexer_heads: int = 0


def latent_attention(at: str, w: Widths, it: Latent, layers: Layers, own: Layers, *, bias: bool = False) -> Weights:
    """Latent attention; the layers in `own` have an indexer, where the family has any.

    Down projections and the indexer are whole on each rank, as vLLM keeps them.
    """
    return (
        *_queries(at, w, it, layers, bias=bias),
        *linear(f"{at}.kv_a_proj_with_mqa", it.kv_rank + it.rope, w.hidden, Split.REPLICATED, layers, bias=bias),
        *norm(f"{at}.kv_a_layernorm", it.kv_rank, layers),
        *linear(f"{at}.kv_b_proj", w.heads * (it.nope + it.value), it.kv_rank, Split.COLUMN, layers),
        *linear(f"{at}.o_proj", w.hidden, w.heads * it.value, Split.ROW, layers, bias=bias),
        *(indexer(f"{at}.indexer", w, it, own) if it.indexer_dim and own else ()),
    )


def _queries(at: str, w: Widths, it: Latent, layers: Layers, *, bias: bool) -> Weights:
    out = w.heads * (it.nope + it.rope)
    if it.q_rank is None:
        return linear(f"{at}.q_proj", out, w.hidden, Split.COLUMN, layers)
    return (
        *linear(f"{at}.q_a_proj", it.q_rank, w.hidden, Split.REPLICATED, layers, bias=bias),
        *norm(f"{at}.q_a_layernorm", it.q_rank, layers),
        *linear(f"{at}.q_b_proj", out, it.q_rank, Split.COLUMN, layers),
    )


def indexer(at: str, w: Widths, it: Latent, layers: Layers) -> Weights:
    """The indexer's projections."""
    into = it.q_rank or w.hidden
    return (
        *linear(f"{at}.wq_b", it.indexer_heads * it.indexer_dim, into, Split.REPLICATED, layers),
        *linear(f"{at}.wk", it.indexer_dim, w.hidden, Split.REPLICATED, layers),
        *norm(f"{at}.k_norm", it.indexer_dim, layers, bias=True),
        *linear(f"{at}.weights_proj", it.indexer_heads, w.hidden, Split.REPLICATED, layers),
    )


def indexing(config: Config, layers: Layers) -> Layers:
    """The layers that run an indexer of their own; the others take over the choice of the layer before.

    GLM 5 lists them under `indexer_types`, or in letters, or as every so many layers; where it says nothing, and in
    DeepSeek V3.2, each layer has one.
    """
    named = config.texts("indexer_types")
    pattern = config.values.get("index_topk_pattern")
    if named is None and isinstance(pattern, str):
        named = tuple(_LETTERS.get(one, "") for one in pattern)
    if named is not None:
        return tuple(one for one in layers if one >= len(named) or named[one] == "full")
    step = config.count("index_topk_freq", default=1)
    first = config.count("index_skip_topk_offset", default=2, least=0)
    return tuple(one for one in layers if max(one - first + 1, 0) % step == 0)
