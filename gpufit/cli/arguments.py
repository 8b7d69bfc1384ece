"""Arguments that several commands share, and how their values are read."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from gpufit.errors import UsageError
from gpufit.report.registry import EXTENSIONS, FORMATS, format_for
from gpufit.units import (
    parse_amount,
    parse_count,
    parse_counts,
    parse_hours,
    parse_pixels,
    parse_seconds,
    parse_seed,
    parse_share,
    parse_size,
    parse_whole,
)

Value = TypeVar("Value")


def reader(parse: Callable[[str, str], Value], what: str) -> Callable[[str], Value]:
    """A parser from `units` as an argparse type, with the parser's own sentence as the error."""

    def read(text: str) -> Value:
        try:
            return parse(text, what)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return read


def count(what: str) -> Callable[[str], int]:
    """One count: `8k`, which is 8,192."""
    return reader(parse_count, what)


def amount(what: str) -> Callable[[str], int]:
    """An amount of work: `8k`, which is 8,000."""
    return reader(parse_amount, what)


def counts(what: str) -> Callable[[str], tuple[int, ...]]:
    """A comma list of counts: `1k,4k`."""
    return reader(parse_counts, what)


def size(what: str) -> Callable[[str], int]:
    """A size in bytes: `6GiB`, `512MiB`."""
    return reader(parse_size, what)


def seconds(what: str) -> Callable[[str], int]:
    """A time in whole seconds, at least one, at most a year."""
    return reader(parse_seconds, what)


def hours(what: str) -> Callable[[str], float]:
    """A time in hours, 0 included, at most a year."""
    return reader(parse_hours, what)


def share(what: str) -> Callable[[str], float]:
    """A share of a whole: above 0, at most 1."""
    return reader(parse_share, what)


def seed(text: str) -> int:
    """A seed as torch takes it: a whole number of 63 bits."""
    return reader(parse_seed, "--seed")(text)


def whole(what: str) -> Callable[[str], int]:
    """A whole number, 0 included."""
    return reader(parse_whole, what)


def pixels(what: str) -> Callable[[str], tuple[int, int]]:
    """Width and height in pixels: `448x448`, or one number for a square."""
    return reader(parse_pixels, what)


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL, with its weights."""
    parser.add_argument("model", metavar="MODEL", help="a model directory, a .gguf file or a hub id")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """How a model is loaded, and on what: what every command takes alike that runs one on this machine's device."""
    parser.add_argument(
        "--dtype",
        default="auto",
        help="dtype of the weights in memory (default: auto, the checkpoint's own; bfloat16 for GGUF)",
    )
    parser.add_argument(
        "--quantization",
        metavar="NAME",
        help="quantise the linear layers' weights while loading: torchao-int8wo, torchao-float8wo, bitsandbytes-int8, "
        "bitsandbytes-nf4 (default: none; a checkpoint's own quantisation is used as it is)",
    )
    parser.add_argument("--attn-implementation", metavar="NAME", help="sdpa, eager, ... (default: the model's)")
    add_device(parser)
    add_revision(parser)
    add_trust(parser, "the model")
    parser.add_argument(
        "--memory-limit",
        type=size("--memory-limit"),
        metavar="SIZE",
        help="run as on a device with so much memory, 6GiB or 6g: on a card it counts what torch's allocator reserves, "
        "on a CPU the weights and all that the process allocates beside them (default: the device's own)",
    )


def add_device(parser: argparse.ArgumentParser) -> None:
    """`--device`."""
    parser.add_argument("--device", default="auto", help="auto, cpu, cuda, cuda:N (default: auto)")


def add_revision(parser: argparse._ActionsContainer) -> None:
    """`--revision`."""
    parser.add_argument("--revision", help="branch, tag or commit of a hub id")


def add_trust(parser: argparse.ArgumentParser, whom: str) -> None:
    """`--trust-remote-code`, where code of the model is run."""
    parser.add_argument("--trust-remote-code", action="store_true", help=f"let {whom} run code of its own")


def add_cell_timeout(parser: argparse.ArgumentParser, what: str) -> None:
    """`--cell-timeout`; the text says what it ends."""
    parser.add_argument(
        "--cell-timeout", type=seconds("--cell-timeout"), metavar="SECONDS", default=900, help=f"{what} (default: 900)"
    )


