"""Which attention kernel a card would run, and what it allocates: a fake run on no device would take the CPU's.

`sdpa` chooses by device, dtype, sizes and mask. Here each call is answered by the operation that torch's CUDA build
would choose; shapes of what these return are in every build of torch. Scratch inside a kernel is not seen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from gpufit.sources.measure.kernels import CPU, EAGER, EFFICIENT, FLASH, SDPA

LARGEST_FLASH_HEAD = 256
"""Numbers a head up to which torch's flash kernel works (`check_head_dim_size_flash` in
https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/transformers/cuda/sdp_utils.cpp)."""

_STEP = 8
"""The flash kernel takes heads of a multiple of this and has others padded; the efficient kernel wants rows of a mask
aligned to 16 bytes, which is as many 16-bit numbers (`pad_last_dim` and `preprocess_mask` in
https://github.com/pytorch/pytorch/blob/main/aten/src/ATen/native/transformers/attention.cpp)."""

_PACKAGE = "gpufit_packaged"
"""How FlashAttention-2 is known to transformers during a run: a name with `flash` in it is looked up on the hub."""


def implementation(kernel: str) -> str | None:
    """What transformers is asked for; None leaves the choice to the model."""
    return {SDPA: None, FLASH: _PACKAGE, EFFICIENT: "sdpa", EAGER: "eager", CPU: None}[kernel]


def words(kernel: str, found: str) -> str:
    """The kernel assumed, in one sentence; `found` is the implementation that the model runs."""
    if found == "eager":
        return "attention: eager, the model's own code, which keeps all scores"
    if kernel == FLASH:
        return "attention: assumed to be the FlashAttention-2 package's kernel, which needs no mask"
    if kernel == EFFICIENT:
        return "attention: assumed to be torch's memory-efficient kernel in every call"
    if kernel == CPU:
        return "attention: as torch's CPU build runs sdpa, not as a card does"
    return (
        "attention: assumed to be what sdpa runs on a card: the flash kernel without a mask, the memory-efficient one "
        "with a mask or where flash cannot (float32, heads of unequal sizes or above 256)"
    )


@contextlib.contextmanager
def running(kernel: str) -> Iterator[None]:
    """Attention as the kernel does it, while the block runs."""
    if kernel in (SDPA, EFFICIENT):
        with _OnACard(always_efficient=kernel == EFFICIENT):
            yield
    else:
        yield


def register_package() -> None:
    """Make FlashAttention-2's forward known to transformers, without the package.

    A prompt whose mask hides nothing goes to it whole, without a mask
    (https://github.com/huggingface/transformers/blob/main/src/transformers/integrations/flash_attention.py).
    """
    from transformers import AttentionInterface, AttentionMaskInterface

    AttentionInterface.register(_PACKAGE, _packaged_flash)
    AttentionMaskInterface.register(_PACKAGE, lambda *args, **kwargs: None)


def _packaged_flash(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: Any, **options: Any
) -> tuple[torch.Tensor, None]:
    queries, keys, values = (one.transpose(1, 2) for one in (query, key, value))
    width = values.shape[-1]
    if width < queries.shape[-1]:  # heads of a latent attention: values are padded to the keys' width
        values = functional.pad(values, [0, queries.shape[-1] - width])
    result = torch.ops.aten._flash_attention_forward(
        queries, keys, values, None, None, queries.shape[1], keys.shape[1], 0.0, queries.shape[1] > 1, False,
        scale=options.get("scaling"),
    )[0]  # fmt: skip
    return (result[..., :width] if width < result.shape[-1] else result), None


class _OnACard(TorchFunctionMode):  # type: ignore[misc]
    """Answers `scaled_dot_product_attention` as torch's CUDA build does."""

    def __init__(self, always_efficient: bool) -> None:
        super().__init__()
        self._always_efficient = always_efficient

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is functional.scaled_dot_product_attention:
            return self._attend(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))

    def _attend(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        if attn_mask is None and not self._always_efficient and _flash_takes(query, key, value):
            return _flash(query, key, value, is_causal, scale)
        if key.shape[1] != query.shape[1] and not self._always_efficient:
            # The efficient kernel takes no grouped heads, so torch falls back to the one that keeps all scores.
            return _math(query, key, value, attn_mask, is_causal, scale, enable_gqa)
        return _efficient(query, key, value, attn_mask, is_causal, scale)


def _flash_takes(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> bool:
    return (
        query.dtype in (torch.float16, torch.bfloat16)
        and query.shape[-1] == key.shape[-1] == value.shape[-1] <= LARGEST_FLASH_HEAD
    )


def _flash(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, causal: bool, scale: float | None) -> Any:
    width = query.shape[-1]
    short = -width % _STEP
    if short:
        scale = scale if scale is not None else width**-0.5
        query, key, value = (functional.pad(one, [0, short]) for one in (query, key, value))
    result = torch.ops.aten._scaled_dot_product_flash_attention(query, key, value, 0.0, causal, scale=scale)[0]
    return result[..., :width] if short else result


def _efficient(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float | None,
) -> Any:
    if key.shape[1] != query.shape[1]:
        key, value = (one.repeat_interleave(query.shape[1] // one.shape[1], 1) for one in (key, value))
    if mask is not None:
        mask = _aligned(_additive(mask, query.dtype)).expand(
            query.shape[0], query.shape[1], query.shape[2], key.shape[2]
        )
    return torch.ops.aten._scaled_dot_product_efficient_attention(
        query, key, value, mask, False, 0.0, causal, scale=scale
    )[0]


def _math(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float | None,
    grouped: bool,
) -> Any:
    return torch.ops.aten._scaled_dot_product_attention_math(
        query, key, value, mask, 0.0, causal, scale=scale, enable_gqa=grouped
    )[0]


def _additive(mask: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A mask of truths as numbers to add (`convert_boolean_attn_mask`, same source)."""
    if mask.dtype != torch.bool:
        return mask
    return torch.zeros_like(mask, dtype=dtype).masked_fill_(mask.logical_not(), float("-inf"))


def _aligned(mask: torch.Tensor) -> torch.Tensor:
    """A mask whose rows begin at multiples of 16 bytes: a padded copy where they do not."""
    width = mask.shape[-1]
    short = -width % _STEP
    return functional.pad(mask, [0, short])[..., :width] if short else mask
