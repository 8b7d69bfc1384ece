"""The question in one line: a slider for the context, one for the sequences at once, and what is held otherwise."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal

from gpufit.tui.renderables.header import held_line
from gpufit.tui.state import Axis, ViewState
from gpufit.tui.widgets.slider import Slider
from gpufit.tui.widgets.words import Words
from gpufit.units import format_tokens

MOST_AT_ONCE = 4096
LONGEST_ON_RAIL = 2**20
"""Where the rails end, the context's for models without a limit of their own; keys go on beyond them."""


class ScenarioBar(Horizontal):
    """Draws the question of a state."""

    def compose(self) -> ComposeResult:
        """Side by side."""
        yield Slider(Axis.CONTEXT, "context")
        yield Slider(Axis.CONCURRENCY, "at once")
        yield Words(id="held")

    def show(self, state: ViewState) -> None:
        """Draw it."""
        context, at_once = self.query(Slider)
        shape, longest = state.shape, state.longest_context
        rail = max(min(longest, LONGEST_ON_RAIL), shape.context_tokens)
        context.show(shape.context_tokens, rail, format_tokens(shape.context_tokens))
        at_once.show(shape.concurrency, max(MOST_AT_ONCE, shape.concurrency), f"{shape.concurrency:,}")
        self.query_one("#held", Words).update(held_line(state.held), layout=False)
