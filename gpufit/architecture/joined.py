"""A language model joined with towers that see or hear: the whole from its parts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gpufit.architecture.blocks import Weights, belonging, linear, norm, renamed, replicated
from gpufit.architecture.config import Config
from gpufit.architecture.record import Architecture, Component, Split, Weight
from gpufit.architecture.registry import build_family

LLAVA_NAMES = (("", "language_model."),)
"""How checkpoints of LLaVA and its kin name the language model: its own names behind one prefix."""
INNER_NAMES = (("model.", "model.language_model."),)
"""How newer checkpoints name it: head outside, the rest under `model.language_model`."""


def text_part(config: Config, usual: str, *, tied: bool = False, key: str = "text_config") -> Architecture:
    """The language model of a nested config.

    Whether its head is tied the whole's own flag says, else the nested config's, else `tied`: until transformers 5 the
    nested config decided alone, and published checkpoints of that time follow it.
    """
    text = config.part(key)
    nested = text.flag("tie_word_embeddings", default=tied)
    return build_family(
        text.with_values(
            model_type=text.text("model_type", default=usual),
            tie_word_embeddings=config.flag("tie_word_embeddings", default=nested),
        )
    )


def joined(
    config: Config,
    text: Architecture,
    *,
    class_name: str,
    text_names: tuple[tuple[str, str], ...],
    towers: Iterable[Weight],
    notes: tuple[str, ...] = (),
) -> Architecture:
    """The language model under its new names, and the towers beside it."""
    dtype = config.part("text_config").text("dtype", "torch_dtype")
    return replace(
        text,
        model_type=config.text("model_type"),
        class_name=class_name,
        weights=(*renamed(text.weights, *text_names), *towers),
        notes=(*text.notes, *notes),
        dtype=dtype or text.dtype,
    )


def two_layer_projector(name: str, into: int, out: int, *, bias: bool = True, normed: bool = False) -> Weights:
    """Two linear layers with an activation between, after a norm where there is one; whole on each rank."""
    return replicated(
        belonging(
            (
                *(norm(f"{name}.layer_norm", into, bias=True) if normed else ()),
                *linear(f"{name}.linear_1", out, into, Split.REPLICATED, bias=bias),
                *linear(f"{name}.linear_2", out, out, Split.REPLICATED, bias=bias),
            ),
            Component.PROJECTOR,
        )
    )
