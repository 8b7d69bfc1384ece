"""What a document says of a server's start on one card: figures of an engine that sizes a KV pool as it starts.

Sizes are whole bytes of one rank; every interval has its most likely value between its bounds.
"""

from __future__ import annotations

from gpufit.profile.base import Record
from gpufit.profile.evidence import Evidence


class PartFigures(Record, frozen=True, kw_only=True):
    """One part of what a rank takes before the KV pool."""

    name: str
    """`weights`, `lora` (where adapters are on), `activation`, `non_torch`, `cuda_graphs`."""
    size_bytes: int
    lower_bytes: int
    upper_bytes: int
    evidence: Evidence
    words: tuple[str, ...]
    """How the figure came about."""


class CountFigures(Record, frozen=True, kw_only=True):
    """A count between two bounds."""

    lower: int | float
    point: int | float
    upper: int | float


class StartFigures(Record, frozen=True, kw_only=True):
    """One start, on as many cards as it has ranks."""

    holds_for: str
    """Model, engine, version, precision and cards: what these numbers are for."""
    tensor_parallel_size: int
    pipeline_parallel_size: int = 1
    """Stages of a pipeline; all sizes are those of a rank of the fullest."""
    parts: tuple[PartFigures, ...]
    gpu_memory_utilization: float
    least_gpu_memory_utilization: float | None
    """The smallest share that surely serves what is asked; null where none does."""
    budget_bytes: int
    """The share of the card that parts and KV pool stay within."""
    kv_pool_bytes: int
    """Negative where the parts alone are more than the budget."""
    kv_pool_lower_bytes: int
    kv_pool_upper_bytes: int
    kv_needed_bytes: int
    """The pool that starts and holds the sequences asked for."""
    sequence_bytes: int
    """What one sequence of the longest length takes of the pool."""
    kv_tokens: CountFigures
    """What the engine's log calls "GPU KV cache size"."""
    pool_concurrency: CountFigures
    """Sequences of the longest length that the pool holds, in the engine's log "Maximum concurrency for N tokens
    per request". 0 where nothing is cached."""
    max_concurrency: CountFigures
    """Of them run at once: no more than `max_num_seqs`, and at the least as many as surely do (0 where the start is not
    sure)."""
    max_num_seqs: int
    max_num_batched_tokens: int
    pool: tuple[str, ...]
    """How the pool is laid out, in words."""
    binding: str
    """What decides, in words."""
    serve_command: str | None
    """One line for a shell: the start, or each of several copies of it. Null where it surely does not serve, unless
    copies of it are the first of the row's `arrangements`, each of which has its own command; of a start that is too
    close, what to try."""
