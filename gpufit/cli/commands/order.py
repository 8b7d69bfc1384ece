"""Write the order file for one card: lots, term, cost, who computes what, and how to check what arrives.

Exit status 1 when nothing should be ordered as it stands: the card does not surely fit, the term is too short, workers
get no input, the engine cannot run on the card, or it is to be held in what nothing was run with (--if).
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import add_catalog, add_scenario, amount, hours, share
from gpufit.cli.commands.fit import estimated, loaded, say_estimated
from gpufit.cli.diagnostics import ExitCode, say
from gpufit.cli.engines import (
    add_engine_options,
    check_engine_options,
    refuse_model_options,
    vllm_request,
    vllm_scenario_line,
)
from gpufit.cli.held import add_held, held_of, refuse_for_start
from gpufit.cli.offers import add_offers, chosen_offers
from gpufit.cli.output import write_document
from gpufit.files import refuse_own_input
from gpufit.report.order_registry import ORDER_EXTENSIONS, ORDER_FORMATS, load_order_format, order_format_for

if TYPE_CHECKING:
    from gpufit.advice.plan import Ask
    from gpufit.catalog.offers import Offers
    from gpufit.catalog.record import Card, Catalog
    from gpufit.report.order_document import OrderDocument


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit order`."""
    parser.add_argument(
        "profile",
        metavar="PROFILE",
        help="a profile (measured, simulated or computed), or a model, which is estimated first",
    )
    parser.add_argument(
        "--card", "--gpu", required=True, metavar="CARD", help="the card to order, by id or by a name: h100-sxm"
    )
    parser.add_argument(
        "--term",
        type=int,
        choices=(3, 7, 30),
        help="days to rent for (default: the shortest that holds the work, where its hours are known)",
    )
    parser.add_argument(
        "--arrangement",
        choices=_ARRANGEMENTS,
        help="how the card is taken, of the ways that gpufit fit lists for it (default: the one with the fewest cards)",
    )
    add_scenario(
        parser,
        "the largest context measured",
        "that of the largest cell measured",
        "1, so that the context is all a sequence holds",
    )
    add_held(parser)
    _add_work(parser.add_argument_group("the work"))
    add_engine_options(parser.add_argument_group("for a model in place of a profile"))
    parser.add_argument(
        "--format", choices=tuple(ORDER_FORMATS), help="output format (default: markdown, or by the extension of -o)"
    )
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="same as --format json")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help=f"write to FILE: {' '.join(ORDER_EXTENSIONS)}"
    )
    add_catalog(parser)
    add_offers(parser)


def _add_work(group: argparse._ArgumentGroup) -> None:
    """How much there is to do, by how many, and what else takes time; `k` and `M` are thousands and millions here."""
    group.add_argument("--inputs", type=amount("--inputs"), metavar="N", help="inputs to work off in all, 10k = 10000")
    group.add_argument(
        "--tokens",
        type=amount("--tokens"),
        metavar="N",
        help="tokens to generate in all, 10M = 10000000 (of a model that generates none, to read); with --inputs the "
        "longer counts",
    )
    group.add_argument(
        "--workers",
        type=amount("--workers"),
        metavar="N",
        help="whole copies of the model, each with its part of the inputs and of --concurrency (default: as many as "
        "--concurrency needs)",
    )
    group.add_argument(
        "--piece-inputs",
        type=amount("--piece-inputs"),
        metavar="N",
        default=1000,
        help="inputs in a piece of a worker's output (default: 1000, assumed)",
    )
    for name, default, what in _HOURS:
        group.add_argument(
            f"--{name}-hours",
            type=hours(f"--{name}-hours"),
            metavar="H",
            default=default,
            help=f"hours for {what} (default: {default:g}, assumed)",
        )
    group.add_argument(
        "--busy-share",
        type=share("--busy-share"),
        metavar="F",
        default=0.9,
        help="share of its hours in which a worker computes (default: 0.9, assumed)",
    )


_ARRANGEMENTS = ("single", "replicas", "sharded", "pipeline", "sharded+pipeline")
"""Those of `advice.verdict`, which help must not load."""

_HOURS = (
    ("setup", 4.0, "installing, fetching weights, checks on arrival"),
    ("checks", 2.0, "confirming that the job is complete, quality checks"),
    ("export", 2.0, "taking results away"),
)
"""Options in hours; the defaults are those of `advice.terms`, which help must not load."""


def run(arguments: argparse.Namespace) -> int:
    """Plan and render; the exit status says whether it should be ordered."""
    from gpufit import flows, flows_order
    from gpufit.catalog.query import find_card
    from gpufit.catalog.store import load_catalog
    from gpufit.report.order_text import status

    form = load_order_format(_chosen_format(arguments))
    catalog = load_catalog(arguments.catalog)
    card, offers = find_card(catalog, arguments.card), chosen_offers(arguments, catalog)
    held = held_of(arguments.held)
    refuse_model_options(arguments, [arguments.profile])
    is_model = flows.names_model(arguments.profile)
    if is_model:
        check_engine_options(arguments)
    if is_model and arguments.engine == "vllm":
        refuse_for_start(held)
        document = _started(arguments, catalog, offers, card)
    else:
        if is_model:
            say_estimated(arguments.profile)
        judged = estimated if is_model else loaded
        profile, shape = judged(arguments, arguments.profile)
        ask = _ask(arguments)
        document = flows_order.order(
            profile,
            arguments.profile,
            shape,
            catalog,
            offers,
            card,
            ask,
            held=held,
            arrangement=arguments.arrangement,
            saved=not is_model,
        )
    refuse_own_input(arguments.output, [arguments.profile])
    for blocker in document.blockers:
        say(f"not ready: {blocker}")
    write_document(form.render_order(document), form.BINARY, arguments.output)
    if arguments.output:
        say(f"wrote {arguments.output}" + (f": {status(document)}" if document.ready else ""))
    return ExitCode.ANSWERED if document.ready else ExitCode.NOTHING_FITS


def _chosen_format(arguments: argparse.Namespace) -> str:
    """The format asked for, by name or by the output's extension. Raises UsageError for an unknown extension."""
    by_name: str | None = arguments.format
    return by_name or (order_format_for(str(arguments.output)) if arguments.output else "markdown")


def _ask(arguments: argparse.Namespace) -> Ask:
    from gpufit.advice.plan import Ask
    from gpufit.advice.terms import Overheads, Volume

    overheads = Overheads(
        setup_hours=arguments.setup_hours,
        checks_hours=arguments.checks_hours,
        export_hours=arguments.export_hours,
        busy_share=arguments.busy_share,
    )
    return Ask(
        term_days=arguments.term,
        volume=Volume(arguments.inputs, arguments.tokens),
        workers=arguments.workers,
        piece_inputs=arguments.piece_inputs,
        overheads=overheads,
    )


def _started(arguments: argparse.Namespace, catalog: Catalog, offers: Offers, card: Card) -> OrderDocument:
    """An order for a model that vLLM is to serve; that nothing was started is said."""
    from gpufit import flows_order

    request = vllm_request(arguments, arguments.profile)
    ask, arrangement = _ask(arguments), arguments.arrangement
    document = flows_order.order_start(request, catalog, offers, card, ask, arrangement=arrangement)
    say(vllm_scenario_line(document.scenario))
    return document
