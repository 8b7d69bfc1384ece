"""Byte and token units: how they are read from a command line and how they are printed.

Memory is printed in GiB (2**30 bytes), as torch, vLLM and nvidia-smi do; token counts take `k` and `m` as
binary multiples, as the field writes them (`128k` = 131,072 tokens).
"""

from __future__ import annotations

import re

from gpufit.errors import UsageError

KIB = 2**10
MIB = 2**20
GIB = 2**30

_COUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([km]?)", re.IGNORECASE)
_COUNT_FACTOR = {"": 1, "k": KIB, "m": MIB}


def parse_count(text: str, what: str = "count") -> int:
    """Read a positive whole number, `k` and `m` taken as 1,024 and 1,048,576: `8k` is 8192.

    Raises UsageError, naming `what`, for anything else (0 included).
    """
    match = _COUNT.fullmatch(text.strip().replace(",", "").replace("_", ""))
    value = float(match[1]) * _COUNT_FACTOR[match[2].lower()] if match else 0.0
    if value < 1 or value != int(value):
        raise UsageError(f"{what} must be a whole number of at least 1 (8192, or 8k = 8192), not {text!r}")
    return int(value)


def parse_counts(text: str, what: str = "count") -> tuple[int, ...]:
    """Read a comma list of counts, `1k,4k,8k`, into ascending distinct values.

    Raises UsageError for an empty list or a bad member.
    """
    return tuple(sorted({parse_count(part, what) for part in text.split(",")}))


def format_gib(size_bytes: int) -> str:
    """Bytes as GiB with two decimals, or MiB below 0.1 GiB, so that a small part never reads as 0.00."""
    if abs(size_bytes) >= GIB // 10:
        return f"{size_bytes / GIB:.2f} GiB"
    return format_mib(size_bytes)


def format_mib(size_bytes: int) -> str:
    """Bytes as MiB with one decimal, or plain bytes below 0.1 MiB."""
    if abs(size_bytes) >= MIB // 10:
        return f"{size_bytes / MIB:.1f} MiB"
    return f"{size_bytes} B"


def format_tokens(count: int) -> str:
    """Token counts with the field's `k` where it is exact: 8192 is `8k`, 1000 stays `1000`."""
    if count >= KIB and count % KIB == 0:
        return f"{count // KIB}k"
    return str(count)
