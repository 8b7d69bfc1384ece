"""Work out what a model needs from its config and file headers alone, without torch and without a card.

A number holds for the model in one engine, one release, one precision; `gpufit profile` measures, this only computes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import add_catalog, add_document, add_scenario, chosen_format
from gpufit.cli.diagnostics import ExitCode, say
from gpufit.cli.engines import (
    add_engine_options,
    check_engine_options,
    transformers_request,
    vllm_request,
    vllm_scenario_line,
)
from gpufit.cli.offers import add_offers, chosen_offers, say_offers
from gpufit.cli.output import say_made, write_document
from gpufit.errors import UsageError
from gpufit.report.registry import load_format
from gpufit.units import format_tokens

if TYPE_CHECKING:
    from gpufit.memory.terms import Shape
    from gpufit.profile.record import Profile


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit estimate`."""
    parser.add_argument(
        "model", metavar="MODEL", help="a model directory, a config.json, a .safetensors or .gguf file, or a hub id"
    )
    add_scenario(parser, "4096, or the model's own limit", "1", "256 where the model generates")
    add_engine_options(parser)
    parser.add_argument(
        "--card",
        "--gpu",
        action="append",
        default=[],
        metavar="CARD",
        help="judge this card too (repeat for more): h100-sxm; `gpufit fit MODEL` judges all of them",
    )
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the computed profile, for fit and tui")
    add_document(parser)
    add_catalog(parser)
    add_offers(parser)


def scenario_line(profile: Profile, shape: Shape) -> str:
    """What is estimated, defaults included."""
    counted = "1 new token" if shape.new_tokens == 1 else f"{shape.new_tokens} new tokens"
    new = f"{counted}, " if profile.model.generates else ""
    return (
        f"scenario: context {format_tokens(shape.context_tokens)}, {new}{shape.concurrency} at once; computed for "
        f"{profile.engine.name} {profile.engine.version}, {profile.engine.attention} attention, "
        f"{profile.precision.compute[0].dtypes[0]}"
    )


def run(arguments: argparse.Namespace) -> int:
    """Compute and render."""
    from gpufit import flows
    from gpufit.catalog.query import find_cards
    from gpufit.catalog.store import load_catalog

    check_engine_options(arguments)
    chosen = chosen_format(arguments)
    if arguments.engine == "vllm":
        return _run_vllm(arguments, chosen)
    if not arguments.card and chosen in ("csv", "xlsx"):  # formats of one row a card
        raise UsageError(f"{chosen} has one row a card: name cards with --card, or use gpufit fit {arguments.model}")
    form = load_format(chosen)
    catalog = load_catalog(arguments.catalog)
    cards, offers = find_cards(catalog, arguments.card), chosen_offers(arguments, catalog)
    profile = flows.estimate(transformers_request(arguments, arguments.model))
    shape = flows.default_shape(profile)
    document = flows.judge_cards(profile, str(arguments.model), shape, catalog, offers, cards)
    made = None if arguments.save is None else flows.save(profile, arguments.save)
    say(scenario_line(profile, shape))
    if arguments.save is not None:
        say_made(made)
        say(f"wrote {arguments.save}")
    if cards:
        say_offers(offers)
    write_document(form.render_fit(document), form.BINARY, arguments.output)
    if arguments.output:
        say(f"wrote {arguments.output}")
    return ExitCode.ANSWERED if document.something_fits or not cards else ExitCode.NOTHING_FITS


def _run_vllm(arguments: argparse.Namespace, chosen: str) -> int:
    """A start of vLLM on the cards that were named."""
    from gpufit import flows
    from gpufit.catalog.query import find_cards
    from gpufit.catalog.store import load_catalog

    if not arguments.card:
        raise UsageError(
            f"--engine vllm takes a share of a card: name it with --card, or use gpufit fit {arguments.model} --engine "
            "vllm for all of them"
        )
    if arguments.save is not None:
        raise UsageError("--save writes a profile, and a start of vLLM is none: write the answer with -o FILE.json")
    form = load_format(chosen)
    catalog = load_catalog(arguments.catalog)
    cards, offers = find_cards(catalog, arguments.card), chosen_offers(arguments, catalog)
    request = vllm_request(arguments, arguments.model)
    document = flows.start_vllm(request, catalog, offers, cards)
    say(vllm_scenario_line(document.scenario))
    say_offers(offers)
    write_document(form.render_fit(document), form.BINARY, arguments.output)
    if arguments.output:
        say(f"wrote {arguments.output}")
    return ExitCode.ANSWERED if document.something_fits else ExitCode.NOTHING_FITS
