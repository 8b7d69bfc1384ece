"""How vLLM is started: the settings that memory depends on, and their defaults by card and release."""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.catalog.record import Card
from gpufit.errors import UsageError
from gpufit.memory.allocator import DEFAULTS
from gpufit.memory.allocator import Settings as AllocatorSettings
from gpufit.memory.engines.vllm.layers import DEFAULT_BLOCK_TOKENS
from gpufit.memory.engines.vllm.lora import Lora
from gpufit.memory.engines.vllm.versions import Rules, Sampler
from gpufit.memory.engines.vllm.weights import ONE_CARD, Ranks
from gpufit.units import GIB

_LARGE_CARD_BYTES = 70 * GIB
"""From here on, A100s excepted, the defaults are larger: get_batch_defaults in
https://github.com/vllm-project/vllm/blob/main/vllm/engine/arg_utils.py
(https://github.com/vllm-project/vllm/pull/17885)."""
_CHUNKED_FROM_TOKENS = 32768
"""V0 split prompts into chunks by itself only for models longer than this (arg_utils.py of 0.5 to 0.8)."""


@dataclass(frozen=True, slots=True)
class Device:
    """What vLLM sees of one card."""

    name: str
    total_bytes: int
    """What torch reports; the share of `--gpu-memory-utilization` is taken of this."""
    compute_capability: float | None = None
    """NVIDIA's; None on other vendors' cards."""
    fast_links: bool = False
    """NVLink, NVSwitch or Infinity Fabric between cards."""
    in_machine: int | None = None
    """The most of such devices in one machine; None where nobody said."""
    context_bytes: int = 0
    """Driver context of a process, gone from the free memory before vLLM starts to count."""

    @property
    def large(self) -> bool:
        """Whether it gets vLLM's larger defaults."""
        return self.total_bytes >= _LARGE_CARD_BYTES and "a100" not in self.name.lower()


def device_of(card: Card, total_bytes: int | None = None) -> Device:
    """A catalog card as vLLM sees it; `total_bytes` in place of the catalog's total.

    Raises UsageError where nobody has reported its usable memory and none is given.
    """
    total = card.capacity_bytes if total_bytes is None else total_bytes
    if total is None:
        raise UsageError(f"nobody has reported what software sees on {card.name}, so no start can be worked out")
    link = "" if card.peer_link is None or card.peer_link.optional else card.peer_link.kind.lower()
    capability = None if card.compute_capability is None else float(card.compute_capability)
    return Device(
        name=card.name,
        total_bytes=total,
        compute_capability=capability,
        fast_links="nvlink" in link or "infinity" in link or "xgmi" in link,
        in_machine=None if card.machine is None else card.machine.cards * card.devices_per_card,
        context_bytes=card.context_bytes or 0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """`vllm serve`'s flags; None takes the release's default for the card."""

    max_model_len: int
    utilization: float | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    ranks: Ranks = ONE_CARD
    kv_cache_dtype: str = "auto"
    block_tokens: int = DEFAULT_BLOCK_TOKENS
    enforce_eager: bool = False
    one_pool: bool = False
    """`--disable-hybrid-kv-cache-manager`: sliding layers take blocks as if they saw everything."""
    language_only: bool = False
    """`--language-model-only`, or `--limit-mm-per-prompt` at 0: no images, so no encoder in the profile."""
    sampler: Sampler | None = None
    """Where it is known: the log says "Using FlashInfer for top-p & top-k sampling", or that it is not available."""
    chunked: bool | None = None
    """`--enable-chunked-prefill`; V1 always does."""
    lora: Lora | None = None
    """`--enable-lora`; None: without."""
    allocator: AllocatorSettings = DEFAULTS
    """What PYTORCH_CUDA_ALLOC_CONF sets for the process."""

    def __post_init__(self) -> None:
        if self.max_model_len < 1:
            raise UsageError(f"max model length {self.max_model_len} is not a positive number of tokens")
        if self.utilization is not None and not 0 < self.utilization <= 1:
            raise UsageError(f"gpu memory utilization {self.utilization:g} is not between 0 and 1")
        if self.max_num_seqs is not None and self.max_num_seqs < 1:
            raise UsageError(f"max number of sequences {self.max_num_seqs} is not positive")
        if self.max_num_batched_tokens is not None and self.max_num_batched_tokens < 1:
            raise UsageError(f"max number of batched tokens {self.max_num_batched_tokens} is not positive")


@dataclass(frozen=True, slots=True)
class Batch:
    """The largest batch of a step: what the start-up profile runs."""

    sequences: int
    tokens: int
    chunked: bool
    """Whether long prompts are split; else one prompt of full length must fit a step."""
    assumed: frozenset[str]
    """What stands in it by default: `sequences`, `tokens`, both or neither."""

    @property
    def sampled(self) -> int:
        """Sequences that the profile draws a token for: no more than there are tokens."""
        return min(self.sequences, self.tokens)


def batch_of(settings: Settings, device: Device, rules: Rules) -> Batch:
    """The batch that a start runs with, defaults of `vllm serve` filled in."""
    chunked = _chunked(settings, rules)
    sequences = settings.max_num_seqs or _default_sequences(device, rules)
    if settings.max_num_seqs is None and settings.max_num_batched_tokens is not None:
        # A step of fewer tokens runs fewer sequences (arg_utils.py); one flag below the other is refused.
        sequences = min(sequences, settings.max_num_batched_tokens)
    tokens = settings.max_num_batched_tokens or _default_tokens(settings, device, rules, chunked)
    asked = {"sequences": settings.max_num_seqs, "tokens": settings.max_num_batched_tokens}
    return Batch(sequences, tokens, chunked, frozenset(name for name, value in asked.items() if value is None))


def _chunked(settings: Settings, rules: Rules) -> bool:
    if rules.v1 or settings.chunked is not None:
        return rules.v1 or bool(settings.chunked)
    return settings.max_model_len > _CHUNKED_FROM_TOKENS


def _default_sequences(device: Device, rules: Rules) -> int:
    """256 in V0; in V1 1,024 on large cards, and on every card before 0.8.5
    (https://github.com/vllm-project/vllm/issues/15617: "warming up sampler with 1024 dummy requests" on RTX 4090)."""
    if not rules.v1:
        return 256
    return 1024 if device.large or not rules.version.at_least(0, 8, 5) else 256


def _default_tokens(settings: Settings, device: Device, rules: Rules, chunked: bool) -> int:
    """8,192 on large cards, else 2,048; V0 without chunks takes a whole prompt, and took chunks of 512 before 0.7."""
    if rules.v1:
        return 8192 if device.large else 2048
    if not chunked:
        return max(settings.max_model_len, 2048)
    return 2048 if rules.version.at_least(0, 7) else 512
