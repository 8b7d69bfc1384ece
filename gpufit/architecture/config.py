"""A model's config read with care: whole numbers where whole numbers belong, and a clear line where they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufit.errors import UnreadableInputError

LARGEST = 10**9
"""No width, count or position of a real model comes near; beyond it a config is damaged."""

MOST_LAYERS = 10_000
"""No stack of a real model is as deep."""


class Config:
    """The keys of one config object. Every accessor raises UnreadableInputError in one line naming the key."""

    def __init__(self, values: Mapping[str, Any], where: str, *, nested: bool = False) -> None:
        self.values = values
        self.where = where
        self.nested = nested
        """Whether it is an object inside a config. transformers writes a config's own keys in full, but leaves out of
        a nested object what equals its class's default; so a default stands in for a missing width there alone."""

    def has(self, *keys: str) -> bool:
        """Whether any of these keys holds a value."""
        return any(self.values.get(key) is not None for key in keys)

    def count(self, *keys: str, default: int | None = None, least: int = 1, most: int = LARGEST) -> int:
        """The first of these keys that holds a value, a whole number from `least` to `most`; else the default."""
        for key in keys:
            value = self.values.get(key)
            if value is not None:
                return self._whole(key, value, least, most)
        if default is None:
            raise UnreadableInputError(f"{self.where}: no {' or '.join(keys)}")
        return default

    def width(self, *keys: str, usual: int, most: int = LARGEST) -> int:
        """A count that tells models of one family apart: its usual value stands in only inside a nested object."""
        return self.count(*keys, default=usual if self.nested else None, most=most)

    def maybe(self, *keys: str, least: int = 1) -> int | None:
        """The first of these keys that holds a value, a whole number of at least `least`; None where none does."""
        return self.count(*keys, least=least) if self.has(*keys) else None

    def number(self, key: str, default: float) -> float:
        """A number above 0; else the default."""
        value = self.values.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= LARGEST:
            raise self.wrong(key, "a number above 0")
        return float(value)

    def counts(self, key: str, least: int = 0) -> tuple[int, ...] | None:
        """The list of whole numbers under a key; None where it holds none."""
        found = self.items(key)
        return None if found is None else tuple(self._whole(key, one, least, LARGEST) for one in found)

    def texts(self, key: str) -> tuple[str, ...] | None:
        """The list of texts under a key; None where it holds none."""
        found = self.items(key)
        if found is not None and not all(isinstance(one, str) for one in found):
            raise self.wrong(key, "a list of texts")
        return found

    def share(self, whole: int, parts: int, what: str) -> int:
        """`whole` over `parts`, which must leave at least 1."""
        if whole < parts:
            raise UnreadableInputError(f"{self.where}: {what} {whole} cannot be shared by {parts}")
        return whole // parts

    def _whole(self, key: str, value: Any, least: int, most: int) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            bound = f"a whole number of at least {least}"
            raise self.wrong(key, bound if most == LARGEST else f"{bound} and at most {most}")
        return value

    def flag(self, *keys: str, default: bool = False) -> bool:
        """The first of these keys that holds a value, true or false; else the default."""
        for key in keys:
            value = self.values.get(key)
            if value is None:
                continue
            if not isinstance(value, bool):
                raise self.wrong(key, "true or false")
            return value
        return default

    def text(self, *keys: str, default: str = "") -> str:
        """The first of these keys that holds a value, text; else the default."""
        for key in keys:
            value = self.values.get(key)
            if value is None:
                continue
            if not isinstance(value, str):
                raise self.wrong(key, "text")
            return value
        return default

    def section(self, *keys: str) -> Config | None:
        """The first of these keys that holds an object, as a config of its own; None where none does."""
        for key in keys:
            value = self.values.get(key)
            if value is None:
                continue
            if not isinstance(value, Mapping):
                raise self.wrong(key, "an object")
            return Config(value, f"{self.where}: {key}", nested=True)
        return None

    def part(self, *keys: str) -> Config:
        """As `section`, but where none holds an object, an empty one that stands for the class's defaults."""
        return self.section(*keys) or Config({}, f"{self.where}: {keys[0]}", nested=True)

    def with_values(self, **values: Any) -> Config:
        """The same config with some keys set."""
        return Config({**self.values, **values}, self.where, nested=self.nested)

    def items(self, key: str) -> tuple[Any, ...] | None:
        """The list under a key; None where it holds none."""
        value = self.values.get(key)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)):
            raise self.wrong(key, "a list")
        return tuple(value)

    def wrong(self, key: str, wanted: str) -> UnreadableInputError:
        """The error for a key whose value is not what belongs there."""
        return UnreadableInputError(f"{self.where}: {key} is {_shown(self.values.get(key))}, not {wanted}")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
