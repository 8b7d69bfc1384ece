"""`gpufit catalog`: list, show, check, path."""

from __future__ import annotations

import json
from pathlib import Path

from conftest import Run


def test_list_has_a_line_for_every_card(gpufit: Run) -> None:
    done = gpufit("catalog", "list")
    assert done.code == 0
    lines = done.stdout.splitlines()
    assert len(lines) == 2 + 41
    (b200,) = [line.split() for line in lines if line.startswith("b200-sxm-180gb")]
    assert b200[1:3] == ["180", "178.34"]
    assert b200[-1] == "2"


def test_list_as_json(gpufit: Run) -> None:
    cards = json.loads(gpufit("catalog", "list", "--json").stdout)
    assert len(cards) == 41
    assert all(card["sources"] for card in cards)


def test_show_has_figures_and_sources(gpufit: Run) -> None:
    done = gpufit("catalog", "show", "H100 PCIe")
    assert done.code == 0
    assert "planning_torch_gib: 79.11" in done.stdout
    assert "bandwidth_gb_s: 2000" in done.stdout
    assert "sources:" in done.stdout
    assert "(" not in done.stdout.split("device_names:")[1].splitlines()[0]


def test_check_reads_everything(gpufit: Run) -> None:
    done = gpufit("catalog", "check")
    assert done.code == 0
    assert done.stdout.startswith("41 cards")


def test_check_finds_a_fault_and_names_it(gpufit: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('schema_version = 1\n[x]\nvendor = "NVIDIA"\nname = "X"\ncolour = "red"\n')
    done = gpufit("catalog", "check", "--catalog", tmp_path)
    assert done.code == 3
    assert "mine.toml" in done.error
    assert "colour" in done.error


def test_path_names_the_folders(gpufit: Run) -> None:
    lines = gpufit("catalog", "path").stdout.splitlines()
    assert Path(lines[0]).is_dir()
    assert lines[1].endswith("(not there)")
