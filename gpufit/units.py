"""Byte and token units: how they are read from a command line and how they are printed.

Memory is printed in GiB (2**30 bytes), as torch, vLLM and nvidia-smi do; lengths in tokens take `k` and `m` as binary
multiples, as the field writes them (`128k` = 131,072 tokens); amounts of work take them as thousands and millions, as
everybody does (`100k` = 100,000 inputs).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from gpufit.errors import UsageError

KIB = 2**10
MIB = 2**20
GIB = 2**30
TIB = 2**40

_SHAPE = re.compile("(?P<context>.+?)[x\u00d7](?P<concurrency>[^+]+)(?:\\+(?P<new>.+))?", re.IGNORECASE)
"""Between context and concurrency: `x`, or the multiplication sign."""
_SIZE = re.compile(r"(\d{1,20})(?:\.(\d{1,20}))?\s*(?:([kmgt])(i?b)?)", re.IGNORECASE)
_SIZE_FACTOR = {"k": KIB, "m": MIB, "g": GIB, "t": TIB}

_COUNT = re.compile(r"(\d{1,3}(?:[,_]\d{3}){1,5}|\d{1,20})(?:\.(\d{1,20}))?\s*([km]?)", re.IGNORECASE)
_COUNT_FACTOR = {"": 1, "k": KIB, "m": MIB}
_AMOUNT_FACTOR = {"": 1, "k": 1_000, "m": 1_000_000}

LARGEST_COUNT = 2**40
"""A count beyond this (a trillion tokens or sequences) is a slip of the keyboard, not a question."""


LARGEST_SIZE = 2**60
"""A size beyond this (a million TiB) is a slip of the keyboard, too."""


def parse_count(text: str, what: str = "count") -> int:
    """Read a positive whole number, `k` and `m` taken as 1,024 and 1,048,576: `8k` is 8192.

    Thousands may be set apart: `131,072`. Raises UsageError, naming `what`, for anything else (0 included).
    """
    return _whole(text, what, _COUNT_FACTOR)


def parse_amount(text: str, what: str = "amount") -> int:
    """Read an amount of work: as `parse_count`, but `k` and `m` are 1,000 and 1,000,000, so that `100k` is 100000."""
    return _whole(text, what, _AMOUNT_FACTOR)


def _whole(text: str, what: str, factors: Mapping[str, int]) -> int:
    match = _COUNT.fullmatch(text.strip())
    value, rest = 0, 0
    if match:
        whole, decimals, letter = match.groups()
        value, rest = _exactly(whole, decimals or "", factors[letter.lower()])
    if value < 1 or rest:
        example = "8192, or 8k = 8192" if factors is _COUNT_FACTOR else "8000, or 8k = 8000"
        raise UsageError(f"{what} must be a whole number of at least 1 ({example}), not {text!r}")
    if value > LARGEST_COUNT:
        raise UsageError(f"{what} must be at most {LARGEST_COUNT}, not {text!r}")
    return value


def _exactly(whole: str, decimals: str, factor: int) -> tuple[int, int]:
    """(whole units, rest) in integer arithmetic: a float would change counts above 2**53."""
    digits = int(re.sub("[,_]", "", whole) + decimals)
    return divmod(digits * factor, int("1" + "0" * len(decimals)))


def parse_counts(text: str, what: str = "count") -> tuple[int, ...]:
    """Read a comma list of counts, `1k,4k,8k`, into ascending distinct values.

    Raises UsageError for an empty list or a bad member.
    """
    return tuple(sorted({parse_count(part, what) for part in text.split(",")}))


def parse_shape(text: str, of: str = "") -> tuple[int, int, int | None] | None:
    """Read CONTEXTxCONCURRENCY[+NEW], `8kx16+256`: context tokens, sequences at once, new tokens where they were given.

    None for anything of another form; raises UsageError, naming which (`of` says of what), for a bad count in it.
    """
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        return None
    new = match["new"]
    return (
        parse_count(match["context"], f"the context{of}"),
        parse_count(match["concurrency"], f"the concurrency{of}"),
        None if new is None else parse_count(new, f"the new tokens{of}"),
    )


def parse_size(text: str, what: str = "size") -> int:
    """Read a size in bytes: `6GiB`, `6g`, `512MiB`, `1.5g`; a fraction of a byte is dropped.

    A letter alone is binary, as memory is counted and as Docker reads it; `GB` is 10**9, as the SI has it. Raises
    UsageError, naming `what`, for anything else: without a unit, a size of nothing, or one beyond 2**60 bytes.
    """
    match = _SIZE.fullmatch(text.strip())
    size = 0
    if match:
        whole, decimals, letter, suffix = match.groups()
        decimal = (suffix or "").lower() == "b"
        factor = 1000 ** ("kmgt".index(letter.lower()) + 1) if decimal else _SIZE_FACTOR[letter.lower()]
        decimals = decimals or ""
        size = int(whole + decimals) * factor // 10 ** len(decimals)
    if not 1 <= size <= LARGEST_SIZE:
        raise UsageError(f"{what} must be a size with its unit (6GiB, or 6g; 512MiB), not {text!r}")
    return size


def parse_seconds(text: str, what: str = "time") -> int:
    """Read a time in whole seconds, at least one, at most a year. Raises UsageError, naming `what`, for others."""
    if not text.isdecimal() or len(text) > 8 or not 1 <= int(text) <= 366 * 86400:
        raise UsageError(f"{what} must be a whole number of seconds, at least 1, not {text!r}")
    return int(text)


def parse_whole(text: str, what: str = "number") -> int:
    """Read a whole number, 0 included, of six digits at most. Raises UsageError, naming `what`, for others."""
    if not text.isdecimal() or len(text) > 6:
        raise UsageError(f"{what} must be a whole number from 0 to 999999, not {text!r}")
    return int(text)


def parse_seed(text: str, what: str = "seed") -> int:
    """Read a seed as torch takes it, a whole number of 63 bits. Raises UsageError, naming `what`, for others."""
    if not text.isdecimal() or len(text) > 19 or int(text) >= 2**63:
        raise UsageError(f"{what} must be a whole number from 0 to 2**63 - 1, not {text!r}")
    return int(text)


def parse_pixels(text: str, what: str = "size") -> tuple[int, int]:
    """Read width and height in pixels: `448x448`, or one number for a square. Raises UsageError, naming `what`."""
    sides = text.lower().split("x")
    if len(sides) > 2 or not all(side.isdecimal() and len(side) <= 5 and int(side) for side in sides):
        raise UsageError(f"{what} must be WIDTHxHEIGHT in pixels, 448x448, not {text!r}")
    return int(sides[0]), int(sides[-1])


def format_size(size_bytes: int) -> str:
    """Bytes as GiB with two decimals, or MiB below 1 GiB, so that no part loses its digits."""
    if abs(size_bytes) >= GIB:
        return f"{size_bytes / GIB:.2f} GiB"
    return format_mib(size_bytes)


def parse_hours(text: str, what: str = "hours") -> float:
    """Read a time in hours, 0 included, at most a year: `1.5`. Raises UsageError, naming `what`, for anything else."""
    number = _number(text)
    if not 0 <= number <= 366 * 24:
        raise UsageError(f"{what} must be hours from 0 to 8784 (1.5), not {text!r}")
    return number


def parse_share(text: str, what: str = "share") -> float:
    """Read a share of a whole, above 0 and at most 1: `0.9`. Raises UsageError, naming `what`, for anything else."""
    number = _number(text)
    if not 0 < number <= 1:
        raise UsageError(f"{what} must be above 0 and at most 1 (0.9), not {text!r}")
    return number


def _number(text: str) -> float:
    """The number, or -1, which is out of every range here; what is not a number is not in any range either."""
    try:
        return float(text)
    except ValueError:
        return -1.0


def format_mib(size_bytes: int) -> str:
    """Bytes as MiB with one decimal, or plain bytes below 0.1 MiB, thousands set apart."""
    if abs(size_bytes) >= MIB // 10:
        return f"{size_bytes / MIB:.1f} MiB"
    return f"{size_bytes:,} B"


def format_tokens(count: int) -> str:
    """Token counts with the field's `k` where it is exact: 8192 is `8k`, 1000 stays `1000`."""
    if count >= KIB and count % KIB == 0:
        return f"{count // KIB}k"
    return str(count)


RATE_DIGITS = 3
"""Significant digits of a rate or a time: speed repeats itself no better than to some percent."""


def format_figure(value: float, digits: int = RATE_DIGITS, *, up: bool = False) -> str:
    """A rate or a time in significant digits, never in powers of ten: 0.0048225 is `0.00482`, 1234.5 is `1,234`.

    `up` rounds upwards, for what has to be enough. Raises ValueError for a number below 0.
    """
    if not 0 <= value < math.inf:
        raise ValueError(f"a figure must be a number of at least 0, not {value}")
    if not value:
        return "0"
    decimals = max(digits - 1 - math.floor(math.log10(value)), 0)
    if up:
        value = _rounded_up(value, decimals)
    return f"{value:,.{decimals}f}"


def _rounded_up(value: float, decimals: int) -> float:
    """The least figure of so many decimals that is not below the value, as it is printed in turn."""
    nearest = round(value, decimals)
    return nearest if nearest >= value else round(nearest + 10.0**-decimals, decimals)


def counted(count: int, one: str, many: str = "") -> str:
    """`1 sequence`, `4 sequences`, `1,024 sequences`; `many` where an `s` does not make it."""
    return f"1 {one}" if count == 1 else f"{count:,} {many or one + 's'}"
