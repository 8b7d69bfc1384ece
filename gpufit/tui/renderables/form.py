"""A form's lines: what a field is called, the word chosen in it, and the command that asks for the same."""

from __future__ import annotations

from rich.text import Text

from gpufit.advice.verdict import Verdict
from gpufit.tui.renderables.palette import DIM, PLAIN, SELECTED_BACKGROUND, STRONG, VERDICT_STYLES

LEFT, RIGHT = "<", ">"


def choice(chosen: str, focused: bool) -> Text:
    """`< auto >`; the signs stand out where the keys go to."""
    signs = STRONG if focused else DIM
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"{LEFT} ", signs).append(chosen, PLAIN).append(f" {RIGHT}", signs)
    if focused:
        text.stylize(f"on {SELECTED_BACKGROUND}")
    return text


def field_title(title: str, wrong: bool) -> Text:
    """What a field is called; one that cannot be understood has a mark that reads without colour."""
    return Text(f"! {title}" if wrong else title, VERDICT_STYLES[Verdict.DOES_NOT_FIT] if wrong else DIM)


def command_line(command: str, why_not: str) -> Text:
    """The command that asks for the same; above it what is wrong, where something is."""
    text = Text()
    if why_not:
        text.append(f"! {why_not}\n", VERDICT_STYLES[Verdict.DOES_NOT_FIT])
    return text.append("$ ", DIM).append(command, PLAIN)
