"""A run as it is asked for: what to measure or simulate, how, and what stands for all that is not said."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpufit.profile.evidence import Evidence
from gpufit.sources.measure.protocol import Job, Simulation
from gpufit.sources.model_files.record import ModelFiles

DEFAULT_CONTEXTS = (256, 512, 768, 1024, 1536)
"""From 256 on, since oneDNN's matrix products take scratch by other rules below; three to pin the growth, one between
them and one beyond to test it."""

DEFAULT_CONCURRENCIES = (1, 2, 4)
DEFAULT_NEW_TOKENS = 8
DEFAULT_CELL_SECONDS = 900

SIMULATED_CONTEXTS = (1024, 2048, 4096, 8192, 16384)
SIMULATED_CONCURRENCIES = (1, 4, 16)
"""The same on fake tensors, where a longer prompt takes no longer."""


@dataclass(frozen=True)
class ProfileRequest:
    """What to measure and how."""

    model: str
    """Directory, GGUF file or hub id."""
    output: Path | None = None
    """None: `profiles/<model>.json`."""
    contexts: tuple[int, ...] | None = None
    """None: DEFAULT_CONTEXTS, and both sides of a step that the config announces, as far as the positions go."""
    concurrencies: tuple[int, ...] | None = None
    """None: DEFAULT_CONCURRENCIES."""
    new_tokens: int = DEFAULT_NEW_TOKENS
    dtype: str = "auto"
    attention: str | None = None
    device: str = "auto"
    seed: int = 0
    logits_kept: str = "last"
    revision: str | None = None
    trust_remote_code: bool = False
    images: int | None = None
    """Images in each sequence; None: one, where the model takes images."""
    image_size: tuple[int, int] | None = None
    """Width and height in pixels, where the model takes any size."""
    cache_implementation: str | None = None
    """None: what the model builds itself, or a quantised cache where a dtype is asked for."""
    kv_cache_dtype: str = "auto"
    quantization: str | None = None
    compute_dtype: str | None = None
    memory_limit_bytes: int | None = None
    """A ceiling below the device's own memory."""
    limit_name: str = "--memory-limit"
    """What asked for it, as errors name it."""
    cell_seconds: int = DEFAULT_CELL_SECONDS
    """A cell that takes longer is given up."""
    adaptive: bool | None = None
    """Run few cells, and more only where the memory model misses those held out. None: so where neither contexts nor
    concurrencies are given; lists that are given are a grid to be run whole."""
    resume: bool = False
    force: bool = False
    simulation: Simulation | None = None
    """For a run on fake tensors, of which a config is enough; None: on the device."""

    @property
    def chosen_cache(self) -> str:
        """The kind of cache that is meant: asking for a cache's dtype asks for a quantised one."""
        return self.cache_implementation or ("dynamic" if self.kv_cache_dtype == "auto" else "quantized")

    @property
    def default_contexts(self) -> tuple[int, ...]:
        """What is run where no contexts are asked for."""
        return DEFAULT_CONTEXTS if self.simulation is None else SIMULATED_CONTEXTS

    @property
    def default_concurrencies(self) -> tuple[int, ...]:
        """What is run where no concurrencies are asked for."""
        return DEFAULT_CONCURRENCIES if self.simulation is None else SIMULATED_CONCURRENCIES

    @property
    def evidence(self) -> Evidence:
        """What the profile's figures are."""
        return Evidence.MEASURED if self.simulation is None else Evidence.SIMULATED


def job_of(request: ProfileRequest, files: ModelFiles) -> Job:
    """A request as a worker is told it, of a model that was found."""
    return Job(
        model_path=str(files.path.parent if files.is_gguf else files.path),
        gguf_file=files.path.name if files.is_gguf else None,
        model_name=files.name,
        model_source=request.model,
        fingerprint=files.fingerprint,
        revision=files.revision,
        dtype=request.dtype,
        attention=request.attention,
        device=request.device,
        seed=request.seed,
        logits_kept=request.logits_kept,
        trust_remote_code=request.trust_remote_code,
        stored=files.stored,
        images=request.images,
        image_size=request.image_size,
        cache_implementation=request.chosen_cache,
        kv_cache_dtype=request.kv_cache_dtype,
        quantization=request.quantization,
        compute_dtype=request.compute_dtype,
        memory_limit_bytes=request.memory_limit_bytes,
        limit_name=request.limit_name,
        simulation=request.simulation,
    )
