"""List, show and check the cards that models are judged against.

The catalog is TOML: gpufit's own, then yours from the configuration folder, then those of --catalog DIR.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import add_catalog
from gpufit.cli.diagnostics import ExitCode
from gpufit.cli.output import print_text
from gpufit.units import GIB

if TYPE_CHECKING:
    from gpufit.catalog.record import Card, Catalog

_LIST_HEADERS = ("card", "memory GB", "usable GiB", "GB/s", "bf16 TFLOPS", "compute", "form", "lot")


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit catalog`."""
    verbs = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    listing = verbs.add_parser("list", help="all cards, a line each")
    show = verbs.add_parser("show", help="one card, every figure with its source")
    show.add_argument("card", metavar="CARD", help="an id or a name: h100-sxm, 'NVIDIA L40S'")
    check = verbs.add_parser("check", help="read all catalog files and say whether they are sound")
    path = verbs.add_parser("path", help="where catalog files are read from")
    for verb in (listing, show):
        verb.add_argument("--json", action="store_true", help="JSON instead of text")
    for verb in (listing, show, check, path):
        add_catalog(verb)


def run(arguments: argparse.Namespace) -> int:
    """Carry out one action on the catalog."""
    from gpufit.catalog.store import load_catalog

    catalog = load_catalog(arguments.catalog)
    text = {"list": _list, "show": _show, "check": _check, "path": _path}[arguments.action](arguments, catalog)
    print_text(text)
    return ExitCode.ANSWERED


def _list(arguments: argparse.Namespace, catalog: Catalog) -> str:
    if arguments.json:
        return _json([card_to_plain(card) for card in catalog.cards])
    from tabulate import tabulate

    book = catalog.offer_book()
    rows = [_row(card, book.lot_size(card.id)) for card in catalog.cards]
    numbers = ("memory GB", "usable GiB", "GB/s", "bf16 TFLOPS", "lot")
    align = ["right" if header in numbers else "left" for header in _LIST_HEADERS]
    return tabulate(rows, headers=_LIST_HEADERS, colalign=align, disable_numparse=True)


def _row(card: Card, lot_size: int) -> list[str]:
    usable = "-" if card.capacity_bytes is None else f"{card.capacity_bytes / GIB:.2f}"
    values = (card.memory.bandwidth_gb_s, card.peak_tflops.bf16)
    bandwidth, bf16 = ("-" if value is None else f"{value:g}" for value in values)
    return [
        card.id,
        str(card.memory.nominal_gb),
        usable,
        bandwidth,
        bf16,
        card.compute_capability or card.gfx or "-",
        card.form_factor or "-",
        str(lot_size),
    ]


def _show(arguments: argparse.Namespace, catalog: Catalog) -> str:
    from gpufit.catalog.query import find_card

    card = find_card(catalog, arguments.card)
    plain = card_to_plain(card)
    if arguments.json:
        return _json(plain)
    origin = catalog.card_origins[card.id]
    return "\n".join([f"{card.display_name}  ({card.id}, from {origin.path})", "", *_lines(plain, 0)])


def _lines(value: object, depth: int) -> list[str]:
    """A nested table as indented `key: value` lines."""
    indent = "  " * depth
    lines = []
    for key, inner in value.items() if isinstance(value, dict) else ():
        if isinstance(inner, dict):
            lines += [f"{indent}{key}:", *_lines(inner, depth + 1)]
        elif isinstance(inner, list | tuple) and inner and all(isinstance(one, str) for one in inner):
            lines += [f"{indent}{key}:", *(f"{indent}  - {one}" for one in inner)]
        else:
            lines.append(f"{indent}{key}: {inner}")
    return lines


def _check(arguments: argparse.Namespace, catalog: Catalog) -> str:
    unsized = [card.id for card in catalog.cards if card.capacity_bytes is None]
    folders = sorted({str(Path(origin.path).parent) for origin in catalog.card_origins.values()})
    books = ", ".join(book.name for book in catalog.offer_books)
    lines = [f"{len(catalog.cards)} cards and the offer books {books} read from {', '.join(folders)}"]
    if unsized:
        lines.append(f"no usable memory known, so never judged: {', '.join(unsized)}")
    replaced = [card for card, origin in catalog.card_origins.items() if origin.replaces]
    if replaced:
        lines.append(f"replaced by files of your own: {', '.join(replaced)}")
    return "\n".join(lines)


def _path(arguments: argparse.Namespace, catalog: Catalog) -> str:
    from gpufit.datadir import shipped_catalog_dir, user_catalog_dir

    folders = [shipped_catalog_dir(), user_catalog_dir(), *([arguments.catalog] if arguments.catalog else [])]
    return "\n".join(str(folder) if folder.is_dir() else f"{folder} (not there)" for folder in folders)


def card_to_plain(card: Card) -> dict[str, object]:
    """A card as plain values, its id first."""
    from gpufit.catalog.codec import card_to_table

    return {"id": card.id, **card_to_table(card)}


def _json(value: object) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
