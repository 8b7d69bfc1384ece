"""A model that a server is to run: the question about it, its identity, and the words of the command that starts it."""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.advice.starts import Question
from gpufit.profile.record import DtypeShare, ModelInfo


@dataclass(frozen=True)
class ServedModel:
    """A model that vLLM is to serve."""

    question: Question
    info: ModelInfo
    stored: tuple[DtypeShare, ...]
    """Dtypes in the files, of the whole model."""
    source: str
    """What `vllm serve` is given: a directory or a hub id."""
    dtype: str
    """What `vllm serve --dtype` is given; `auto` where nothing was asked for."""
    quantization: str | None
    """What `vllm serve --quantization` is given; None for a checkpoint that names its own method, or none."""
    revision: str | None
    new_tokens: int
    """So many of the longest sequence are generated; 0: not told."""
    notes: tuple[str, ...]
    """What a reader should know of how the model was read, in words."""