def add_profile_output(parser: argparse.ArgumentParser) -> None:
    """`-o`, of a command that writes a profile."""
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: profiles/<model>.json")


def add_force(parser: argparse._ActionsContainer) -> None:
    """`--force`, of a command that writes a profile."""
    parser.add_argument("--force", action="store_true", help="replace the profile that is there")


def add_grid(
    parser: argparse.ArgumentParser, flags: tuple[str, ...], contexts: str, concurrencies: str, remark: str = ""
) -> None:
    """The cells of a run: the prompt lengths under these flags, `--concurrency`, `--new-tokens`. The texts say what
    stands for lists that are not given, and what new tokens cost."""
    parser.add_argument(
        *flags,
        type=counts(flags[0]),
        metavar="N[,N]",
        help=f"prompt lengths in tokens, 8k = 8192 (default: {contexts}, as far as the model's positions go)",
    )
    parser.add_argument(
        "--concurrency",
        "--batch-size",
        type=counts("--concurrency"),
        metavar="N[,N]",
        help=f"sequences at once (default: {concurrencies})",
    )
    parser.add_argument(
        "--new-tokens",
        type=count("--new-tokens"),
        metavar="N",
        default=8,
        help=f"tokens to generate for each sequence, prefill's included{remark} (default: 8)",
    )


def add_images(parser: argparse.ArgumentParser, none: str) -> None:
    """`--images`, `--image-size`; the text says what no images are."""
    parser.add_argument(
        "--images",
        type=whole("--images"),
        metavar="N",
        help=f"images in each sequence, for a model that takes images (default: 1); 0 {none}",
    )
    parser.add_argument(
        "--image-size",
        type=pixels("--image-size"),
        metavar="WxH",
        help="their size in pixels, for a model that takes any size (default: 448x448)",
    )


def add_logits_and_seed(parser: argparse.ArgumentParser) -> None:
    """`--keep-logits`, `--seed`."""
    parser.add_argument(
        "--keep-logits",
        choices=("last", "all"),
        default="last",
        help="logits kept by prefill: of the last position, as generate() does, or of all (default: last)",
    )
    parser.add_argument("--seed", type=seed, default=0, help="seed of the random token ids (default: 0)")


def add_catalog(parser: argparse.ArgumentParser) -> None:
    """`--catalog DIR`."""
    parser.add_argument(
        "--catalog",
        type=Path,
        metavar="DIR",
        help="a folder of cards and offers that add to and override the shipped ones",
    )


def add_scenario(parser: argparse.ArgumentParser, context: str, concurrency: str, new_tokens: str) -> None:
    """`--context`, `--concurrency`, `--new-tokens`; the texts say what stands for each that is not given."""
    parser.add_argument(
        "--context",
        "--max-model-len",
        type=count("--context"),
        metavar="N",
        help=f"tokens of each sequence, 8k = 8192 (default: {context})",
    )
    parser.add_argument(
        "--concurrency",
        "--batch-size",
        type=count("--concurrency"),
        metavar="N",
        help=f"sequences at once, 1k = 1024 (default: {concurrency})",
    )
    parser.add_argument(
        "--new-tokens",
        type=count("--new-tokens"),
        metavar="N",
        help=f"tokens generated on top of the context (default: {new_tokens})",
    )


def add_document(parser: argparse.ArgumentParser, formats: Collection[str] = FORMATS) -> None:
    """`--format`, `--json`, `--csv` where there is such a format, `-o`."""
    extensions = " ".join(one for one, name in EXTENSIONS.items() if name in formats)
    parser.add_argument(
        "--format", choices=tuple(formats), help="output format (default: table, or by the extension of -o)"
    )
    parser.add_argument("--json", dest="format", action="store_const", const="json", help="same as --format json")
    if "csv" in formats:
        parser.add_argument("--csv", dest="format", action="store_const", const="csv", help="same as --format csv")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help=f"write to FILE: {extensions}")


def chosen_format(arguments: argparse.Namespace) -> str:
    """The format asked for, by name or by the output's extension. Raises UsageError for an unknown extension."""
    return arguments.format or (format_for(str(arguments.output)) if arguments.output else "table")
