"""Small models deep enough to be run at fewer layers, and sessions that simulate them in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import torch
from architectures import ARCHITECTURES

from gpufit.profile.cells import Measured
from gpufit.sources.measure.protocol import Job, Simulation
from gpufit.sources.simulate import session

PER_LAYER = ("layer_types", "mlp_layer_types", "layers_block_type")
"""Lists of a config that it makes itself where they are not given."""


def save_config(folder: Path, name: str, **changes: Any) -> Path:
    """The config of a small model alone, as the folder of a model without weights."""
    architecture = ARCHITECTURES[name]()
    settings = {key: value for key, value in architecture.config.to_dict().items() if key not in PER_LAYER}
    settings.pop("model_type")
    config = type(architecture.config)(**(settings | changes))
    config.architectures = [architecture.model_class.__name__]
    config.dtype = torch.bfloat16
    config.save_pretrained(folder)
    return folder


def open_simulation(folder: Path, kernel: str = "sdpa", full_depth: bool = False, **changes: Any) -> Any:
    """A simulated session of the config in a folder."""
    settings: dict[str, Any] = {
        "model_path": str(folder),
        "gguf_file": None,
        "model_name": folder.name,
        "model_source": str(folder),
        "fingerprint": "",
        "revision": None,
        "dtype": "auto",
        "attention": None,
        "device": "cpu",
        "seed": 0,
        "logits_kept": "last",
        "trust_remote_code": False,
        "stored": (),
        "simulation": Simulation(kernel=kernel, full_depth=full_depth),
    }
    return session.plan(Job(**(settings | changes))).open()


def without_readings(measured: Measured) -> Measured:
    """A cell as its moments tell it: few layers or few steps say nothing of what an allocator reserves."""
    phases = tuple(msgspec.structs.replace(peak, readings=()) for peak in measured.phases)
    return msgspec.structs.replace(measured, phases=phases)


def whole_run(opened: Any, shape: Any) -> Measured:
    """A cell of which every step is run, instead of the first and the last ones."""
    return Measured(phases=opened._run(shape).phases, inputs_completed=shape.concurrency)
