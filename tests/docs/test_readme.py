"""The README's examples are real output: the command that stands there, run again, says the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from model_files import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```console\n\$ (gpufit (?:fit|estimate) [^\n]+)\n(.*?)\n```", README, re.DOTALL)


def test_the_readme_has_an_example() -> None:
    assert EXAMPLES


@pytest.mark.parametrize(("command", "shown"), EXAMPLES)
def test_an_example_is_what_the_command_prints(
    command: str, shown: str, run_shown: Callable[[str], tuple[int, str]]
) -> None:
    assert run_shown(command) == (0, shown + "\n")


@pytest.mark.parametrize("table", ["summary_table", "formula_table"])
def test_the_accuracy_tables_are_those_of_the_benchmark(table: str) -> None:
    from benchmarks import accuracy_tables

    assert getattr(accuracy_tables, table)() in README
    assert "\n".join(accuracy_tables.verdict_lines()) in README


def test_every_link_to_a_file_leads_to_one() -> None:
    for target in re.findall(r"\]\(((?!https?:)[^)#]+)\)", README):
        assert (REPOSITORY / target).exists(), target


def test_the_profile_narration_is_that_of_the_recorded_profile() -> None:
    from gpufit.profile.cells import Skipped
    from gpufit.profile.store import load_profile
    from gpufit.report.run_text import cell_line, summary_lines

    recorded = REPOSITORY / "tests" / "facts" / "profiles" / "SmolLM2-135M-Instruct.Q4_1.json"
    profile = load_profile(recorded)
    ran, left_out = profile.measured_cells, profile.cells[len(profile.measured_cells) :]
    lines = [f"[{number}/{len(ran)}] {cell_line(cell)}" for number, cell in enumerate(ran, start=1)]
    assert isinstance(left_out[0].outcome, Skipped)
    lines += [f"adaptive: {left_out[0].outcome.why}", *summary_lines(profile, Path("profiles") / recorded.name)]
    assert "\n".join(lines) in README
