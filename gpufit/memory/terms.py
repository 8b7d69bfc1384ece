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
    "mask": lambda batch, tokens, window: float(tokens * tokens),
}
"""Every term by its name in a profile. All of them grow, or stay, with more sequences and with longer ones."""


CURVES: tuple[tuple[TermName, ...], ...] = ((), ("mask",), ("per_token_squared",), ("per_token_squared", "mask"))
"""What may grow with tokens squared while a prompt is read: nothing, a mask that all sequences share, the scores of
every sequence, or both. A decode step has one row of them a sequence."""


def terms_for(part: str, window: int | None, curve: tuple[TermName, ...] = ()) -> tuple[TermName, ...]:
    """Names of the terms that a part can grow by, with one of CURVES; weights and buffers are constant."""
    if part in ("weights_bytes", "buffers_bytes"):
        return ("constant",)
    in_window: tuple[TermName, ...] = ("per_token_in_window",) if window else ()
    return ("constant", "per_sequence", "per_token", *in_window, *curve)
