"""Print the JSON Schema of a document or of a profile, made from the records that write them.

Each key says its unit in its name and what it means in its description.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gpufit.cli.diagnostics import ExitCode, say
from gpufit.cli.output import write_document

_DOCUMENTS = {
    "fit": "what `gpufit fit --json` writes (default)",
    "fits": "the same for several profiles or scenarios",
    "order": "what `gpufit order --json` writes",
    "compare": "what `gpufit compare --json` writes",
    "check": "what `gpufit check --json` writes",
    "verify": "what `gpufit verify --json` writes",
    "curve": "what key e of `gpufit tui` writes on that screen",
    "growth": "likewise",
    "precision": "likewise",
    "times": "likewise",
    "profiles": "likewise",
    "profile": "what `gpufit profile` writes",
}
"""Those of `report.schema`, named here so that help needs no records."""


def prepare_parser(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of `gpufit schema`."""
    parser.add_argument(
        "document",
        nargs="?",
        choices=tuple(_DOCUMENTS),
        default="fit",
        help="; ".join(f"{name}: {words}" for name, words in _DOCUMENTS.items()),
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to FILE")


def run(arguments: argparse.Namespace) -> int:
    """Write the schema."""
    import msgspec

    from gpufit.report.schema import schema_of

    schema = msgspec.json.encode(schema_of(arguments.document))
    write_document(msgspec.json.format(schema, indent=1) + b"\n", False, arguments.output)
    if arguments.output:
        say(f"wrote {arguments.output}")
    return ExitCode.ANSWERED
