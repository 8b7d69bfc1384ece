"""A start of vLLM on given cards: what each part takes, what is left for the KV pool, and whether it starts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpufit.architecture.record import Architecture
from gpufit.errors import UsageError
from gpufit.memory.engines.base import Amount, Outcome, Part, evidence_of, total
from gpufit.memory.engines.vllm.activation import activation_part
from gpufit.memory.engines.vllm.dtypes import cache_dtype, refused_on, torch_name
from gpufit.memory.engines.vllm.loading import limited_by_loading, loading_words
from gpufit.memory.engines.vllm.lora import lora_part
from gpufit.memory.engines.vllm.overheads import graphs_part, non_torch_part
from gpufit.memory.engines.vllm.pool import Pool, pool_of
from gpufit.memory.engines.vllm.precision import Precision
from gpufit.memory.engines.vllm.settings import Batch, Device, Settings, batch_of
from gpufit.memory.engines.vllm.stages import fullest_stage, stage_shape
from gpufit.memory.engines.vllm.versions import Rules
from gpufit.memory.engines.vllm.weights import weights_per_rank
from gpufit.profile.evidence import Evidence
from gpufit.units import GIB, MIB


@dataclass(frozen=True, slots=True)
class Count:
    """A count between two bounds."""

    lower: float
    point: float
    upper: float


@dataclass(frozen=True, slots=True)
class VllmStart:
    """Everything said about one start, in bytes a rank: of a pipeline, one of the fullest stage's. It holds for this
    model, release, precision and card only."""

    model: str
    rules: Rules
    precision: Precision
    device: Device
    settings: Settings
    batch: Batch
    utilization: float
    budget_bytes: int
    """Utilization times the card's total: what weights, activation, non-torch memory, graphs and the pool share."""
    parts: tuple[Part, ...]
    pool: Pool
    pool_bytes: Amount
    """What is left for KV blocks; negative where nothing is."""
    sequence_bytes: int
    """What one sequence of the longest length takes of the pool."""
    needed_bytes: int
    """The smallest pool that starts."""
    tokens: Count
    """"GPU KV cache size" as this release prints it."""
    concurrency: Count
    """Sequences of the longest length at once."""
    outcome: Outcome
    binding: str
    """What decides, in words."""
    least_utilization: float | None
    """The smallest share at which it surely starts; None where no share does."""
    evidence: Evidence
    refused: str | None
    """Why vLLM does not run the model on this card, whatever memory it has, in words; None where it does."""
    loading: str | None
    """Why loading may take more than the card has free, in words; None where it surely does not."""

    @property
    def holds_for(self) -> str:
        """What these numbers are for, in words: never the model alone."""
        cards = f"{self.settings.ranks.count} x {self.device.name}"
        return f"{self.model}, {self.rules.name}, {self.precisions}, {cards}"

    @property
    def precisions(self) -> str:
        """What the weights are in, and the KV cache where that is not what the model computes in, in words."""
        weights, cache = f"{self.precision.name} weights", self.kv_dtype
        return weights if cache in (None, torch_name(self.precision.dtype)) else f"{weights}, {cache} KV cache"

    @property
    def kv_dtype(self) -> str | None:
        """What the KV cache holds, by torch's name; None where the model caches nothing."""
        return cache_dtype(self.pool.cache_dtype, self.precision.dtype) if self.pool.groups else None

    @property
    def spans_machines(self) -> bool:
        """Whether its ranks stand in several machines."""
        return self.device.in_machine is not None and self.settings.ranks.count > self.device.in_machine

    def part(self, name: str) -> Part:
        """One part by its name."""
        return next(one for one in self.parts if one.name == name)


def start(
    architecture: Architecture,
    precision: Precision,
    device: Device,
    settings: Settings,
    rules: Rules,
    model: str = "",
    *,
    loaded: tuple[Part, ...] | None = None,
) -> VllmStart:
    """Work out a start; `loaded` are its `loaded_parts`, where they are known already.

    Raises UsageError where vLLM could not divide the model or refuses a flag, or no rule covers it.
    """
    _refuse_too_long(architecture, settings)
    batch = batch_of(settings, device, rules)
    stage = stage_shape(architecture, settings.ranks.stages, rules)
    parts = (
        *(loaded or loaded_parts(architecture, precision, device, settings, rules)),
        activation_part(stage, settings, batch, device, rules),
        non_torch_part(device, settings, rules),
        graphs_part(settings, batch, rules),
    )
    pool = pool_of(
        stage,
        settings.ranks,
        rules,
        kv_cache_dtype=settings.kv_cache_dtype,
        block_tokens=settings.block_tokens,
        one_pool=settings.one_pool,
    )
    utilization = settings.utilization if settings.utilization is not None else rules.default_utilization
    budget = int(device.total_bytes * utilization)
    taken = total(parts)
    left = Amount(budget - taken.upper_bytes, budget - taken.point_bytes, budget - taken.lower_bytes)
    needed = pool.least_bytes(settings.max_model_len, batch, graphs=not settings.enforce_eager)
    free = device.total_bytes - device.context_bytes
    over = rules.v1 and budget > free
    refused = refused_on(architecture.model_type, device)
    outcome = _unpromised(_outcome(left, needed)) if over else _outcome(left, needed)
    binding = _over(budget, free) if over else _binding(outcome, parts, left, pool, settings, batch)
    loading = loading_words(parts, device, rules)
    if limited_by_loading(outcome, parts, device, rules) is not outcome:
        outcome, binding = limited_by_loading(outcome, parts, device, rules), loading or binding
    return VllmStart(
        model=model or architecture.class_name,
        rules=rules,
        precision=precision,
        device=device,
        settings=settings,
        batch=batch,
        utilization=utilization,
        budget_bytes=budget,
        parts=parts,
        pool=pool,
        pool_bytes=left,
        sequence_bytes=pool.sequence_bytes(settings.max_model_len, batch.tokens),
        needed_bytes=needed,
        tokens=_counted(left, lambda size: pool.printed_tokens(size, settings.max_model_len, batch.tokens)),
        concurrency=_counted(left, lambda size: pool.concurrency(size, settings.max_model_len, batch.tokens)),
        outcome=Outcome.DOES_NOT_FIT if refused else outcome,
        binding=refused or binding,
        least_utilization=None if refused or loading else least_utilization(taken.upper_bytes + needed, device),
        evidence=evidence_of(parts),
        refused=refused,
        loading=loading,
    )


