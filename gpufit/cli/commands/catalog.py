"""List, show and check the cards that models are judged against, and the offer books that price them.

The catalog is TOML: gpufit's own, then yours from the configuration folder, then those of --catalog DIR.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import add_catalog
from gpufit.cli.diagnostics import ExitCode, say
from gpufit.cli.offers import (
    book_line,
    books_plain,
    books_table,
    check_new_file,
    currency,
    new_book,
    offers_plain,
    today,
)
from gpufit.cli.output import print_text, write_document
from gpufit.errors import UsageError
from gpufit.files import is_folder
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
    offers = verbs.add_parser("offers", help="all offer books, a line each; or a new one to fill in")
    _add_template(offers)
    check = verbs.add_parser("check", help="read all catalog files and say what is wrong with them")
    check.add_argument("book", nargs="*", type=Path, metavar="FILE", help="check these offer books alone")
    path = verbs.add_parser("path", help="where catalog files are read from")
    for verb in (listing, show, offers):
        verb.add_argument("--json", action="store_true", help="JSON instead of text")
    for verb in (listing, show, offers, check, path):
        add_catalog(verb)


def _add_template(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("to write a new book")
    group.add_argument("--template", action="store_true", help="write a book to fill in, with every card's lot size")
    group.add_argument("-o", "--output", type=Path, metavar="FILE", help="write it to FILE, which must not be there")
    group.add_argument(
        "--card", "--gpu", action="append", default=[], metavar="CARD", help="only this card (repeat for more)"
    )
    group.add_argument("--seller", metavar="NAME", help="whose prices they will be")
    group.add_argument("--currency", type=currency, metavar="CODE", help="that of every price: EUR, USD")


def run(arguments: argparse.Namespace) -> int:
    """Carry out one action on the catalog."""
    from gpufit.catalog.store import load_catalog

    if arguments.action == "check":
        return _check(arguments)
    catalog = load_catalog(arguments.catalog)
    actions = {"list": _list, "show": _show, "offers": _offers, "path": _path}
    text = actions[arguments.action](arguments, catalog)
    if text is not None:
        print_text(text)
    return ExitCode.ANSWERED


def _list(arguments: argparse.Namespace, catalog: Catalog) -> str:
    if arguments.json:
        return _json([card_to_plain(card) for card in catalog.cards])
    from tabulate import tabulate

    offers = catalog.offers(today())
    rows = [_row(card, offers.lot_size(card.id)) for card in catalog.cards]
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
    asked = offers_plain(catalog, card.id)
    plain = {**card_to_plain(card), **({"offers": asked} if asked else {})}
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


def _offers(arguments: argparse.Namespace, catalog: Catalog) -> str | None:
    """The books there are, or a new one; None where that went to a file."""
    if not arguments.template:
        for flag in ("output", "card", "seller", "currency"):
            if getattr(arguments, flag):
                raise UsageError(f"--{flag} is for a new book: add --template")
        return _json(books_plain(catalog)) if arguments.json else books_table(catalog)
    if arguments.json:
        raise UsageError("--template writes TOML: leave --json out")
    if arguments.output is None:
        return new_book(arguments, catalog)
    check_new_file(arguments.output)
    write_document(new_book(arguments, catalog).encode(errors="replace"), False, arguments.output)
    say(f"wrote {arguments.output}; fill it in, then: gpufit catalog check {arguments.output}")
    return None


def _check(arguments: argparse.Namespace) -> int:
    """All cards, then every offer book with all that is wrong with it; status 3 where anything is."""
    from gpufit.catalog.check import check_book, check_books, check_cards
    from gpufit.catalog.store import catalog_folders, load_cards

    folders, day = catalog_folders(arguments.catalog), today()
    cards = check_cards(folders)
    files = [check_book(path, cards.card_ids, day) for path in arguments.book]
    found = files or check_books(folders, cards.card_ids, day)
    lines = [*cards.faults] or ([] if files else _card_lines(load_cards(folders)))
    for one in found:
        lines += one.faults or (f"{one.path}: {book_line(one.book, day)}",)
        lines += one.warnings
    print_text("\n".join(lines))
    return ExitCode.UNREADABLE if cards.faults or any(one.faults for one in found) else ExitCode.ANSWERED


def _card_lines(catalog: Catalog) -> list[str]:
    """What there is to say of all cards."""
    unsized = [card.id for card in catalog.cards if card.capacity_bytes is None]
    folders = sorted({str(Path(origin.path).parent) for origin in catalog.card_origins.values()})
    lines = [f"{len(catalog.cards)} cards read from {', '.join(folders)}"]
    if unsized:
        lines.append(f"no usable memory known, so never judged: {', '.join(unsized)}")
    replaced = [card for card, origin in catalog.card_origins.items() if origin.replaces]
    if replaced:
        lines.append(f"replaced by files of your own: {', '.join(replaced)}")
    return lines


def _path(arguments: argparse.Namespace, catalog: Catalog) -> str:
    from gpufit.datadir import shipped_catalog_dir, user_catalog_dir

    folders = [shipped_catalog_dir(), user_catalog_dir(), *([arguments.catalog] if arguments.catalog else [])]
    return "\n".join(str(folder) if is_folder(folder) else f"{folder} (not there)" for folder in folders)


def card_to_plain(card: Card) -> dict[str, object]:
    """A card as plain values, its id first."""
    from gpufit.catalog.codec import card_to_table

    return {"id": card.id, **card_to_table(card)}


def _json(value: object) -> str:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode()
