"""Weights in bytes on one of two simulated ranks, for the models of the folders named: prints them as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from simulated import open_simulation

from gpufit.sources.measure.protocol import Simulation

found = {}
for folder in sys.argv[1:]:
    opened = open_simulation(Path(folder), simulation=Simulation(kernel="sdpa", tensor_parallel_size=2))
    found[folder] = opened.loaded.load.parts.weights_bytes
print(json.dumps(found), flush=True)
