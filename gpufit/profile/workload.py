"""What was asked of a model: the grid, and every setting that shapes its memory."""

from __future__ import annotations

from gpufit.profile.base import Count, Record, Size


class Workload(Record, frozen=True, kw_only=True):
    """What was asked for."""

    contexts_tokens: tuple[int, ...]
    concurrencies: tuple[int, ...]
    adaptive: bool = False
    """Whether only as many cells were to be run as the memory model needs."""
    new_tokens: Size
    seed: int
    dtype_requested: str
    """`auto` or a dtype: how the weights were asked to be loaded."""
    logits_kept: str
    """`last`: logits of the last position, as generate() keeps them; `all`: of every position."""
    images: Size = 0
    """Images in each sequence; their tokens are part of its context."""
    image_size: tuple[Count, Count] | None = None
    """Width and height in pixels, as the model saw them."""
    image_tokens: Size = 0
    """Tokens of each context that its images take."""
    cache_implementation: str = "dynamic"
    """How the KV cache was kept, in transformers' words: `dynamic` (what the model builds itself), `static` (all
    tokens of the cell from the start), `quantized`, `offloaded`."""
    kv_cache_dtype: str = "auto"
    """What a quantised cache was asked to hold: `auto` or `fp8`."""
    quantization: str | None = None
    """What the weights were asked to be quantised with at load; absent: they were left as the files have them."""
    compute_dtype: str | None = None
    """The dtype of the autocast that the run was wrapped in; absent: there was none."""
    memory_limit_bytes: Size | None = None
    """The ceiling put on the device's memory for this run; absent where there was none."""
    tensor_parallel_size: Count = 1
    """Cards that share the model; every size is that of one of them."""
    expert_parallel: bool = False
    """Whether experts were spread over these cards whole."""
