"""The physical terms that memory grows by, and the shape they are evaluated at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpufit.profile.record import Phase, TermName


@dataclass(frozen=True)
class Shape:
    """A question to the memory model: how long, how many."""

    context_tokens: int
    """Prompt length of each sequence."""
    new_tokens: int
    """Tokens generated, the one that prefill yields included."""
    concurrency: int
    """Sequences at once."""

    @property
    def cached_tokens(self) -> int:
        """Tokens a sequence holds in its cache at the end: the last generated token is never fed back."""
        return self.context_tokens + max(self.new_tokens - 1, 0)

    def tokens_in(self, phase: Phase) -> int:
        """Sequence length that rules a phase: the prompt, or in decode all cached tokens."""
        return self.cached_tokens if phase is Phase.DECODE else self.context_tokens

    @property
    def total_tokens(self) -> int:
        """Tokens of all sequences together at the end."""
        return self.cached_tokens * self.concurrency


Term = Callable[[int, int, int], float]
"""(concurrency, tokens of a sequence, sliding window or 0) -> units of the term."""

TERMS: Mapping[TermName, Term] = {
    "constant": lambda batch, tokens, window: 1.0,
    "per_sequence": lambda batch, tokens, window: float(batch),
    "per_token": lambda batch, tokens, window: float(batch * tokens),
    "per_token_in_window": lambda batch, tokens, window: float(batch * min(tokens, window)),
    "per_token_squared": lambda batch, tokens, window: float(batch * tokens * tokens),
}
"""Every term by its name in a profile. All of them grow, or stay, with more sequences and with longer ones."""


def terms_for(part: str, phase: Phase, window: int | None, scores: bool) -> tuple[TermName, ...]:
    """Names of the terms that a part of a phase can grow by.

    Weights and buffers are constant. `scores` says that attention keeps its scores, which grow with tokens squared
    while a prompt is read; a decode step has one row of scores a sequence.
    """
    if part in ("weights_bytes", "buffers_bytes"):
        return ("constant",)
    names: list[TermName] = ["constant", "per_sequence", "per_token"]
    if window:
        names.append("per_token_in_window")
    if scores and phase is not Phase.DECODE:
        names.append("per_token_squared")
    return tuple(names)
