"""The process that reads a GGUF file through transformers and writes its dequantised model: `convert FOLDER < job`."""

from __future__ import annotations

import copy
import os
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec

from gpufit.errors import GpufitError
from gpufit.sources.measure.protocol import Job


def main(folder: str) -> int:
    """Do the job on standard input; the last line on standard error says why it could not be done."""
    job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
    threading.Thread(target=_end_with_the_worker, daemon=True).start()
    import torch
    import transformers

    from gpufit.sources.measure import loading

    transformers.logging.set_verbosity_error()
    try:
        write_plain(loading.load(job, loading.plan_load(job), torch.device("cpu")), Path(folder))
    except GpufitError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def write_plain(model: Any, folder: Path) -> None:
    """Write a model that was loaded from GGUF as an ordinary directory.

    Transformers refuses to save it, as it counts as quantised: its state is hung into a model built without that.
    """
    import torch

    config = copy.deepcopy(model.config)
    if getattr(config, "quantization_config", None) is not None:
        del config.quantization_config
    with torch.device("meta"):
        plain = type(model)(config)
    plain.load_state_dict(model.state_dict(), assign=True)
    plain.tie_weights()
    plain.save_pretrained(folder)


def _end_with_the_worker() -> None:
    """Leave at once when the worker is gone: its end of standard input closes with it."""
    while os.read(0, 4096):
        pass
    os._exit(1)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
