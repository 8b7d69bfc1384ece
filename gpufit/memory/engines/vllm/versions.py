"""What changed between releases of vLLM, as far as memory shows it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from gpufit.memory.engines.base import Version, parse_version

CURRENT = "0.29.0"
"""The release whose rules are taken where none is asked for: the newest that a report here comes from."""

OWN_KERNEL = (0, 17)
"""The first release whose own kernel samples without sorting (merged in February 2026)."""


class Sampler(enum.Enum):
    """How the start-up profile draws tokens from its logits."""

    SORTED = "sorted"
    """PyTorch's sort of the whole vocabulary, https://github.com/vllm-project/vllm/issues/125."""
    FUSED = "fused"
    """A kernel that does not sort: FlashInfer's (https://github.com/vllm-project/vllm/pull/11394) or vLLM's own in
    Triton (https://github.com/vllm-project/vllm/pull/33538)."""


class Graphs(enum.Enum):
    """Where the memory of captured CUDA graphs comes from."""

    ON_TOP = "on top"
    """Captured after the KV pool was sized, beyond the share that `--gpu-memory-utilization` names:
    https://github.com/vllm-project/vllm/issues/7553."""
    SUBTRACTED = "subtracted"
    """Estimated before, and taken from the KV pool: https://github.com/vllm-project/vllm/pull/30515, the default since
    0.21.0 by the words of its own log."""


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of one release."""

    version: Version
    v1: bool
    """The V1 engine core: the default since 0.8 (2025-03)."""
    samplers: tuple[Sampler, ...]
    """The likeliest first; a second one where it depends on what is installed beside vLLM."""
    graphs: Graphs
    hybrid_pools: bool
    """Whether layers of several kinds share one pool by groups (https://github.com/vllm-project/vllm/pull/17996);
    before, each sliding layer took its blocks as if it saw everything."""
    chunked_pools: bool
    """The same for layers that attend within chunks (Llama 4): at first left out for its latency
    (VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE in vllm/envs.py, off in 0.11 and on in 2026; the release between
    is assumed)."""
    sparse_latent_fp8: bool
    """Whether models with a sparse-attention indexer keep their latent in FP8 unless told otherwise: DeepSeek V3.2 in
    0.11 (DeepseekV32ForCausalLM in vllm/model_executor/models/config.py)."""
    tokens_from_concurrency: bool
    """Whether the printed token count is concurrency x length (https://github.com/vllm-project/vllm/issues/40691
    complains of the earlier one: blocks over groups)."""
    batches_in_flight: int
    """Batches whose tokens a sliding layer still holds: 2 since 0.26, where scheduling runs ahead of the card and
    blocks are freed by what is settled (https://github.com/vllm-project/vllm/pull/47728)."""
    default_utilization: float
    """`--gpu-memory-utilization` where none is given: 0.9, and 0.92 in the docs since the graphs are subtracted."""

    @property
    def name(self) -> str:
        """Engine and release, in words."""
        return f"vLLM {self.version} ({'V1' if self.v1 else 'V0'} engine)"


def rules_of(version: str = CURRENT, *, v1: bool | None = None) -> Rules:
    """The rules of a release; `v1` overrides which engine core it runs (both exist from 0.6 to 0.10).

    Raises UsageError for a version that is none.
    """
    release = parse_version(version)
    core = release.at_least(0, 8) if v1 is None else v1
    subtracted = release.at_least(0, 21)
    return Rules(
        version=release,
        v1=core,
        samplers=_samplers(release, core),
        graphs=Graphs.SUBTRACTED if subtracted else Graphs.ON_TOP,
        hybrid_pools=core and release.at_least(0, 10),
        chunked_pools=core and release.at_least(0, 17),
        sparse_latent_fp8=not release.at_least(0, 12),
        tokens_from_concurrency=release.at_least(0, 20),
        batches_in_flight=2 if release.at_least(0, 26) else 1,
        default_utilization=0.92 if subtracted else 0.9,
    )


def _samplers(release: Version, core: bool) -> tuple[Sampler, ...]:
    """V0 always sorted. V1 took FlashInfer's kernel wherever that was installed until it was switched off after 0.11.0
    (https://github.com/vllm-project/vllm/pull/26859); vLLM's own kernel came in February 2026."""
    if release.at_least(*OWN_KERNEL):
        return (Sampler.FUSED,)
    if core and not release.at_least(0, 11, 1):
        return (Sampler.SORTED, Sampler.FUSED)
    return (Sampler.SORTED,)
