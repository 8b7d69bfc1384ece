"""What the interface remembers from one run to the next; reading and writing is all that happens here."""

from __future__ import annotations

from pathlib import Path

import msgspec

from gpufit.errors import UnreadableInputError
from gpufit.files import write_atomically
from gpufit.tui.listing import Listing
from gpufit.tui.state import Axis, View

VERSION = 1
_MOST_SCENARIOS = 200


class KeptShape(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario that was looked at last."""

    context_tokens: int
    concurrency: int
    new_tokens: int


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """The last view of things; a profile's scenario by the whole path of its file."""

    version: int = VERSION
    theme: str | None = None
    view: View = View.CARDS
    axis: Axis = Axis.CONTEXT
    listing: Listing = msgspec.field(default_factory=Listing)
    scenarios: dict[str, KeptShape] = msgspec.field(default_factory=dict)

    def with_scenario(self, where: str, shape: KeptShape) -> Kept:
        """The same with one profile's scenario as the newest; the oldest are forgotten."""
        others = {key: one for key, one in self.scenarios.items() if key != where}
        newest = dict(list({**others, where: shape}.items())[-_MOST_SCENARIOS:])
        return msgspec.structs.replace(self, scenarios=newest)


def load_kept(path: Path) -> tuple[Kept, str | None]:
    """What was kept, and in words why not, where a file is there that cannot be used: nothing is lost by that."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return Kept(), None
    except OSError as error:
        return Kept(), f"{path}: what was kept of the last run cannot be read ({error.strerror})"
    try:
        kept = msgspec.json.decode(content, type=Kept)
    except msgspec.DecodeError:
        return Kept(), f"{path}: what was kept of the last run is damaged, and starts anew"
    return (kept, None) if kept.version == VERSION else (Kept(), None)


def save_kept(kept: Kept, path: Path) -> str | None:
    """Keep it; in words why not, where the file cannot be written."""
    try:
        write_atomically(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n", path)
    except UnreadableInputError as error:
        return str(error)
    return None
