"""What "Model loading took" prints: weights on one rank as vLLM fuses, pads and divides them, in allocator blocks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from gpufit.architecture.record import Architecture, AttentionCache, Component, Kind, LatentCache, Split, Weight
from gpufit.errors import UsageError
from gpufit.memory.allocator import DEFAULTS, handed_out
from gpufit.memory.allocator import Settings as AllocatorSettings
from gpufit.memory.engines.base import Part, around
from gpufit.memory.engines.vllm.precision import Precision
from gpufit.memory.engines.vllm.rope import rope_table_sizes
from gpufit.profile.evidence import Evidence
from gpufit.units import format_size

VOCABULARY_STEP = 64
"""Rows of embeddings and head are padded to a multiple of this (DEFAULT_VOCAB_PADDING_SIZE,
https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/vocab_parallel_embedding.py)."""

PLAIN_DOUBT = 0.002
"""Share by which 16-bit weights may differ: small tensors share segments, and small buffers are not counted."""
QUANTISED_DOUBT = (0.03, 0.06)
"""Shares less and more for quantised ones: kernels repack and pad, and methods leave out layers of their own choice."""
QUANTISED_DOUBT_ELSEWHERE = 0.45
"""The share more for quantised weights on another vendor's cards, whose kernels have layouts of their own: 11.11 and
11.62 GiB were printed where 8.27 and 9.06 were enough (https://github.com/nlzy/vllm-gfx906/issues/10)."""

_TOWERS = frozenset({Component.VISION, Component.AUDIO, Component.PROJECTOR})
_DIVIDED_TOWERS = frozenset({Component.VISION, Component.AUDIO})
"""Towers whose linear layers vLLM divides over the ranks as it does the decoder's, where transformers keeps them whole:
Gemma-3-27b over 4 ranks printed 13.1665 GiB (https://github.com/vllm-project/vllm/issues/15676)."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """Over how many cards a model is spread."""

    tensor: int = 1
    expert: bool = False
    """`--enable-expert-parallel`: experts whole, divided over the ranks by number instead of by width."""
    stages: int = 1
    """`--pipeline-parallel-size`: groups of ranks that each hold some of the layers."""

    def __post_init__(self) -> None:
        if self.tensor < 1:
            raise UsageError(f"tensor parallel size {self.tensor} is not a positive number of cards")
        if self.stages < 1:
            raise UsageError(f"pipeline parallel size {self.stages} is not a positive number of stages")

    @property
    def count(self) -> int:
        """All of them."""
        return self.tensor * self.stages


ONE_CARD = Ranks()
"""No parallelism."""


def refuse_indivisible(architecture: Architecture, ranks: Ranks) -> None:
    """Raise UsageError, with the reason, where vLLM could not divide the model over so many ranks.

    https://docs.vllm.ai/en/stable/serving/parallelism_scaling.html
    """
    tp = ranks.tensor
    if architecture.heads % tp:
        raise UsageError(f"{architecture.heads} attention heads cannot be divided over {tp} ranks")
    for cache in architecture.caches:
        if isinstance(cache, AttentionCache):
            kv_heads_per_rank(cache.kv_heads, tp)


def kv_heads_per_rank(kv_heads: int, tp: int) -> int:
    """KV heads that a rank holds: its share, down to one, which several ranks then hold alike."""
    if kv_heads >= tp:
        if kv_heads % tp:
            raise UsageError(f"{kv_heads} KV heads cannot be divided over {tp} ranks")
        return kv_heads // tp
    if tp % kv_heads:
        raise UsageError(f"{kv_heads} KV heads cannot be repeated over {tp} ranks")
    return 1


def elements_per_rank(weight: Weight, architecture: Architecture, ranks: Ranks) -> int:
    """Elements of one copy of a weight on one rank. Raises UsageError where it cannot be divided."""
    tp = ranks.tensor
    if weight.kind is Kind.EXPERT and ranks.expert:
        return weight.elements
    if weight.component in _DIVIDED_TOWERS and weight.kind is Kind.LINEAR:
        return weight.elements // tp if weight.elements % tp == 0 else weight.elements
    if weight.split is Split.REPLICATED or (tp == 1 and weight.split is not Split.VOCABULARY):
        return weight.elements
    if weight.split is Split.VOCABULARY:
        rows = -(-weight.shape[0] // VOCABULARY_STEP) * VOCABULARY_STEP
        return _divided(rows, tp, weight) * (weight.elements // weight.shape[0])
    if weight.split is Split.KV_HEADS:
        kv_heads = _kv_heads(weight, architecture)
        return weight.elements // kv_heads * kv_heads_per_rank(kv_heads, tp)
    if len(weight.shape) == 2:
        dimension = 0 if weight.split is Split.COLUMN else 1
        return _divided(weight.shape[dimension], tp, weight) * (weight.elements // weight.shape[dimension])
    return _divided(weight.elements, tp, weight)


def tensors_per_rank(
    architecture: Architecture, ranks: Ranks, precision: Precision, *, language_only: bool = False
) -> Iterator[tuple[str, str, int]]:
    """Name, dtype and size in bytes of each tensor that a rank holds once the model is loaded, layer by layer.

    Linear layers of one module that vLLM fuses are one tensor, and so are all experts of a layer. `language_only`
    leaves out the towers for images and sound (`--language-model-only`).
    """
    for members in _fused(architecture.weights):
        first = members[0]
        if language_only and first.component in _TOWERS:
            continue
        experts = first.experts
        if first.kind is Kind.EXPERT and ranks.expert:
            experts = _divided(experts, ranks.tensor, first) if experts > 1 else experts
        elements = sum(elements_per_rank(one, architecture, ranks) for one in members) * experts
        of_values, of_scales = _padding(first, architecture, ranks, precision)
        for layer in first.layers or (0,):
            name = first.name.replace("{layer}", str(layer))
            (dtype, values), *beside = precision.stands_for(first, layer)
            yield name, dtype, int(values * elements * of_values)
            for dtype, share in beside:
                yield name, dtype, int(share * elements * of_scales)
            if _is_absorbed(first, architecture):
                yield f"{name} (absorbed)", precision.dtype, elements * precision.plain_bytes


def weights_per_rank(
    architecture: Architecture,
    ranks: Ranks,
    precision: Precision,
    *,
    language_only: bool = False,
    nvidia: bool = True,
    allocator: AllocatorSettings = DEFAULTS,
) -> Part:
    """The weights part: what vLLM prints after loading, tables of rotary positions included; of a pipeline, the
    `architecture` is what one stage holds (`stages.fullest_stage`).

    Checked against printed figures: Qwen2-7B 14.2488 GiB, Llama-3.1-8B over 8 ranks 1.9028 GiB
    (https://github.com/mlcommons/inference/issues/2267).
    """
    refuse_indivisible(architecture, ranks)
    tensors = [size for *_, size in tensors_per_rank(architecture, ranks, precision, language_only=language_only)]
    tables = rope_table_sizes(architecture, precision.plain_bytes)
    allocated = sum(handed_out(size, allocator) for size in (*tensors, *tables))
    less, more = QUANTISED_DOUBT if precision.method is not None else (PLAIN_DOUBT, PLAIN_DOUBT)
    if precision.method is not None and not nvidia:
        more = QUANTISED_DOUBT_ELSEWHERE
    words = [
        f"{precision.name} weights on {_ranks(ranks.tensor)}, fused and padded as vLLM does, in allocator "
        f"blocks ({format_size(allocated - sum(tensors) - sum(tables))} of them rounding)",
        f"{format_size(sum(tables))} of rotary tables, whole on each rank",
    ]
    if ranks.stages > 1:
        words.append(f"the fullest of {ranks.stages} pipeline stages: {architecture.layers} layers and the head")
    peak = None
    if precision.whole_first:
        plain = Precision(precision.dtype)
        loaded = weights_per_rank(architecture, ranks, plain, language_only=language_only, allocator=allocator)
        peak = loaded.amount
        words.append(f"by vLLM's docs loaded in 16 bit first, {format_size(peak.point_bytes)}, and quantised then")
    return Part("weights", around(allocated, less, more), Evidence.COMPUTED, tuple(words), peak)


def _ranks(count: int) -> str:
    return "one rank" if count == 1 else f"each of {count} ranks"


def _fused(weights: Iterable[Weight]) -> list[list[Weight]]:
    """Weights by the tensor that vLLM makes of them; the layers of multi-token prediction are not loaded."""
    groups: dict[tuple[object, ...], list[Weight]] = {}
    for number, weight in enumerate(weights):
        if not weight.parameter or weight.component is Component.PREDICTOR:
            continue
        parent, _, kind = weight.name.rpartition(".")
        module = parent.rpartition(".")[0]
        key = (module, weight.fused, kind, weight.layers, weight.kind) if weight.fused else (number,)
        groups.setdefault(key, []).append(weight)
    return list(groups.values())


def _padding(
    weight: Weight, architecture: Architecture, ranks: Ranks, precision: Precision
) -> tuple[Fraction, Fraction]:
    """How many times as much values and scales of a rank's experts take because a kernel pads them."""
    experts = architecture.experts
    if weight.kind is not Kind.EXPERT or precision.steps is None or experts is None:
        return Fraction(1), Fraction(1)
    inner = experts.intermediate if ranks.expert else _divided(experts.intermediate, ranks.tensor, weight)
    return precision.steps.padding(inner, architecture.hidden, down="down" in weight.name)


def _is_absorbed(weight: Weight, architecture: Architecture) -> bool:
    """Whether vLLM keeps a second, 16-bit copy of a weight: multi-head latent attention takes its up-projection apart
    into keys and values, W_UK_T and W_UV.

    https://github.com/vllm-project/vllm/blob/main/vllm/model_executor/layers/attention/mla_attention.py
    """
    latent = any(isinstance(one, LatentCache) for one in architecture.caches)
    return latent and weight.name.endswith("kv_b_proj.weight")


def _kv_heads(weight: Weight, architecture: Architecture) -> int:
    """KV heads in the rows of a key or value projection: of the cache that has as many elements a token."""
    caches = [one for one in architecture.caches if isinstance(one, AttentionCache)]
    rows = weight.shape[0]
    for cache in caches:
        if rows in (cache.kv_heads * cache.key_dim, cache.kv_heads * cache.value_dim):
            return cache.kv_heads
    for cache in caches:
        if rows % cache.kv_heads == 0:
            return cache.kv_heads
    raise UsageError(
        f"{weight.name}: its {rows} rows match no KV cache of the model, so nobody can say how it is divided"
    )


def _divided(count: int, by: int, weight: Weight) -> int:
    if count % by:
        raise UsageError(f"{weight.name}: {count} cannot be divided over {by} ranks")
    return count // by
