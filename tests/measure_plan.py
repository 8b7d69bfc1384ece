"""How tests drive a model on the CPU."""

from __future__ import annotations

import torch
from model_files import LLAMA

from gpufit.sources.measure.cpu import CpuRecorder
from gpufit.sources.measure.run import RunPlan


def make_plan(**changes: object) -> RunPlan:
    settings: dict[str, object] = {
        "device": torch.device("cpu"),
        "generates": True,
        "vocabulary": LLAMA["vocab_size"],
        "seed": 0,
        "logits_kept": "last",
        "make_recorder": CpuRecorder,
        "synchronize": lambda: None,
        "entering": lambda phase: None,
    }
    return RunPlan(**(settings | changes))
