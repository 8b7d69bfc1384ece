"""The allocator's constants, its settings as `PYTORCH_ALLOC_CONF` states them, and the two roundings.

The constants are those of c10/core/AllocatorConfig.h, which every torch wheel ships. What each setting means:
https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-alloc-conf
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from gpufit.errors import UsageError
from gpufit.units import MIB

BLOCK_BYTES = 512
"""Every block is a multiple of this (kMinBlockSize)."""
SMALL_BYTES = MIB
"""Blocks up to this come from the small pool (kSmallSize)."""
SMALL_SEGMENT_BYTES = 2 * MIB
"""What the small pool takes from the driver at a time (kSmallBuffer)."""
LARGE_SEGMENT_BYTES = 20 * MIB
"""What a large request below `OWN_SEGMENT_BYTES` makes the allocator take (large_segment_size)."""
OWN_SEGMENT_BYTES = 10 * MIB
"""From here on a request gets a segment of its own (kMinLargeAlloc)."""
SEGMENT_STEP_BYTES = 2 * MIB
"""Own segments are multiples of this (kRoundLarge), so `reserved` always is one."""

INTERVALS = 16
"""Sizes that `roundup_power2_divisions` tells apart: from each power of two MiB on, 1 MiB to 32 GiB."""


@dataclass(frozen=True)
class Settings:
    """The settings that decide where device memory goes; the defaults are torch's."""

    expandable_segments: bool = False
    """One segment a pool that grows by mapped pages, instead of a segment a request."""
    max_split_bytes: int | None = None
    """Blocks of at least this size are never split nor given to smaller requests. None: no such limit."""
    max_non_split_rounding_bytes: int = LARGE_SEGMENT_BYTES
    """How much larger than the request such a block may be (it must be smaller than request plus this)."""
    garbage_collection_threshold: float | None = None
    """Share of the ceiling above which unused segments are given back by age before another is taken."""
    roundup_power2_divisions: tuple[int, ...] = (0,) * INTERVALS
    """Divisions between two powers of two that sizes are rounded up to, by interval. 0 and 1: no such rounding."""


DEFAULTS = Settings()
"""Torch's own, where the environment states none."""

_ITEM = r"([^,:\[\]]+):(\[[^\[\]]*\]|[^,:\[\]]+)"
_TEXT = re.compile(rf"(?:{_ITEM}(?:,{_ITEM})*,?)?")
_WITHOUT_EFFECT = frozenset({"release_lock_on_cudamalloc", "graph_capture_record_stream_reuse"})
"""Settings of locks and of graph capture: they move no block of an ordinary run. So do those of pinned host memory."""
_NOT_MODELLED = frozenset({"large_segment_size_mb", "per_process_memory_fraction", "throw_on_cudamalloc_oom"})


def parse_settings(text: str) -> Settings:
    """Read a `PYTORCH_ALLOC_CONF` string, `key:value,key:value`; an empty one gives torch's defaults.

    Settings of pinned host memory, locks and graph capture are read and change nothing here. Raises UsageError for
    what torch would refuse, for a key that it does not know, and for one whose effect is not modelled.
    """
    plain = "".join(text.split())
    if not _TEXT.fullmatch(plain):
        raise _refused(text, "write it as key:value,key:value")
    settings = Settings()
    for key, value in re.findall(_ITEM, plain):
        if key in _READERS:
            settings = _READERS[key](settings, value)
        elif key == "backend" and value != "native":
            raise _refused(f"backend:{value}", "only torch's native allocator is modelled")
        elif key in _NOT_MODELLED:
            raise _refused(key, "this setting is not modelled")
        elif key != "backend" and key not in _WITHOUT_EFFECT and not key.startswith("pinned_"):
            raise _refused(key, "torch has no such setting")
    if settings.expandable_segments and settings.max_split_bytes is not None:
        raise _refused(text, "max_split_size_mb beside expandable_segments is not modelled")
    return settings


