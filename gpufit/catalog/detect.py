"""From a running card to its row: by PCI id, then by exact name, never by size. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from gpufit.catalog.record import Card, Catalog
from gpufit.units import format_size

MEMORY_TOLERANCE = 0.03
"""Driver branches move a card's total by up to 2%; a larger difference means another setting or another card."""

_PCI_ID = re.compile(r"(?:0x)?([0-9a-f]{4}):(?:0x)?([0-9a-f]{4})(?::.*)?")
_NVML_ID = re.compile(r"0x([0-9a-f]{4})([0-9a-f]{4})")


@dataclass(frozen=True)
class Detection:
    """Which row a running card is, and how far to trust that."""

    card: Card | None
    """None when no row matches: the catalog's figures then say nothing about the card."""
    matched_by: Literal["pci_id", "name"] | None
    reason: str
    """What matched, or why nothing did, in words."""
    warnings: tuple[str, ...] = ()
    """What does not agree with the row, in words."""


def detect_card(catalog: Catalog, name: str | None, pci_id: str | None, total_bytes: int | None) -> Detection:
    """The row of a running card.

    `name` is what `torch.cuda.get_device_name` or `nvidia-smi --query-gpu=name` prints, `pci_id` is vendor and
    device in any usual spelling, `total_bytes` the total that the driver or torch reports for the one device.
    """
    wanted = None if pci_id is None else normal_pci_id(pci_id)
    by_name = _first(catalog, lambda card: name is not None and name.strip() in card.device_names)
    by_id = _first(catalog, lambda card: wanted is not None and wanted in card.pci_ids)
    card = by_id or by_name
    if card is None:
        return Detection(None, None, _no_match(name, wanted or pci_id))
    warnings = _identity_warnings(card, by_id, name, wanted) + _memory_warnings(card, total_bytes)
    if by_id is not None:
        return Detection(card, "pci_id", f"PCI id {wanted} is {card.id}", warnings)
    return Detection(card, "name", f"the name {name!r} is {card.id}", warnings)


def normal_pci_id(text: str) -> str | None:
    """`10DE:26B9`, `10de:26b9:10de:1851` or nvidia-smi's `0x26B910DE` as `10de:26b9`; None for anything else."""
    lower = text.strip().lower()
    if match := _PCI_ID.fullmatch(lower):
        return f"{match[1]}:{match[2]}"
    if match := _NVML_ID.fullmatch(lower):
        return f"{match[2]}:{match[1]}"
    return None


def _first(catalog: Catalog, matches: Callable[[Card], bool]) -> Card | None:
    return next((card for card in catalog.cards if matches(card)), None)


def _no_match(name: str | None, pci_id: str | None) -> str:
    seen = [f"PCI id {pci_id}"] if pci_id else []
    seen += [f"name {name!r}"] if name else []
    what = " or ".join(seen) if seen else "no PCI id and no name were given, and a size alone is never trusted"
    return f"no catalog row has {what}" if seen else what


def _identity_warnings(card: Card, by_id: Card | None, name: str | None, pci_id: str | None) -> tuple[str, ...]:
    if by_id is None and pci_id is not None and card.pci_ids:
        return (
            f"its PCI id {pci_id} is not among those of {card.id} ({', '.join(card.pci_ids)}): it may be a sibling",
        )
    if by_id is not None and name and card.device_names and name.strip() not in card.device_names:
        return (f"it calls itself {name!r}, not {card.device_names[0]!r}: it may be a slice or a sibling of {card.id}",)
    return ()


def _memory_warnings(card: Card, total_bytes: int | None) -> tuple[str, ...]:
    known = card.memory.known_totals_bytes
    if total_bytes is None:
        return ()
    if not known:
        return (f"no memory total of {card.id} is known, so the {format_size(total_bytes)} seen here were not checked",)
    nearest = min(known, key=lambda total: abs(total - total_bytes))
    off = total_bytes / nearest - 1
    if abs(off) <= MEMORY_TOLERANCE:
        return ()
    direction = "above" if off > 0 else "below"
    return (
        f"its memory, {format_size(total_bytes)}, is {abs(off):.0%} {direction} the {format_size(nearest)} of "
        f"{card.id}: a MIG or vGPU slice, another ECC mode, a modded card, or the wrong row",
    )
