"""Work out what a model needs from its config and file headers alone, without torch and without a card.

A number holds for the model in one engine, one release, one precision; `gpufit profile` measures, this only computes.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from gpufit.cli.arguments import add_catalog, add_document, add_scenario, chosen_format
from gpufit.cli.diagnostics import ExitCode, say
from gpufit.cli.output import write_document
from gpufit.errors import UsageError
from gpufit.report.registry import load_format
from gpufit.units import format_tokens

if TYPE_CHECKING:
    from gpufit.memory.terms import Shape
    from gpufit.profile.record import Profile
    from gpufit.sources.estimate.request import EstimateRequest


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit estimate`."""
    parser.add_argument(
        "model", metavar="MODEL", help="a model directory, a config.json, a .safetensors or .gguf file, or a hub id"
    )
    add_scenario(parser, "4096, or the model's own limit", "1", "256 where the model generates")
    add_model_options(parser)
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


def add_model_options(parser: argparse._ActionsContainer) -> None:
    """How the model is run: what `estimate` and `fit MODEL` take alike."""
    parser.add_argument(
        "--dtype", default="auto", help="dtype of the weights in memory (default: auto, the checkpoint's own)"
    )
    parser.add_argument(
        "--kv-cache-dtype", choices=("auto", "fp8"), default="auto", help="dtype of the KV cache (default: auto)"
    )
    parser.add_argument(
        "--attn-implementation",
        choices=("sdpa", "eager", "flash_attention_2"),
        help="attention implementation (default: sdpa, eager where a family has no sdpa)",
    )
    parser.add_argument(
        "--engine-version", metavar="X.Y.Z", help="release of transformers (default: the newest whose rules are known)"
    )
    parser.add_argument("--revision", help="branch, tag or commit of a hub id")


def model_options() -> dict[str, str | None]:
    """The same arguments by name, each with what it is when it was not given."""
    options: dict[str, str | None] = {"dtype": "auto", "kv_cache_dtype": "auto"}
    return options | dict.fromkeys(("attn_implementation", "engine_version", "revision"))


def scenario_line(profile: Profile, shape: Shape) -> str:
    """What is estimated, defaults included."""
    counted = "1 new token" if shape.new_tokens == 1 else f"{shape.new_tokens} new tokens"
    new = f"{counted}, " if profile.model.generates else ""
    return (
        f"scenario: context {format_tokens(shape.context_tokens)}, {new}{shape.concurrency} at once; computed for "
        f"{profile.engine.name} {profile.engine.version}, {profile.engine.attention} attention, "
        f"{profile.precision.compute[0].dtypes[0]}"
    )


def request_of(arguments: argparse.Namespace, model: str) -> EstimateRequest:
    """What is to be estimated."""
    from gpufit.sources.estimate.request import EstimateRequest

    return EstimateRequest(
        model=model,
        context_tokens=arguments.context,
        concurrency=arguments.concurrency or 1,
        new_tokens=arguments.new_tokens,
        dtype=arguments.dtype,
        kv_cache_dtype=arguments.kv_cache_dtype,
        engine_version=arguments.engine_version,
        attention=arguments.attn_implementation,
        revision=arguments.revision,
    )


def run(arguments: argparse.Namespace) -> int:
    """Compute and render."""
    from gpufit import flows
    from gpufit.catalog.query import find_cards
    from gpufit.catalog.store import load_catalog

    chosen = chosen_format(arguments)
    if not arguments.card and chosen in ("csv", "xlsx"):  # formats of one row a card
        raise UsageError(f"{chosen} has one row a card: name cards with --card, or use gpufit fit {arguments.model}")
    form = load_format(chosen)
    catalog = load_catalog(arguments.catalog)
    cards = find_cards(catalog, arguments.card)
    profile = flows.estimate(request_of(arguments, arguments.model))
    shape = flows.default_shape(profile)
    document = flows.judge_cards(profile, str(arguments.model), shape, catalog, catalog.offer_book(), cards)
    if arguments.save is not None:
        flows.save(profile, arguments.save)
    say(scenario_line(profile, shape))
    if arguments.save is not None:
        say(f"wrote {arguments.save}")
    write_document(form.render_fit(document), form.BINARY, arguments.output)
    if arguments.output:
        say(f"wrote {arguments.output}")
    return ExitCode.ANSWERED if document.something_fits or not cards else ExitCode.NOTHING_FITS
