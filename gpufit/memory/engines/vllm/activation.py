"""The peak of vLLM's start-up profile: one dummy step of the largest batch, and drawing a token for each sequence.

Three peaks follow one another and the highest counts: the vision encoder, the layers, the sampler. On most models it is
the sampler that rules, which is why a small model with a large vocabulary takes as much as a large one.
"""

from __future__ import annotations

from gpufit.architecture.record import Architecture
from gpufit.memory.carry import CUBLAS_WORKSPACE_BYTES, CUBLAS_WORKSPACE_HOPPER_BYTES
from gpufit.memory.engines.base import Amount, Part
from gpufit.memory.engines.vllm.encoder import EncoderProfile, encoder_profile
from gpufit.memory.engines.vllm.lora import adapts_experts
from gpufit.memory.engines.vllm.settings import Batch, Device, Settings
from gpufit.memory.engines.vllm.versions import OWN_KERNEL, Rules, Sampler
from gpufit.profile.evidence import Evidence
from gpufit.units import GIB, MIB

ITEM = 2
"""Bytes an element of hidden states and of logits as the head gives them: 16 bit."""

_BEFORE_SORT = 2 + 4 + 4 + 8
"""Bytes an entry of the logits while they are sorted: 16-bit logits, their float32 copy, sorted values, and the int64
places they came from (apply_top_k_top_p in vllm/v1/sample/ops/topk_topp_sampler.py; V0's sampler alike)."""
_SEGMENTED_SORT = 8 + 4 + 8
"""Scratch of torch.sort with 128 rows or more: int64 places to start from, and the radix sort's second buffers of keys
and places. https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/cuda/SortStable.cu
(segmented_sort_pairs)."""
_FULL_SORT = 8 + 8 + 4 + 4 + 8
"""The same with fewer rows, sorted all at once: (place, row) pairs twice, the keys' output, and second buffers of keys
and pairs (segmented_sort_pairs_by_full_sort)."""
_FULL_SORT_BELOW_ROWS = 128
FUSED_SAMPLER_ENTRY_BYTES = 2 + 4 + 4 + 4
"""Bytes an entry where nothing is sorted: 16-bit logits, float32 copy, probabilities, and the noise they are divided by
(or FlashInfer's masked logits)."""
_FUSED_BUFFERS_BYTES = 80 * MIB
"""What vLLM's own kernel takes beside ("around ~80MiB of extra VRAM",
https://github.com/vllm-project/vllm/pull/33538)."""

_WIDE_EXPERT_CHUNK = 32768
"""Tokens that a mixture of experts works on at once (VLLM_FUSED_MOE_CHUNK_SIZE)."""

_SAMPLER_LESS, _SAMPLER_MORE, _SAMPLER_SLACK_BYTES = 0.04, 0.05, 64 * MIB
"""Doubt of the sampler's peak: shares, and what small buffers and attention workspaces may add. Of 12 printed peaks
that it rules, all lie within."""
_SECOND_RUNNER, _SECOND_RUNNER_LESS = (0, 24), 0.5
"""From about here on the second model runner may profile the sampler without filters and noise: "the sampler may skip
top_k, top_p, and logprobs, using less GPU memory" (vllm/v1/worker/gpu/model_runner.py)."""
_LAYERS_LESS, _LAYERS_MORE = 0.2, 0.45
"""Doubt of the layers' peak: which of the short-lived tensors are alive together depends on compiler and backend."""
_OLD_ENCODER_UPPER_BYTES = 40 * GIB
"""Before 0.10 profiles of encoders were seen to reach 36.63 GiB, and one code change took Pixtral's from 8.27 to 1.08
GiB (https://github.com/vllm-project/vllm/issues/16551 on profiling images): nothing less is promised."""


def sort_entry_bytes(rows: int) -> int:
    """Bytes an entry of the logits at the peak of a sorting sampler: 38 from 128 sequences on (9.5 times float32)."""
    if rows == 1:
        return _BEFORE_SORT
    return _BEFORE_SORT + (_FULL_SORT if rows < _FULL_SORT_BELOW_ROWS else _SEGMENTED_SORT)


def workspace_bytes(device: Device) -> int:
    """cuBLAS's workspace, which torch's allocator hands out and the peak therefore contains."""
    hopper = device.compute_capability is not None and device.compute_capability >= 9
    return CUBLAS_WORKSPACE_HOPPER_BYTES if hopper else CUBLAS_WORKSPACE_BYTES


def sampler_peak(architecture: Architecture, batch: Batch, device: Device, sampler: Sampler, rules: Rules) -> int:
    """The peak while tokens are drawn, in bytes: the logits' tensors, the step's hidden states and the sampled ones
    twice.

    Llama-3.3-70B over two H100 printed 4.84 GiB: 1,024 x 128,256 x 38 B + 8,192 x (8,192 + 2 x 1,024) x 2 B + 32 MiB.
    """
    rows = batch.sampled
    if sampler is Sampler.SORTED:
        entries = rows * architecture.vocabulary * sort_entry_bytes(rows)
    else:
        entries = rows * architecture.vocabulary * FUSED_SAMPLER_ENTRY_BYTES
        entries += _FUSED_BUFFERS_BYTES if rules.version.at_least(*OWN_KERNEL) else 0
    return entries + (batch.tokens + 2 * rows) * architecture.hidden * ITEM + workspace_bytes(device)


