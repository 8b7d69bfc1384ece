"""How tests drive a model on the CPU."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from model_files import LLAMA

from gpufit.sources.measure.cpu import CpuRecorder
from gpufit.sources.measure.drivers.decoder import Decoder
from gpufit.sources.measure.run import RunPlan


def make_decoder(**changes: object) -> Decoder:
    settings: dict[str, object] = {
        "device": torch.device("cpu"),
        "vocabulary": LLAMA["vocab_size"],
        "seed": 0,
        "logits_kept": "last",
    }
    return Decoder(**(settings | changes))


def make_plan(sites: Mapping[object, str] | None = None, **changes: object) -> RunPlan:
    return RunPlan(
        driver=make_decoder(**changes),
        sites=sites or {},
        make_recorder=CpuRecorder,
        synchronize=lambda: None,
        entering=lambda phase: None,
    )
