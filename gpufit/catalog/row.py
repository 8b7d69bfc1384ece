"""The base of every record that is read from a catalog file, and the kinds of values in them."""

from __future__ import annotations

from typing import Annotated

import msgspec

Count = Annotated[int, msgspec.Meta(gt=0)]
Rate = Annotated[float, msgspec.Meta(gt=0)]
Words = Annotated[str, msgspec.Meta(min_length=1)]
Texts = tuple[Words, ...]


class Row(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Base of all that is read from a catalog file: strict about its keys, silent about what is not known."""
