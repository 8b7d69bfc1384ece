"""vLLM: weights and adapters a rank, activation peak, memory outside torch, CUDA graphs, and the KV pool that is left.

`start` puts the parts together; each is a module of its own with its sources.
"""

from __future__ import annotations

from gpufit.memory.engines.vllm.lora import Lora
from gpufit.memory.engines.vllm.precision import Precision, of_config, plain, quantised
from gpufit.memory.engines.vllm.serve import serve_flags
from gpufit.memory.engines.vllm.settings import Device, Settings, device_of
from gpufit.memory.engines.vllm.start import VllmStart, start
from gpufit.memory.engines.vllm.versions import CURRENT, Rules, Sampler, rules_of
from gpufit.memory.engines.vllm.weights import Ranks

__all__ = [
    "CURRENT",
    "Device",
    "Lora",
    "Precision",
    "Ranks",
    "Rules",
    "Sampler",
    "Settings",
    "VllmStart",
    "device_of",
    "of_config",
    "plain",
    "quantised",
    "rules_of",
    "serve_flags",
    "start",
]
