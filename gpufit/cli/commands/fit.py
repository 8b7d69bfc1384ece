"""Judge a profile against the catalog: which cards fit, what binds, how many lots.

Exit status 1 when no card fits, alone or as replicas.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import add_catalog, add_document, add_scenario, chosen_format
from gpufit.cli.commands.estimate import scenario_line
from gpufit.cli.diagnostics import ExitCode, say
from gpufit.cli.engines import (
    add_engine_options,
    check_engine_options,
    given_for_a_model,
    transformers_request,
    vllm_request,
    vllm_scenario_line,
)
from gpufit.cli.offers import add_offers, chosen_offers, say_offers
from gpufit.cli.output import write_document
from gpufit.errors import UsageError
from gpufit.report.registry import load_format
from gpufit.units import format_tokens

if TYPE_CHECKING:
    from gpufit.catalog.offers import Offers
    from gpufit.catalog.record import Card, Catalog
    from gpufit.memory.terms import Shape
    from gpufit.profile.record import Profile
    from gpufit.report.document import FitDocument


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit fit`."""
    parser.add_argument(
        "profile",
        metavar="PROFILE",
        help="a profile that `gpufit profile` wrote, or a model (directory, config.json, .gguf, hub id), which is "
        "estimated first",
    )
    add_scenario(
        parser,
        "the largest context measured",
        "that of the largest cell measured",
        "1, so that the context is all a sequence holds",
    )
    parser.add_argument(
        "--card",
        "--gpu",
        action="append",
        default=[],
        metavar="CARD",
        help="judge this card only (repeat for more): h100-sxm",
    )
    add_engine_options(parser.add_argument_group("for a model in place of a profile"))
    add_document(parser)
    add_catalog(parser)
    add_offers(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge and render; the exit status says whether anything fits."""
    from gpufit import flows
    from gpufit.catalog.query import find_cards
    from gpufit.catalog.store import load_catalog

    form = load_format(chosen_format(arguments))
    catalog = load_catalog(arguments.catalog)
    cards, offers = find_cards(catalog, arguments.card), chosen_offers(arguments, catalog)
    if arguments.engine == "vllm" and flows.names_model(arguments.profile):
        document = _started(arguments, catalog, offers, cards)
    else:
        profile, shape = estimated(arguments) if flows.names_model(arguments.profile) else loaded(arguments)
        document = flows.fit(profile, str(arguments.profile), shape, catalog, offers, cards)
    refuse_own_input(arguments)
    say_offers(offers)
    write_document(form.render_fit(document), form.BINARY, arguments.output)
    if arguments.output:
        say(f"wrote {arguments.output}")
    return ExitCode.ANSWERED if document.something_fits else ExitCode.NOTHING_FITS


def loaded(arguments: argparse.Namespace) -> tuple[Profile, Shape]:
    """The profile from its file, and the scenario."""
    from gpufit.flows import load_named_profile

    flag = given_for_a_model(arguments)
    if flag is not None:
        raise UsageError(f"{flag} is for a model, and {arguments.profile} is a profile, which was made with its own")
    profile = load_named_profile(Path(arguments.profile))
    return profile, _shape(arguments, profile)


def estimated(arguments: argparse.Namespace) -> tuple[Profile, Shape]:
    """A computed profile of the model, and the scenario; that nothing was measured is said."""
    from gpufit import flows

    check_engine_options(arguments)
    request = transformers_request(arguments, arguments.profile)
    if arguments.context is not None:
        # As for a profile: what was asked for is all that a sequence holds.
        request = replace(request, usual_new_tokens=1)
    profile = flows.estimate(request)
    shape = flows.default_shape(profile)
    say(f"{arguments.profile} is a model: estimated first, nothing was measured (gpufit profile measures)")
    say(scenario_line(profile, shape))
    return profile, shape


def _started(arguments: argparse.Namespace, catalog: Catalog, offers: Offers, cards: Sequence[Card]) -> FitDocument:
    """A start of vLLM on each card; that nothing was started is said."""
    from gpufit import flows

    check_engine_options(arguments)
    request = vllm_request(arguments, arguments.profile)
    document = flows.start_vllm(request, catalog, offers, cards)
    say(vllm_scenario_line(document.scenario))
    return document


def refuse_own_input(arguments: argparse.Namespace) -> None:
    """A report never takes the place of the profile it was made from."""
    output = arguments.output
    given = Path(arguments.profile)
    if output is not None and output.exists() and given.exists() and output.samefile(given):
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
        origin = "the scenario it was computed for" if not profile.cells else "the largest measured cell"
        say(
            f"scenario: context {format_tokens(shape.context_tokens)}, {shape.new_tokens} new tokens, "
            f"{shape.concurrency} at once (what was not given is that of {origin})"
        )
    return shape
