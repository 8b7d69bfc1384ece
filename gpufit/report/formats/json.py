"""The document itself as JSON: whole bytes, null for what is not known, no NaN."""

from __future__ import annotations

import msgspec

from gpufit.report.document import FitDocument
from gpufit.report.fits_document import FitsDocument

BINARY = False


def render_fit(document: FitDocument) -> bytes:
    """Indented JSON with a final newline; non-ASCII text stays readable."""
    return _indented(document)


def render_fits(documents: FitsDocument) -> bytes:
    """The same of several questions: a list of such documents, and the cards for all scenarios of a profile."""
    return _indented(documents)


def _indented(document: FitDocument | FitsDocument) -> bytes:
    return msgspec.json.format(msgspec.json.encode(document), indent=1) + b"\n"