def loaded_parts(
    architecture: Architecture, precision: Precision, device: Device, settings: Settings, rules: Rules
) -> tuple[Part, ...]:
    """The weights on one rank of such a start, and slots for adapters where they are on: what vLLM prints after
    loading, the same for every length and batch."""
    architecture = fullest_stage(architecture, settings.ranks.stages, rules)
    weights = weights_per_rank(
        architecture,
        settings.ranks,
        precision,
        language_only=settings.language_only,
        nvidia=device.compute_capability is not None,
        allocator=settings.allocator,
    )
    if settings.lora is None:
        return (weights,)
    size = precision.plain_bytes
    return weights, lora_part(architecture, settings.ranks, settings.lora, rules, size, settings.allocator)


def least_utilization(needed_bytes: int, device: Device) -> float | None:
    """The smallest share of a card that holds so much, rounded up to a hundredth as people write it, and is free beside
    the driver's context; None where none is."""
    hundredths = max(-(-needed_bytes * 100 // device.total_bytes), 1)
    if int(device.total_bytes * (hundredths / 100)) < needed_bytes:
        hundredths += 1
    budget = int(device.total_bytes * (hundredths / 100))
    return hundredths / 100 if budget <= device.total_bytes - device.context_bytes else None


def _refuse_too_long(architecture: Architecture, settings: Settings) -> None:
    limit = architecture.position_limit
    if limit is not None and settings.max_model_len > limit:
        raise UsageError(
            f"--max-model-len {settings.max_model_len} is beyond the model's own {limit} positions, which vLLM refuses"
        )


def _outcome(left: Amount, needed: int) -> Outcome:
    if left.lower_bytes >= max(needed, 0) and left.lower_bytes >= 0:
        return Outcome.FITS
    return Outcome.TOO_CLOSE if left.upper_bytes >= needed else Outcome.DOES_NOT_FIT


def _unpromised(outcome: Outcome) -> Outcome:
    """No promise where the budget is more than a driver's context leaves free, which vLLM checks as it starts."""
    return Outcome.TOO_CLOSE if outcome is Outcome.FITS else outcome


def _over(budget: int, free: int) -> str:
    return f"the budget of {_shown(budget)} is more than the {_shown(free)} that the driver's context leaves free"


def _counted(left: Amount, count: Callable[[int], float]) -> Count:
    return Count(count(left.lower_bytes), count(left.point_bytes), count(left.upper_bytes))


def _binding(
    outcome: Outcome, parts: tuple[Part, ...], left: Amount, pool: Pool, settings: Settings, batch: Batch
) -> str:
    largest = max(parts, key=lambda one: one.amount.point_bytes)
    if left.upper_bytes < 0:
        likely, least = _shown(-left.point_bytes), _shown(-left.upper_bytes)
        return (
            f"likely {likely} short before any KV cache, at the least {least}; the largest part is {largest.name} with "
            f"{_shown(largest.amount.point_bytes)}"
        )
    between = f"({_room(left.lower_bytes)} to {_room(left.upper_bytes)})"
    room = f"{_room(left.point_bytes)} left for the KV pool {between}"
    if left.point_bytes < 0:
        room = f"likely {_room(left.point_bytes)} before any KV cache {between}"
    one = pool.sequence_bytes(settings.max_model_len, batch.tokens)
    asked = f"one sequence of {settings.max_model_len} tokens takes {_shown(one)}"
    if outcome is Outcome.FITS:
        return f"{room}; {asked}"
    if pool.least_bytes(settings.max_model_len, batch, graphs=not settings.enforce_eager) > one:
        most = pool.blocks(left.lower_bytes)
        sure = f"lower --max-num-seqs to {most}" if most else "fewer would not help"
        return f"{room}, but each of {batch.sequences} sequences needs a block of state: {sure}"
    return f"{room}, but {asked}; the largest part is {largest.name} with {_shown(largest.amount.point_bytes)}"


def _room(size_bytes: int) -> str:
    """What is left of a budget, or missing from it, in words."""
    return f"{_shown(-size_bytes)} short" if size_bytes < 0 else _shown(size_bytes)


def _shown(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.2f} GiB" if abs(size_bytes) >= GIB else f"{size_bytes / MIB:.0f} MiB"
