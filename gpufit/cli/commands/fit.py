"""Judge a profile against the catalog: which cards fit, what binds, how many lots.

Exit status 1 when no card fits, alone or as replicas.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import add_catalog, count
from gpufit.cli.diagnostics import ExitCode, say
from gpufit.cli.output import write_document
from gpufit.errors import UsageError
from gpufit.report.registry import EXTENSIONS, FORMATS, format_for, load_format
from gpufit.units import format_tokens

if TYPE_CHECKING:
    from gpufit.memory.terms import Shape
    from gpufit.profile.record import Profile


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit fit`."""
    parser.add_argument("profile", type=Path, metavar="PROFILE", help="a profile that `gpufit profile` wrote")
    parser.add_argument(
        "--context",
        "--max-model-len",
        type=count("--context"),
        metavar="N",
        help="tokens of each sequence, 8k = 8192 (default: the largest context measured)",
    )
    parser.add_argument(
        "--concurrency",
        "--batch-size",
        type=count("--concurrency"),
        metavar="N",
        help="sequences at once (default: that of the largest cell measured)",
    )
    parser.add_argument(
        "--new-tokens",
        type=count("--new-tokens"),
        metavar="N",
        help="tokens generated on top of the context (default: 1, so that the context is all a sequence holds)",
    )
    parser.add_argument(
        "--card", action="append", default=[], metavar="CARD", help="judge this card only (repeat for more): h100-sxm"
    )
    parser.add_argument(
        "--format", choices=tuple(FORMATS), help="output format (default: table, or by the extension of -o)"
    )
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="same as --format json")
    parser.add_argument("--csv", dest="format", action="store_const", const="csv", help="same as --format csv")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=f"write to FILE: {' '.join(EXTENSIONS)}")
    add_catalog(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge and render; the exit status says whether anything fits."""
    from gpufit import flows
    from gpufit.catalog.query import find_card
    from gpufit.catalog.store import load_catalog

    chosen = arguments.format or (format_for(str(arguments.output)) if arguments.output else "table")
    form = load_format(chosen)
    profile = flows.load_named_profile(arguments.profile)
    catalog = load_catalog(arguments.catalog)
    cards = list({card.id: card for card in (find_card(catalog, text) for text in arguments.card)}.values())
    shape = _shape(arguments, profile)
    _refuse_own_input(arguments)
    document = flows.fit(profile, str(arguments.profile), shape, catalog, catalog.offer_book(), cards)
    write_document(form.render_fit(document), form.BINARY, arguments.output)
    if arguments.output:
        say(f"wrote {arguments.output}")
    return ExitCode.ANSWERED if document.something_fits else ExitCode.NOTHING_FITS


def _refuse_own_input(arguments: argparse.Namespace) -> None:
    """A report never takes the place of the profile it was made from."""
    output = arguments.output
    if output is not None and output.exists() and output.samefile(arguments.profile):
        raise UsageError(f"{output} is the profile itself; write the report to another file")


def _shape(arguments: argparse.Namespace, profile: Profile) -> Shape:
    """The scenario; what was not given comes from the largest measured cell, and is said."""
    from gpufit.flows import default_shape
    from gpufit.memory.terms import Shape

    if arguments.new_tokens is not None and not profile.model.generates:
        raise UsageError(f"{profile.model.name} is an encoder and generates nothing: leave --new-tokens out")
    given = (arguments.context, arguments.concurrency, arguments.new_tokens)
    if None not in given:
        return Shape(arguments.context, arguments.new_tokens, arguments.concurrency)
    start = default_shape(profile)
    new_tokens = arguments.new_tokens or (min(start.new_tokens, 1) if arguments.context else start.new_tokens)
    shape = Shape(arguments.context or start.context_tokens, new_tokens, arguments.concurrency or start.concurrency)
    if arguments.context is None or arguments.concurrency is None:
        say(
            f"scenario: context {format_tokens(shape.context_tokens)}, {shape.new_tokens} new tokens, "
            f"{shape.concurrency} at once (what was not given is that of the largest measured cell)"
        )
    return shape