def layers_peak(architecture: Architecture, batch: Batch, device: Device, tp: int) -> int:
    """The peak inside a layer, in bytes: the MLP's gate, up and product, beside residual, input and output; with tensor
    parallelism two more hidden states for the all-reduce.

    Llama-3.1-8B at 20,000 tokens without chunks printed 2.07 GiB: 20,000 x 2 B x (3 x 14,336 + 3 x 4,096) + 8 MiB
    (https://github.com/vllm-project/vllm/issues/10517); Qwen2.5-32B over two L40S 1.26 GiB
    (https://github.com/vllm-project/vllm/issues/15815).
    """
    hidden = architecture.hidden * (3 if tp == 1 else 5)
    dense = batch.tokens * ITEM * (_mlp_width(architecture, tp) + hidden)
    return max(dense, _experts_peak(architecture, batch, tp)) + workspace_bytes(device)


def adapters_peak(architecture: Architecture, settings: Settings, batch: Batch, rules: Rules) -> int:
    """What adapters add inside a layer, in bytes: the float32 product of inputs and A, for up to three layers that are
    fused (add_lora_linear in vllm/lora/punica_wrapper/punica_gpu.py), in experts for each that a token goes to."""
    if settings.lora is None:
        return 0
    experts = architecture.experts
    routed = experts.per_token if experts is not None and adapts_experts(architecture, rules) else 1
    return batch.tokens * 3 * routed * settings.lora.max_rank * 4


def between_stages(architecture: Architecture, settings: Settings, batch: Batch) -> int:
    """What a stage of a pipeline keeps for what it is handed, in bytes: hidden states and residual of a step's tokens
    (make_empty_intermediate_tensors of `max_num_batched_tokens` in vllm/v1/worker/gpu_model_runner.py)."""
    return 2 * batch.tokens * architecture.hidden * ITEM if settings.ranks.stages > 1 else 0


def activation_part(architecture: Architecture, settings: Settings, batch: Batch, device: Device, rules: Rules) -> Part:
    """The activation peak that vLLM prints after its profile, with what rules it."""
    tp = settings.ranks.tensor
    encoder = None if settings.language_only else encoder_profile(architecture, batch.tokens)
    kept = (0 if encoder is None else encoder.kept_bytes) + between_stages(architecture, settings, batch)
    layers = layers_peak(architecture, batch, device, tp) + adapters_peak(architecture, settings, batch, rules) + kept
    samplers = (settings.sampler,) if settings.sampler else rules.samplers
    drawn = [sampler_peak(architecture, batch, device, one, rules) + kept for one in samplers]
    rivals = {"the sampler": drawn[0], "the layers": layers, "the vision encoder": encoder.peak_bytes if encoder else 0}
    if not architecture.generates:
        del rivals["the sampler"]
        drawn = [0]
    ruler = max(rivals, key=lambda name: rivals[name])
    lower = max(int(min(drawn) * _least_sampled(batch, rules, tp)), int(layers * (1 - _LAYERS_LESS)))
    upper = max(int(max(drawn) * (1 + _SAMPLER_MORE)) + _SAMPLER_SLACK_BYTES, int(layers * (1 + _LAYERS_MORE)))
    if encoder is not None:
        lower, upper = _with_encoder(lower, upper, encoder, rules)
    point = rivals[ruler]
    sequences = "1 sequence" if batch.sampled == 1 else f"{batch.sampled} sequences"
    words = [
        f"the profile's peak is ruled by {ruler}: {sequences} x {architecture.vocabulary} entries of vocabulary, "
        f"{batch.tokens} tokens a step"
    ]
    if batch.assumed:
        default = "default" if len(batch.assumed) == 1 else "defaults"
        words.append(f"{' and '.join(sorted(batch.assumed))} of a step are vLLM's {default} for this card")
    if len(samplers) > 1:
        words.append("this release samples without sorting, in less, where FlashInfer is installed")
    return Part(
        name="activation",
        amount=Amount(min(lower, point), point, max(upper, point)),
        evidence=Evidence.ASSUMED if batch.assumed or encoder else Evidence.COMPUTED,
        words=tuple(words),
    )


def _least_sampled(batch: Batch, rules: Rules, tp: int) -> float:
    """The share of the sampler's peak that is sure."""
    if not rules.v1 and tp > 1:
        # In V0 only the first rank draws tokens, and which rank's line was quoted is not known.
        return 0.0
    if rules.version.at_least(*_SECOND_RUNNER):
        return _SECOND_RUNNER_LESS
    if batch.assumed and not rules.version.at_least(0, 9):
        # V1's default of 1,024 sequences became 256 for smaller cards somewhere before 0.9.
        return min(256 / batch.sampled, 1 - _SAMPLER_LESS)
    return 1 - _SAMPLER_LESS


def _with_encoder(lower: int, upper: int, encoder: EncoderProfile, rules: Rules) -> tuple[int, int]:
    upper = max(upper, encoder.upper_bytes)
    return lower, upper if rules.version.at_least(0, 10) else max(upper, _OLD_ENCODER_UPPER_BYTES)


def _mlp_width(architecture: Architecture, tp: int) -> int:
    """Elements a token inside a dense MLP: gate and up side by side and their product; without a gate two widths."""
    return architecture.intermediate * (3 if architecture.gated else 2) // tp


def _experts_peak(architecture: Architecture, batch: Batch, tp: int) -> int:
    """Bytes at the peak of a mixture of experts: each token once for every expert it goes to, as wide as gate and up or
    as the hidden state (they share a buffer), and the product (fused_experts in
    vllm/model_executor/layers/fused_moe)."""
    experts = architecture.experts
    if experts is None:
        return 0
    tokens = min(batch.tokens, _WIDE_EXPERT_CHUNK)
    inner = experts.intermediate // tp
    routed = tokens * experts.per_token * (max(2 * inner, architecture.hidden) + inner)
    shared = batch.tokens * 3 * experts.shared_intermediate // tp
    return ITEM * (routed + shared + batch.tokens * 4 * architecture.hidden)
