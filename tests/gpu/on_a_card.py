"""What the tests on a card share: whether there is one, and models to run on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpufit.profile.peaks import DeviceReading, PhasePeak
from gpufit.profile.record import Profile
from gpufit.sources.measure.cuda_accounting import COUNTER

LLAMA = {
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 4,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
}
KV_BYTES_PER_TOKEN = 4 * 2 * 4 * 64 * 2
"""Layers x (key, value) x KV heads x head size x two bytes of bfloat16."""


def need_card() -> None:
    """Skip, and say why, where torch sees no card."""
    import torch

    if not torch.cuda.is_available():
        pytest.skip("torch sees no CUDA or ROCm card here")


def save_llama(folder: Path, **changes: object) -> Path:
    """A Llama of about 130 million random weights in bfloat16, written as transformers writes it."""
    import torch
    import transformers

    torch.manual_seed(0)
    config = transformers.LlamaConfig(**(LLAMA | changes))
    transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).save_pretrained(folder)
    return folder


def all_peaks(profile: Profile) -> list[PhasePeak]:
    """The load and every phase of every cell that ran to its end."""
    cells = [cell.outcome for cell in profile.measured_cells]
    return [profile.load, *(peak for outcome in cells for peak in getattr(outcome, "phases", ()))]


def counter(peak: PhasePeak, quantity: str) -> int:
    """One reading of torch's counters."""
    (found,) = [one for one in peak.readings if one.source.startswith(COUNTER) and one.quantity == quantity]
    return found.size_bytes


def total(peak: PhasePeak, quantity: str) -> DeviceReading:
    """One reading of the whole device or process, whoever gave it."""
    (found,) = [one for one in peak.readings if not one.source.startswith(COUNTER) and one.quantity == quantity]
    return found
