"""The quantisations that `--quantization` can ask for, by name. No library is imported to look at a name."""

from __future__ import annotations

import importlib.util

from gpufit.errors import MeasurementError, UsageError
from gpufit.sources.model_files.record import ModelFiles

METHODS = {
    "torchao-int8wo": "torchao",
    "torchao-float8wo": "torchao",
    "bitsandbytes-int8": "bitsandbytes",
    "bitsandbytes-nf4": "bitsandbytes",
}
"""Name: the package that does it. All of them quantise while the weights are loaded, and need no calibration."""

_BEFOREHAND = "needs a checkpoint quantised beforehand: profile that one, without --quantization"

_NOT_OFFERED = {
    "gptq": f"GPTQ calibrates on data and {_BEFOREHAND}",
    "awq": f"AWQ calibrates on data and {_BEFOREHAND}",
    "fp8": f"fine-grained FP8 {_BEFOREHAND} (or use torchao-float8wo)",
    "compressed-tensors-fp8": f"FP8 by llm-compressor {_BEFOREHAND} (or use torchao-float8wo)",
    "mxfp4": f"MXFP4 {_BEFOREHAND}",
    "torchao-int4wo": "torchao's int4 runs only on a card, with packages of that card's own, and is not offered here",
}
"""What people also ask for, and why it is refused."""


def check_quantization(name: str | None, files: ModelFiles) -> None:
    """Refuse what cannot be asked for, before anything is loaded; None asks for nothing.

    Raises UsageError for the name or a model that is quantised already, MeasurementError when the package is missing.
    """
    if name is None:
        return
    if name not in METHODS:
        why = _NOT_OFFERED.get(name, f"not a name that is known here; use one of {', '.join(METHODS)}")
        raise UsageError(f"--quantization {name}: {why}")
    method = _already(files)
    if method is not None:
        raise UsageError(
            f"--quantization {name}: {files.name} is quantised already ({method}); "
            "leave the option out to measure it as it is"
        )
    package = METHODS[name]
    if importlib.util.find_spec(package) is None:
        raise MeasurementError(
            f"--quantization {name} needs {package}, which this installation lacks: pip install 'gpufit[measure,quant]'"
        )


def _already(files: ModelFiles) -> str | None:
    """How the files are quantised, as they say themselves; None where they are not."""
    if files.is_gguf:
        return "GGUF"
    declared = files.config.get("quantization_config")
    return str(declared.get("quant_method", "method not named")) if isinstance(declared, dict) else None
