"""What vLLM takes beside torch's allocator while it starts, and what it sets aside for CUDA graphs."""

from __future__ import annotations

from gpufit.memory.engines.base import Amount, Part, around, exactly
from gpufit.memory.engines.vllm.settings import Batch, Device, Settings
from gpufit.memory.engines.vllm.versions import Graphs, Rules
from gpufit.profile.evidence import Evidence
from gpufit.units import GIB, MIB

_OLD_DEFINITION = (0, 6, 5)
"""Before this release the figure held the driver context, too (https://github.com/vllm-project/vllm/pull/10511)."""

_KERNELS = (0.02, 0.04, 0.20)
"""GiB on one card before Hopper: printed were 0.03 to 0.05 (T4), 0.03 (RTX 4060)."""
_KERNELS_LARGE = (0.05, 0.13, 0.25)
"""GiB on one card from Hopper on: printed were 0.13 and 0.14 (H100), 0.07 (B200)."""
_KERNELS_ELSEWHERE = (0.02, 0.30, 1.20)
"""GiB on one card of another vendor: 0.72 and 0.73 were printed in all on each of two MI50."""
_BETWEEN_CARDS = (0.10, 0.22, 0.80)
"""GiB that NCCL and the custom all-reduce add without fast links: printed totals were 0.20 (RTX 3090), 0.25 (RTX 4090),
0.30 (L40S), 0.72 (MI50)."""
_BETWEEN_LINKED = (0.20, 0.41, 1.5)
"""GiB that they add over NVLink: 0.54 and 0.55 printed on two H100, of which 0.13 is a single card's. NCCL's buffers
grow with channels and communicators (342 MiB at two ranks, 392 MiB at four and eight in ai-dynamo/aiconfigurator's
tables)."""
_MORE_RANKS = 50 * MIB
"""What four ranks or more add to two."""
_CONTEXT = (0.2, 0.31, 1.9)
"""GiB of driver context in the old definition: 0.35 in all on RTX 3090, 1.79 on H100."""

_HOPPER = 9.0

_GRAPH_BYTES = 6 * MIB
"""What the estimate takes a graph to cost: 0.52 GiB were printed for an 8B model with 256 sequences on 24 GB
(https://github.com/LMCache/LMCache/issues/3430), of 102 graphs."""
_GRAPHS_LESS, _GRAPHS_MORE = 0.85, 4.0
"""Doubt of it: printed were 0.09 to 2.51 GiB. Two graphs are extrapolated to all, which can be far too high
(https://github.com/vllm-project/vllm/issues/45178)."""
_LARGEST_GRAPH_TOKENS = 512
_GRAPHS_WITH_AND_WITHOUT = (0, 11, 1)
"""From here on a start with adapters captures each graph twice, with them and without (cudagraph_specialize_lora in
vllm/config/compilation.py, on by default; in 0.11.2, not in 0.11.0)."""
_ON_TOP = (0.0, 0.5, 2.5)
"""GiB that capturing takes beyond the budget: printed were -0.88 to 1.03 (a difference of free memory, which can be
negative), and 2.4 on each of four RTX 4090 in V0 (https://github.com/vllm-project/vllm/issues/7553)."""


def non_torch_part(device: Device, settings: Settings, rules: Rules) -> Part:
    """Memory outside torch: NCCL, custom all-reduce, workspaces of attention kernels."""
    kernels, words = _kernels(device)
    amount = _gib(kernels)
    if settings.ranks.tensor > 1:
        amount = amount + _gib(_BETWEEN_LINKED if device.fast_links else _BETWEEN_CARDS)
        over = "fast links" if device.fast_links else "the host bus"
        words += (f"NCCL over {over}, {settings.ranks.tensor} ranks",)
    if settings.ranks.tensor > 2:
        amount = amount + Amount(0, _MORE_RANKS, 4 * _MORE_RANKS)
    if settings.ranks.stages > 1:
        amount = amount + _gib(_BETWEEN_CARDS)
        words += (f"NCCL between {settings.ranks.stages} stages, as over the host bus",)
    if not rules.version.at_least(*_OLD_DEFINITION):
        amount = amount + _gib(_CONTEXT)
        words += ("the driver context counts in this release",)
    return Part("non_torch", amount, Evidence.ASSUMED, words)


def graph_count(sequences: int) -> int:
    """Graphs that are captured: for each batch size one of the whole step and one in pieces.

    Sizes are 1, 2, 4, then multiples of 8 to 256 and of 16 to 512, at most twice the sequences
    (_set_cudagraph_sizes in https://github.com/vllm-project/vllm/blob/main/vllm/config/vllm.py).
    """
    most = min(2 * sequences, _LARGEST_GRAPH_TOKENS)
    sizes: list[int] = [1, 2, 4, *range(8, 257, 8), *range(272, _LARGEST_GRAPH_TOKENS + 1, 16)]
    return 2 * len([size for size in sizes if size <= most])


def graphs_part(settings: Settings, batch: Batch, rules: Rules) -> Part:
    """What is subtracted from the pool for CUDA graphs: nothing before 0.21, when they came on top, nor in eager
    mode."""
    if settings.enforce_eager:
        return Part("cuda_graphs", exactly(0), Evidence.COMPUTED, ("no graphs: --enforce-eager",))
    sets = 2 if settings.lora is not None and rules.version.at_least(*_GRAPHS_WITH_AND_WITHOUT) else 1
    if rules.graphs is Graphs.ON_TOP:
        low, likely, high = _ON_TOP
        words = f"captured on top of the budget: about {likely:g} GiB more, {low:g} to {high:g} GiB by reports"
        if sets > 1:
            words += f" without adapters, and up to {sets * high:g} GiB with a second set for them"
        amount = _gib((low, likely, sets * high))
        return Part("cuda_graphs", exactly(0), Evidence.COMPUTED, (words,), on_top=amount)
    count = sets * graph_count(batch.sequences)
    words = f"an estimate for {count} graphs, which this release subtracts before it sizes the pool"
    if sets > 1:
        words += "; half of them run adapters"
    return Part("cuda_graphs", around(count * _GRAPH_BYTES, _GRAPHS_LESS, _GRAPHS_MORE), Evidence.ASSUMED, (words,))


def _kernels(device: Device) -> tuple[tuple[float, float, float], tuple[str, ...]]:
    if device.compute_capability is None:
        return _KERNELS_ELSEWHERE, ("kernels' own workspaces, of a vendor with few reports",)
    if device.compute_capability >= _HOPPER:
        return _KERNELS_LARGE, ("kernels' own workspaces, Hopper or later",)
    return _KERNELS, ("kernels' own workspaces, before Hopper",)


def _gib(bounds: tuple[float, float, float]) -> Amount:
    low, likely, high = bounds
    return Amount(int(low * GIB), int(likely * GIB), int(high * GIB))