def rounded_size(size: int, settings: Settings) -> int:
    """The size in bytes of the block that a request of `size` bytes is for, before any rest stays with it."""
    divisions = settings.roundup_power2_divisions[min(max(size.bit_length() - 21, 0), INTERVALS - 1)]
    if divisions > 1 and size > BLOCK_BYTES * divisions:
        step = (1 << size.bit_length() - 1) // divisions
        return -(-size // step) * step
    return max(-(-size // BLOCK_BYTES), 1) * BLOCK_BYTES


def segment_size(size: int) -> int:
    """Bytes that a block of `size` bytes makes the allocator take from the driver, without expandable segments."""
    if size <= SMALL_BYTES:
        return SMALL_SEGMENT_BYTES
    if size < OWN_SEGMENT_BYTES:
        return LARGE_SEGMENT_BYTES
    return -(-size // SEGMENT_STEP_BYTES) * SEGMENT_STEP_BYTES


def handed_out(size: int, settings: Settings = DEFAULTS) -> int:
    """Bytes that a block counts as `allocated` which is asked for while nothing is cached: rounded, and with the rest
    of a segment of its own where that is not split off (by default one of 1 MiB or less)."""
    rounded = rounded_size(size, settings)
    if settings.expandable_segments or rounded < OWN_SEGMENT_BYTES:
        return rounded
    segment, limit = segment_size(rounded), settings.max_split_bytes
    splits = segment - rounded > SMALL_BYTES and (limit is None or rounded < limit)
    return rounded if splits else segment


def _refused(what: str, why: str) -> UsageError:
    return UsageError(f"allocator settings: {what!r} cannot be used: {why}")


def _expandable(settings: Settings, value: str) -> Settings:
    if value not in ("True", "False"):
        raise _refused(f"expandable_segments:{value}", "it is True or False")
    return replace(settings, expandable_segments=value == "True")


def _max_split(settings: Settings, value: str) -> Settings:
    return replace(settings, max_split_bytes=_mebibytes("max_split_size_mb", value))


def _max_non_split_rounding(settings: Settings, value: str) -> Settings:
    return replace(settings, max_non_split_rounding_bytes=_mebibytes("max_non_split_rounding_mb", value))


def _mebibytes(key: str, value: str) -> int:
    size = int(value) * MIB if re.fullmatch(r"[0-9]{1,12}", value) else 0
    if size < LARGE_SEGMENT_BYTES:
        raise _refused(f"{key}:{value}", f"it is a whole number of at least {LARGE_SEGMENT_BYTES // MIB}")
    return size


def _threshold(settings: Settings, value: str) -> Settings:
    share = float(value) if re.fullmatch(r"[0-9]*\.?[0-9]+", value) else 0.0
    if not 0 < share < 1:
        raise _refused(f"garbage_collection_threshold:{value}", "it lies between 0 and 1")
    return replace(settings, garbage_collection_threshold=share)


def _roundup(settings: Settings, value: str) -> Settings:
    if not value.startswith("["):
        return replace(settings, roundup_power2_divisions=(_power_of_two(value, least=1),) * INTERVALS)
    divisions = [0] * INTERVALS
    last, first = 0, True
    for pair in value[1:-1].split(","):
        from_mib, _, count_text = pair.partition(":")
        count = _power_of_two(count_text, least=0)
        if from_mib == ">":
            divisions[last + 1 :] = [count] * (INTERVALS - last - 1)
            continue
        last = min(_power_of_two(from_mib, least=1).bit_length() - 1, INTERVALS - 1)
        divisions[last] = count
        if first:
            divisions[:last] = [count] * last
            first = False
    return replace(settings, roundup_power2_divisions=tuple(divisions))


def _power_of_two(text: str, least: int) -> int:
    number = int(text) if re.fullmatch(r"[0-9]{1,12}", text) else -1
    if number < least or number & (number - 1):
        raise _refused(f"roundup_power2_divisions with {text!r}", "sizes in MiB and divisions are powers of two")
    return number


_READERS: dict[str, Callable[[Settings, str], Settings]] = {
    "expandable_segments": _expandable,
    "max_split_size_mb": _max_split,
    "max_non_split_rounding_mb": _max_non_split_rounding,
    "garbage_collection_threshold": _threshold,
    "roundup_power2_divisions": _roundup,
}
