"""Repeat a cell of a profile here, and print predicted against measured.

Runs the profile's largest measured cell, or another, with the profile's own settings on this machine's device; with
--as CARD under that card's memory. Status 0: it ran, and every phase is inside its interval.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import add_catalog, add_cell_timeout, add_device, add_document, add_trust, chosen_format
from gpufit.cli.diagnostics import ExitCode, ProgressBar, ended_as_interrupted, say
from gpufit.cli.output import write_document
from gpufit.errors import UsageError
from gpufit.files import refuse_own_input
from gpufit.report.registry import VERIFY_FORMATS, load_verify_format
from gpufit.units import format_size, format_tokens, parse_count

if TYPE_CHECKING:
    from gpufit.catalog.record import Catalog
    from gpufit.flows_verify import VerifyAsk
    from gpufit.profile.record import Profile
    from gpufit.profile.workload import Workload

_CELL = re.compile("(?P<context>[^x\u00d7]+)[x\u00d7](?P<concurrency>[^x\u00d7]+)", re.IGNORECASE)


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit verify`."""
    parser.add_argument("profile", metavar="PROFILE", help="a profile, measured, simulated or computed")
    parser.add_argument("--model", metavar="MODEL", help="where its model is (default: where the profile says)")
    parser.add_argument(
        "--cell",
        type=cell,
        metavar="CONTEXTxCONCURRENCY",
        help="the cell to run, 8kx4 (default: the largest that was measured; of a computed profile, the largest it was "
        "made for)",
    )
    parser.add_argument(
        "--as",
        dest="as_card",
        metavar="CARD",
        help="run within the memory that torch has on this card, its driver context taken off (default: this device's)",
    )
    add_device(parser)
    add_trust(parser, "the model")
    add_cell_timeout(parser, "give up after so long; loading has no bound")
    add_catalog(parser)
    add_document(parser, VERIFY_FORMATS)


def cell(text: str) -> tuple[int, int]:
    """Read `8kx4`, as an argparse type."""
    match = _CELL.fullmatch(text.strip())
    if match is None:
        raise argparse.ArgumentTypeError(f"--cell is CONTEXTxCONCURRENCY (8kx4), not {text!r}")
    try:
        return parse_count(match["context"], "the context of --cell"), parse_count(
            match["concurrency"], "the concurrency of --cell"
        )
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def run(arguments: argparse.Namespace) -> int:
    """Run the cell and render; status 1 where the prediction did not hold or memory ran out."""
    from gpufit import flows, flows_verify
    from gpufit.catalog.store import load_catalog
    from gpufit.sources.measure.listener import Listener

    form = load_verify_format(chosen_format(arguments))
    profile = flows.load_named_profile(Path(arguments.profile))
    refuse_own_input(arguments.output, (arguments.profile,))
    catalog = load_catalog(arguments.catalog)
    ask = _ask(arguments, profile, catalog)
    bar = ProgressBar()

    def started(workload: Workload, done: int, total: int) -> None:
        bar.say(running_line(workload))

    try:
        with ended_as_interrupted():
            document = flows_verify.verify(
                profile, arguments.profile, ask, catalog, Listener(started=started, progress=bar.now)
            )
    finally:
        bar.close()
    write_document(form.render_verify(document), form.BINARY, arguments.output)
    if arguments.output:
        say(f"wrote {arguments.output}")
    return ExitCode.ANSWERED if document.ok else ExitCode.NOTHING_FITS


def _ask(arguments: argparse.Namespace, profile: Profile, catalog: Catalog) -> VerifyAsk:
    from gpufit.catalog.query import find_card
    from gpufit.flows import default_shape
    from gpufit.flows_verify import VerifyAsk
    from gpufit.memory.terms import Shape

    shape = default_shape(profile)
    if arguments.cell is not None:
        context, concurrency = arguments.cell
        shape = Shape(context, shape.new_tokens, concurrency)
    return VerifyAsk(
        shape=shape,
        model=arguments.model,
        as_card=None if arguments.as_card is None else find_card(catalog, arguments.as_card),
        device=arguments.device,
        trust_remote_code=arguments.trust_remote_code,
        cell_seconds=arguments.cell_timeout,
    )


def running_line(workload: Workload) -> str:
    """Which cell runs, with which settings."""
    (context,), (concurrency,) = workload.contexts_tokens, workload.concurrencies
    new = f" + {workload.new_tokens} new" if workload.new_tokens else ""
    limit = workload.memory_limit_bytes
    return (
        f"running context {format_tokens(context)}{new} x {concurrency} at once, dtype {workload.dtype_requested}"
        + (f", quantization {workload.quantization}" if workload.quantization else "")
        + (f", memory limit {format_size(limit)}" if limit is not None else "")
    )
