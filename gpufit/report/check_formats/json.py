"""A check as JSON: whole bytes, seconds, null for what is not known, no NaN."""

from __future__ import annotations

import msgspec

from gpufit.report.check_document import CheckDocument

BINARY = False


def render_check(document: CheckDocument) -> bytes:
    """Indented JSON with a final newline; non-ASCII text stays readable."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
