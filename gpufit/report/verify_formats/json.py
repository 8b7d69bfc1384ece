"""A verification as JSON: whole bytes, null for what is not known, no NaN."""

from __future__ import annotations

import msgspec

from gpufit.report.verify_document import VerifyDocument

BINARY = False


def render_verify(document: VerifyDocument) -> bytes:
    """Indented JSON with a final newline; non-ASCII text stays readable."""
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
