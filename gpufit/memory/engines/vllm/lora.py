"""What `--enable-lora` allocates as it loads: slots for the adapters of a batch, beside every layer they may change.

Each slot is a pair of matrices, A of rank x inputs and B of outputs x rank, as large as the largest adapter allowed and
there whether an adapter is loaded or not: lora_a_stacked and lora_b_stacked in
https://github.com/vllm-project/vllm/tree/main/vllm/lora/layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from gpufit.architecture.record import Architecture, Component, Kind, Split, StateCache, Weight
from gpufit.errors import UsageError
from gpufit.memory.allocator import DEFAULTS, handed_out
from gpufit.memory.allocator import Settings as AllocatorSettings
from gpufit.memory.engines.base import Amount, Part, Version, exactly
from gpufit.memory.engines.vllm.lora_models import (
    adapts_embeddings,
    adapts_embeddings_twice,
    adapts_head,
    pairs_gate_and_up,
    takes_adapters,
)
from gpufit.memory.engines.vllm.versions import Rules
from gpufit.memory.engines.vllm.weights import VOCABULARY_STEP, Ranks, elements_per_rank
from gpufit.profile.evidence import Evidence
from gpufit.units import MIB, format_size

_COUNTED = (0, 8)
"""The first release that allocates them before it prints "Model loading took"; 0.7.3 and before do so after, and take
no account of them (load_model in vllm/worker/model_runner.py, https://github.com/vllm-project/vllm/issues/14450)."""
_EXPERTS = (0, 11, 1)
"""The first release with adapters for fused experts (vllm/lora/layers/fused_moe.py: in 0.11.2, not in 0.11.0)."""
_EXPERTS_BY_NUMBER = (0, 20, 1)
"""Up to 0.20.0 it asserts that experts are not divided by number; 0.29.0 divides their slots so, too."""
_NO_MORE_VOCABULARY = (0, 12)
"""Until here an adapter could bring tokens of its own (lora_extra_vocab_size)."""
_MORE_TOKENS = 256
"""As many as its default lets each adapter bring, and what vocabularies are padded to for them
(lora_vocab_padding_size)."""

_RANKS: tuple[tuple[tuple[int, int, int], tuple[int, ...]], ...] = (
    ((0, 11, 1), (1, 8, 16, 32, 64, 128, 256, 320, 512)),
    ((0, 8, 0), (8, 16, 32, 64, 128, 256, 320, 512)),
    ((0, 6, 0), (8, 16, 32, 64, 128, 256)),
    ((0, 0, 0), (8, 16, 32, 64)),
)
"""First release -> the values that `--max-lora-rank` may have (vllm/config/lora.py, MaxLoRARanks; before, LoRAConfig in
vllm/config.py), as seen in 0.5.0, 0.6.6, 0.7.3, 0.8.0, 0.11.0, 0.11.2 and later."""

_DOUBT = 0.002
"""Share by which they may differ: as for 16-bit weights."""
_BATCH_TABLES_BYTES = MIB
"""What tables that map tokens to adapters may add: about 68 B a token of the largest batch (punica_base.py)."""
_STATES_MORE = 0.5
"""The share more where a model has state-space or linear-attention layers: some releases split their projections into
up to five slices, each with an A of its own."""

_MATRICES = frozenset({Kind.LINEAR, Kind.ROUTER, Kind.CONVOLUTION})
"""What vLLM makes linear layers of outside routed experts: short convolutions are (ColumnParallelLinear)."""


@dataclass(frozen=True, slots=True)
class Lora:
    """`--enable-lora`, with what decides its size."""

    max_loras: int = 1
    """`--max-loras`: adapters in one batch, each a slot."""
    max_rank: int = 16
    """`--max-lora-rank`: the largest rank of an adapter."""

    def __post_init__(self) -> None:
        if self.max_loras < 1:
            raise UsageError(f"--max-loras {self.max_loras} is not a positive number of adapters")


def ranks_of(version: Version) -> tuple[int, ...]:
    """The values of `--max-lora-rank` that a release takes."""
    return next(ranks for since, ranks in _RANKS if version.at_least(*since))


def adapts_experts(architecture: Architecture, rules: Rules) -> bool:
    """Whether routed experts get slots."""
    return architecture.experts is not None and rules.version.at_least(*_EXPERTS)


def refuse_lora(architecture: Architecture, ranks: Ranks, lora: Lora, rules: Rules) -> None:
    """Raise UsageError, with the reason, where vLLM would not start so."""
    allowed = ranks_of(rules.version)
    if lora.max_rank not in allowed:
        raise UsageError(
            f"--max-lora-rank {lora.max_rank}: vLLM {rules.version} takes {', '.join(map(str, allowed))}; use the "
            "smallest that holds your adapters' rank"
        )
    if not takes_adapters(architecture.class_name, rules.version):
        raise UsageError(
            f"--enable-lora: vLLM {rules.version} takes no adapters for {architecture.class_name}; leave it out"
        )
    if ranks.expert and adapts_experts(architecture, rules) and not rules.version.at_least(*_EXPERTS_BY_NUMBER):
        raise UsageError(
            f"--enable-lora: vLLM {rules.version} takes no adapters for experts that are divided by number; leave "
            "--enable-expert-parallel out"
        )


def lora_part(
    architecture: Architecture,
    ranks: Ranks,
    lora: Lora,
    rules: Rules,
    item_bytes: int,
    allocator: AllocatorSettings = DEFAULTS,
) -> Part:
    """The slots on one rank; `item_bytes` is an element's size in the model's own dtype, which they have, too.

    Checked against three printed figures, which they explain to 0.5 MB: 132.1 MB of Qwen3-4B's at rank 32, 248.1 MB of
    Llama-3.2-3B's at rank 64, and 199.4 MB of Llama-3.1-8B's with two slots (rows A028, A019 and A162 of
    tests/facts/vllm/starts.json). Raises UsageError where vLLM would not start so.
    """
    refuse_lora(architecture, ranks, lora, rules)
    size = sum(handed_out(one, allocator) for one in adapter_sizes(architecture, ranks, lora, rules, item_bytes))
    size += sum(
        handed_out(after, allocator) - handed_out(before, allocator)
        for before, after in _longer_vocabularies(architecture, ranks, lora, rules, item_bytes)
    )
    states = any(isinstance(one, StateCache) for one in architecture.caches)
    more = _STATES_MORE if states else _DOUBT
    amount = Amount(int(size * (1 - _DOUBT)), size, int(size * (1 + more)) + _BATCH_TABLES_BYTES)
    words = " ".join(_words(architecture, lora, rules))
    if rules.version.at_least(*_COUNTED):
        return Part("lora", amount, Evidence.COMPUTED, (words,))
    beside = f"{format_size(size)} on top of the budget, of which this release takes no account"
    return Part("lora", exactly(0), Evidence.COMPUTED, (words, beside), on_top=amount)


def adapter_sizes(architecture: Architecture, ranks: Ranks, lora: Lora, rules: Rules, item_bytes: int) -> Iterator[int]:
    """Size in bytes of each buffer on one rank: a pair for each linear layer as the checkpoint has them, those that are
    fused apart; experts all at once; then embeddings and head."""
    slot = lora.max_loras * lora.max_rank * item_bytes
    for weight in architecture.weights:
        if weight.kind not in _MATRICES or weight.component is not Component.DECODER or len(weight.shape) == 1:
            continue
        inputs, outputs = _widths(weight, architecture, ranks)
        for _ in weight.layers or (0,):
            yield inputs * slot
            yield outputs * slot
    if adapts_experts(architecture, rules):
        yield from (width * slot for width in _expert_widths(architecture, ranks, rules))
    yield from _of_vocabulary(architecture, ranks, lora, rules, item_bytes)


def _widths(weight: Weight, architecture: Architecture, ranks: Ranks) -> tuple[int, int]:
    """Inputs and outputs of a linear layer on one rank."""
    outputs = weight.shape[0]
    inputs = weight.elements // outputs
    here = elements_per_rank(weight, architecture, ranks)
    return (here // outputs, outputs) if weight.split is Split.ROW else (inputs, here // inputs)


def _expert_widths(architecture: Architecture, ranks: Ranks, rules: Rules) -> Iterator[int]:
    """Width of each buffer of each layer's experts on one rank, all its experts together."""
    experts = architecture.experts
    if experts is None:
        return
    down = next(
        one
        for one in architecture.weights
        if one.kind is Kind.EXPERT and one.split is Split.ROW and one.component is Component.DECODER
    )
    stacked = down.shape[0] if len(down.shape) == 3 else 1
    hidden = down.elements // stacked // experts.intermediate
    count = experts.count // ranks.tensor if ranks.expert else experts.count
    inner = experts.intermediate if ranks.expert else experts.intermediate // ranks.tensor
    at_once = pairs_gate_and_up(architecture.class_name, rules.version)
    first = [(hidden, 2 * inner)] if at_once else [(hidden, inner)] * (2 if architecture.gated else 1)
    for _ in range(experts.layers):
        for inputs, outputs in (*first, (inner, hidden)):
            yield count * inputs
            yield count * outputs


def _of_vocabulary(
    architecture: Architecture, ranks: Ranks, lora: Lora, rules: Rules, item_bytes: int
) -> Iterator[int]:
    """Buffers of embeddings and head, whole on every rank."""
    name, version = architecture.class_name, rules.version
    slot = lora.max_loras * lora.max_rank * item_bytes
    added = _added_tokens(rules)
    own_rows = lora.max_loras * added * architecture.hidden * item_bytes
    if adapts_embeddings(name, version):
        twice = architecture.tied and adapts_embeddings_twice(name)
        for _ in range(2 if twice else 1):
            yield (architecture.vocabulary + added) * slot
            yield architecture.hidden * slot
            if own_rows:
                yield own_rows
    if adapts_head(name, version):
        tokens = _up(architecture.vocabulary + added, _MORE_TOKENS) if added else architecture.vocabulary
        yield architecture.hidden * slot
        yield tokens * slot
        if own_rows:
            yield own_rows
        if ranks.tensor > 1:
            # Where each token's logit lies once those of all ranks are gathered (sharded_to_full_mapping_gpu, int64).
            yield tokens * 8


def _longer_vocabularies(
    architecture: Architecture, ranks: Ranks, lora: Lora, rules: Rules, item_bytes: int
) -> Iterator[tuple[int, int]]:
    """Sizes of embeddings and of an untied head on one rank, without and with the tokens that adapters may bring."""
    added = _added_tokens(rules)
    if not added or not adapts_embeddings(architecture.class_name, rules.version):
        return
    row = architecture.hidden * item_bytes
    plain = _up(architecture.vocabulary, VOCABULARY_STEP)
    yield plain // ranks.tensor * row, (plain + added * lora.max_loras) // ranks.tensor * row
    if not architecture.tied and adapts_head(architecture.class_name, rules.version):
        head = _up(architecture.vocabulary, _MORE_TOKENS) + added
        yield plain // ranks.tensor * row, head // ranks.tensor * row


def _added_tokens(rules: Rules) -> int:
    return 0 if rules.version.at_least(*_NO_MORE_VOCABULARY) else _MORE_TOKENS


def _words(architecture: Architecture, lora: Lora, rules: Rules) -> Iterator[str]:
    slots = "1 slot for adapters" if lora.max_loras == 1 else f"{lora.max_loras} slots for adapters, each"
    yield f"{slots} of rank {lora.max_rank} at most, beside every linear layer"
    places = []
    if adapts_experts(architecture, rules):
        places.append("every expert")
    if adapts_embeddings(architecture.class_name, rules.version):
        places.append("embeddings")
    if adapts_head(architecture.class_name, rules.version):
        places.append("head")
    if places:
        yield f"({', '.join(places)} included)"
    if architecture.experts is not None and not adapts_experts(architecture, rules):
        yield "(not the experts, which have none in this release)"


def _up(count: int, step: int) -> int:
    return -(-count // step) * step
