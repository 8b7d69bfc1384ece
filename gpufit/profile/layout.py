"""How a model's weights lie over its layers, and over cards that share them, in bytes."""

from __future__ import annotations

from typing import Annotated

import msgspec

from gpufit.profile.base import Count, Record, Size


class Shard(Record, frozen=True, kw_only=True):
    """What one of several cards holds that share every layer of a model (tensor parallel), as its engine divides it."""

    ranks: Annotated[int, msgspec.Meta(ge=2)]
    """Cards that share it."""
    weights_bytes: Size = 0
    """Weights on one of them."""
    kv_share: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    """The share of the KV cache that one of them holds: KV heads are divided, a latent is not."""
    refusal: str = ""
    """Why the engine cannot divide it so; empty where it can."""
    layout: Layout | None = None
    """How what one of them holds lies over the layers, which may be spread over further cards; absent in older
    profiles."""


class Layout(Record, frozen=True, kw_only=True):
    """How a model's weights lie over layers and cards, in bytes as they are in memory: what a plan needs that divides
    the model, or holds it smaller."""

    layers: Count
    largest_layer_bytes: Size
    first_bytes: Size
    """What stands before the layers: embeddings, towers for images."""
    last_bytes: Size
    """What stands behind them: the head (embeddings that are the head stand on both sides), the last norm."""
    linear_bytes: Size
    """Matrices of linear layers and experts in 16 bits or more: what quantisation makes smaller."""
    linear_elements: Size
    largest_linear_elements: Size
    """Of a single matrix, which some kernels dequantise whole."""
    largest_layer_rest_bytes: Size | None = None
    """The most that a layer holds beside those matrices; absent in older profiles, as what follows."""
    largest_layer_linear_elements: Size | None = None
    """The most elements of those matrices in a layer."""
    shards: tuple[Shard, ...] = ()
