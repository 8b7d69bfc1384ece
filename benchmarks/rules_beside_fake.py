"""`gpufit estimate` beside `gpufit simulate`: rules against fake runs of whole public models, a line a model.

    python benchmarks/rules_beside_fake.py [NAME...]     # names of tests/facts/configs.json

Prints Markdown. Both answer from the config alone; what differs is which rules are missing, or wrong.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tabulate import tabulate

from gpufit.errors import GpufitError
from gpufit.memory.predict import PhasePrediction, predict
from gpufit.memory.terms import Shape
from gpufit.profile.cells import Measured
from gpufit.profile.store import load_profile
from gpufit.sources.estimate.profile import estimate
from gpufit.sources.estimate.request import EstimateRequest
from gpufit.units import format_size

REPOSITORY = Path(__file__).resolve().parent.parent
SHAPE = Shape(4096, 8, 2)
NAMES = (
    "meta-llama/Meta-Llama-3.1-8B",
    "meta-llama/Meta-Llama-3.1-70B",
    "meta-llama/Meta-Llama-3.1-405B",
    "Qwen/Qwen2.5-7B-Instruct",
    "mistralai/Mistral-7B-v0.1",
    "mistralai/Mixtral-8x7B-v0.1",
    "Qwen/Qwen3-30B-A3B",
    "deepseek-ai/DeepSeek-V2-Lite",
    "deepseek-ai/DeepSeek-V3",
    "google/gemma-2-9b",
    "openai/gpt-oss-20b",
    "microsoft/phi-4",
)


def configs() -> dict[str, dict[str, Any]]:
    """Every public config of the tests, by name, its quantisation left out: a fake run counts weights as they are."""
    rows = json.loads((REPOSITORY / "tests" / "facts" / "configs.json").read_text(encoding="utf-8"))
    return {
        row["name"]: {key: value for key, value in row["config"].items() if key != "quantization_config"}
        for row in rows
    }


def compared(name: str, config: dict[str, Any], folder: Path) -> Iterator[tuple[str, ...]]:
    """A line a phase of one model."""
    path = folder / "config.json"
    path.write_text(json.dumps({"torch_dtype": "bfloat16"} | config))
    simulated = folder / "simulated.json"
    started = time.monotonic()
    shape = ["--context", str(SHAPE.context_tokens), "--concurrency", str(SHAPE.concurrency)]
    command = [sys.executable, "-m", "gpufit", "simulate", str(path), *shape, "-o", str(simulated), "--force"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.monotonic() - started
    try:
        computed = estimate(EstimateRequest(str(path), dtype="bfloat16"))
    except GpufitError as error:
        yield (name, "-", "-", str(error).rpartition(": ")[2], "")
        return
    if done.returncode:
        yield (name, "-", "-", done.stderr.strip().splitlines()[-1], "")
        return
    outcome = load_profile(simulated).cells[0].outcome
    assert isinstance(outcome, Measured)
    told: dict[str, PhasePrediction] = {str(one.phase): one for one in predict(computed, SHAPE)}
    for peak in outcome.phases:
        ours = told[str(peak.phase)]
        off = ours.allocated_bytes / peak.allocated_bytes - 1
        yield (name, str(peak.phase), format_size(peak.allocated_bytes), f"{off:+.3%}", f"{seconds:.0f} s")


def main(names: Sequence[str]) -> None:
    """Print the table."""
    known = configs()
    lines: list[tuple[str, ...]] = []
    for name in names or NAMES:
        found = name if name in known else next((one for one in known if one.startswith(name)), None)
        if found is None:
            print(f"{name}: not among the configs of the tests", file=sys.stderr)
            continue
        with tempfile.TemporaryDirectory() as folder:
            lines += compared(found, known[found], Path(folder))
    headers = ("model", "phase", "simulated", "computed beside it", "simulated in")
    print(tabulate(lines, headers=headers, tablefmt="pipe", disable_numparse=True))


if __name__ == "__main__":
    main(sys.argv[1:])
