"""Blocks of state-space layers: Mamba 1 and 2, and the state they keep.

Mamba 1 (https://arxiv.org/abs/2312.00752) keeps a state for each channel; Mamba 2
(https://arxiv.org/abs/2405.21060) one matrix a head. Names and shapes as in
https://github.com/huggingface/transformers/tree/main/src/transformers/models .
"""

from __future__ import annotations

from dataclasses import dataclass

from gpufit.architecture.blocks import Layers, Weights, convolution, linear, norm, scalars
from gpufit.architecture.record import Split, StateCache


@dataclass(frozen=True, slots=True, kw_only=True)
class MambaOne:
    """Widths of a Mamba 1 mixer."""

    hidden: int
    inner: int
    state: int
    kernel: int
    rank: int
    conv_bias: bool = True
    bias: bool = False

    def weights(self, at: str, layers: Layers) -> Weights:
        """The mixer's weights."""
        return (
            *linear(f"{at}.in_proj", 2 * self.inner, self.hidden, Split.COLUMN, layers, bias=self.bias),
            *convolution(f"{at}.conv1d", (self.inner, 1, self.kernel), layers, bias=self.conv_bias, split=Split.COLUMN),
            *linear(f"{at}.x_proj", self.rank + 2 * self.state, self.inner, Split.ROW, layers),
            *linear(f"{at}.dt_proj", self.inner, self.rank, Split.COLUMN, layers, bias=True),
            scalars(f"{at}.A_log", (self.inner, self.state), layers),
            scalars(f"{at}.D", (self.inner,), layers),
            *linear(f"{at}.out_proj", self.hidden, self.inner, Split.ROW, layers, bias=self.bias),
        )

    def cache(self, layers: int) -> StateCache:
        """What these layers keep of a sequence."""
        return StateCache(layers, self.inner * self.kernel, self.inner * self.state)


@dataclass(frozen=True, slots=True, kw_only=True)
class MambaTwo:
    """Widths of a Mamba 2 mixer."""

    hidden: int
    heads: int
    head_dim: int
    groups: int
    state: int
    kernel: int
    conv_bias: bool = True
    bias: bool = False
    normed: bool = True

    @property
    def inner(self) -> int:
        """Channels of the state."""
        return self.heads * self.head_dim

    @property
    def channels(self) -> int:
        """Channels of the convolution."""
        return self.inner + 2 * self.groups * self.state

    def weights(self, at: str, layers: Layers) -> Weights:
        """The mixer's weights."""
        out = self.inner + self.channels + self.heads
        return (
            *linear(f"{at}.in_proj", out, self.hidden, Split.COLUMN, layers, bias=self.bias),
            *convolution(
                f"{at}.conv1d", (self.channels, 1, self.kernel), layers, bias=self.conv_bias, split=Split.COLUMN
            ),
            *(scalars(f"{at}.{name}", (self.heads,), layers) for name in ("dt_bias", "A_log", "D")),
            *(norm(f"{at}.norm", self.inner, layers) if self.normed else ()),
            *linear(f"{at}.out_proj", self.hidden, self.inner, Split.ROW, layers, bias=self.bias),
        )

    def cache(self, layers: int) -> StateCache:
        """What these layers keep of a sequence."""
        return StateCache(layers, self.channels * self.kernel, self.inner * self.state)
