"""A model's config read with care: whole numbers where whole numbers belong, and a clear line where they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpufit.errors import UnreadableInputError

LARGEST = 10**9
"""No width, count or position of a real model comes near; beyond it a config is damaged."""


class Config:
    """The keys of one config object. Every accessor raises UnreadableInputError in one line naming the key."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        self.values = values
        self.where = where

    def has(self, *keys: str) -> bool:
        """Whether any of these keys holds a value."""
        return any(self.values.get(key) is not None for key in keys)

    def count(self, *keys: str, default: int | None = None, least: int = 1) -> int:
        """The first of these keys that holds a value, a whole number of at least `least`; else the default."""
        for key in keys:
            value = self.values.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= LARGEST:
                raise self.wrong(key, f"a whole number of at least {least}")
            return value
        if default is None:
            raise UnreadableInputError(f"{self.where}: no {' or '.join(keys)}")
        return default

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
            return Config(value, f"{self.where}: {key}")
        return None

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
