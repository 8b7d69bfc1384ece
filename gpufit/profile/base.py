"""What every record of a profile stands on: frozen, all sizes in bytes, all counts in tokens or sequences.

A profile holds what one model did on one device with one engine. Every number in it carries its evidence,
either its own or that of the record around it. Nothing in these records computes more than sums.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

Size = Annotated[int, msgspec.Meta(ge=0)]
"""A size in bytes, or a count: a whole number, never negative."""
Count = Annotated[int, msgspec.Meta(ge=1)]
"""A count of at least one."""


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=False):
    """Base of every stored record: frozen, keyword-only, and strict about its keys."""
