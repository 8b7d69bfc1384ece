"""A model that vLLM is to serve, the question about it, and how many sequences one start of it runs at once. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpufit.advice.verdict import Verdict
from gpufit.architecture.quantization.method import Method
from gpufit.architecture.record import Architecture
from gpufit.errors import UsageError
from gpufit.memory.engines.base import Amount, Outcome, exactly, total
from gpufit.memory.engines.vllm.precision import Precision, mxfp4_kernel, of_method
from gpufit.memory.engines.vllm.settings import Device, Settings
from gpufit.memory.engines.vllm.start import VllmStart, least_utilization
from gpufit.memory.engines.vllm.versions import Rules
from gpufit.profile.environment import ModelInfo
from gpufit.profile.precision import DtypeShare
from gpufit.units import counted, format_size, format_tokens

_RESIDENT = ("weights", "lora", "activation")
"""Parts that torch hands out."""


@dataclass(frozen=True)
class Question:
    """A model, a release and its flags, and how many sequences are to run at once."""

    name: str
    """The model's."""
    architecture: Architecture
    dtype: str
    """Of what is not quantised, as safetensors names it."""
    method: Method | None
    rules: Rules
    settings: Settings
    """`max_model_len` is the longest sequence asked for, prompt and new tokens."""
    concurrency: int
    whole_first: bool = False
    """Whether vLLM quantises the weights by `method` once they are loaded in 16 bit."""
    spread: bool = False
    """Whether more ranks may be planned with: the number of them was not asked for."""

    def __post_init__(self) -> None:
        asked, tokens = self.settings.max_num_seqs, self.settings.max_num_batched_tokens
        if asked is not None and asked < self.concurrency:
            raise UsageError(
                f"--max-num-seqs {asked} runs no more than that at once, fewer than --concurrency {self.concurrency}"
            )
        if asked is not None and tokens is not None and tokens < asked:
            raise UsageError(
                f"--max-num-batched-tokens {tokens} is less than --max-num-seqs {asked}, which vLLM refuses"
            )

    def precision(self, device: Device) -> Precision:
        """How weights lie in memory on a card."""
        one = of_method(self.method, self.dtype, mxfp4=mxfp4_kernel(device.compute_capability))
        return replace(one, whole_first=self.whole_first)


@dataclass(frozen=True)
class ServedModel:
    """A model that vLLM is to serve."""

    question: Question
    info: ModelInfo
    stored: tuple[DtypeShare, ...]
    """Dtypes in the files, of the whole model."""
    source: str
    """What `vllm serve` is given: a directory or a hub id."""
    dtype: str
    """What `vllm serve --dtype` is given; `auto` where nothing was asked for."""
    quantization: str | None
    """What `vllm serve --quantization` is given; None for a checkpoint that names its own method, or none."""
    revision: str | None
    trust_remote_code: bool
    """Whether `vllm serve` is given `--trust-remote-code`; nothing here runs a model's code."""
    new_tokens: int
    """So many of the longest sequence are generated; 0: not told."""
    assumed: tuple[str, ...]
    """What stands for what the question left open, in words."""
    notes: tuple[str, ...]
    """What a reader should know of how the model was read, in words."""


@dataclass(frozen=True)
class Served:
    """A start on one card, and how many sequences of the longest length it runs at once."""

    start: VllmStart
    asked: int
    context: Amount
    """Driver context and loaded kernels."""

    @property
    def other(self) -> Amount:
        """Memory outside torch, CUDA graphs, and what comes on top of the budget."""
        parts = self.start.parts
        beyond = (part.on_top for part in parts if part.on_top is not None)
        return sum(beyond, total(part for part in parts if part.name not in _RESIDENT))

    @property
    def resident(self) -> Amount:
        """What torch hands out beside the KV pool: weights, slots for adapters, and activation."""
        return total(part for part in self.start.parts if part.name in _RESIDENT)

    def kv_bytes(self, tokens: int) -> int:
        """What the sequences asked for take of the pool at a length."""
        return self.asked * self.start.pool.sequence_bytes(tokens, self.start.batch.tokens)

    def allocated(self, tokens: int) -> Amount:
        """Weights, activation and the KV blocks of the sequences asked for."""
        return self.resident + exactly(self.kv_bytes(tokens))

    def need(self, tokens: int) -> Amount:
        """What a card must offer for them; vLLM takes all of its share, whatever is asked."""
        return self.context + self.other + self.allocated(tokens)

    @property
    def lower(self) -> float:
        """Sequences that surely run at once: in the pool at its least, and beside everything else on the card."""
        one = self.start
        if one.outcome is not Outcome.FITS:
            return 0.0
        pool_bytes = min(one.pool_bytes.lower_bytes, self._beside_bytes)
        return self._of(one.pool.concurrency(pool_bytes, one.settings.max_model_len, one.batch.tokens))

    @property
    def point(self) -> float:
        """Sequences that likely do."""
        return 0.0 if self.start.refused else self._of(self.start.concurrency.point)

    @property
    def upper(self) -> float:
        """Sequences that may."""
        return 0.0 if self.start.refused else self._of(self.start.concurrency.upper)

    @property
    def verdict(self) -> Verdict:
        """`fits` where it surely starts and serves all that is asked."""
        if self.start.outcome is Outcome.DOES_NOT_FIT or self.upper < self.asked:
            return Verdict.DOES_NOT_FIT
        return Verdict.FITS if self.lower >= self.asked else Verdict.TOO_CLOSE

    @property
    def needed_bytes(self) -> int:
        """The KV pool that starts and holds all the sequences asked for."""
        return max(self.start.needed_bytes, self.asked * self.start.sequence_bytes)

    @property
    def least_utilization(self) -> float | None:
        """The smallest `--gpu-memory-utilization` that surely serves it; None where none does."""
        one = self.start
        if one.refused or one.loading or one.batch.sequences < self.asked or self._beside_bytes < self.needed_bytes:
            return None
        return least_utilization(total(self.start.parts).upper_bytes + self.needed_bytes, self.start.device)

    @property
    def binding(self) -> str:
        """What decides, in words: the start, or the sequences that the pool does not hold."""
        one = self.start
        if one.outcome is not Outcome.FITS or not one.pool.groups:
            return one.binding
        if self.verdict is Verdict.FITS:
            left = one.pool_bytes
            return (
                f"{format_size(left.point_bytes)} left for the KV pool ({format_size(left.lower_bytes)} to "
                f"{format_size(left.upper_bytes)}), of which {format_size(self.needed_bytes)} are needed"
            )
        length = f"{format_tokens(one.settings.max_model_len)} tokens"
        if one.batch.sequences < self.asked <= one.concurrency.lower:
            return (
                f"{counted(one.batch.sequences, 'sequence')} at once at most (--max-num-seqs), fewer than the "
                f"{self.asked} asked for"
            )
        pool = one.concurrency
        return (
            f"the KV pool holds {pool.point:.1f} sequences of {length} ({pool.lower:.1f} to {pool.upper:.1f}), and "
            f"{self.asked} are asked for, which take {format_size(self.needed_bytes)} of it"
        )

    @property
    def _beside_bytes(self) -> int:
        """What the card has for a KV pool beside everything else at its most, whatever share vLLM is given."""
        return self.start.device.total_bytes - (self.context + self.other + self.resident).upper_bytes

    def _of(self, in_pool: float) -> float:
        """No more run than vLLM schedules; where nothing is cached, all of those do."""
        sequences = float(self.start.batch.sequences)
        return min(in_pool, sequences) if self.start.pool.groups else sequences
