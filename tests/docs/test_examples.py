"""docs/examples: every command of a page, run in its order in one folder, says what stands there, byte for byte.

`UPDATE_EXAMPLES=1 pytest tests/docs/test_examples.py` writes the blocks and the order files anew.
"""

from __future__ import annotations

import datetime
import io
import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest
from model_files import REPOSITORY
from public_models import CONFIGS

from gpufit.advice.terms import Overheads, Volume, hours_for, shortest_term
from gpufit.advice.throughput import Throughput
from gpufit.catalog import store
from gpufit.cli import offers
from gpufit.cli.commands import catalog
from gpufit.cli.main import main
from gpufit.memory.terms import Shape

EXAMPLES = REPOSITORY / "docs" / "examples"
PAGES = ("chat-7b.md", "sharded-70b.md", "embedding-campaign.md")
MODELS = ("Qwen/Qwen3-8B", "meta-llama/Meta-Llama-3.1-70B", "Qwen/Qwen2-72B-Instruct")
DAY = datetime.date(2026, 11, 30)
"""The day that the pages name: prices age from it."""

BLOCK = re.compile(r"```console\n\$ (gpufit (?:[^\n]*\\\n)*[^\n]*)\n(.*?)```", re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?")
STATUS = '; echo "exit status $?"'
SHAPE = Shape(512, 0, 256)
UPDATE = os.environ.get("UPDATE_EXAMPLES") == "1"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the pages: models as their configs, a recorded profile, an offer book; no files of a user's own."""
    for name in MODELS:
        folder = tmp_path / name.split("/")[1]
        folder.mkdir()
        (folder / "config.json").write_text(json.dumps(CONFIGS[name]))
    (tmp_path / "profiles").mkdir()
    shutil.copy(REPOSITORY / "tests" / "facts" / "profiles" / "all-MiniLM-L6-v2.json", tmp_path / "profiles")
    shutil.copytree(EXAMPLES / "offers", tmp_path / "offers")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(store, "user_catalog_dir", lambda: tmp_path / "none")
    for module in (offers, catalog):
        monkeypatch.setattr(module, "today", lambda: DAY)
    return tmp_path


@pytest.mark.parametrize("name", PAGES)
def test_the_commands_say_what_stands_there(name: str, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = EXAMPLES / name
    text = page.read_text(encoding="utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) == text.count("```console\n")
    printed = [run(block[1], monkeypatch) for block in blocks]
    written = {made.name: made.read_text(encoding="utf-8") for made in here.glob("*.md")}
    assert list(written) == [f"{page.stem}.order.md"]
    if UPDATE:
        new = iter(printed)
        page.write_text(BLOCK.sub(lambda block: f"```console\n$ {block[1]}\n{next(new)}```", text), encoding="utf-8")
        for made, content in written.items():
            (EXAMPLES / made).write_text(content, encoding="utf-8")
    for block, said in zip(blocks, printed, strict=True):
        assert UPDATE or block[2] == said, block[1]
    for made, content in written.items():
        assert (EXAMPLES / made).read_text(encoding="utf-8") == content
    figures = set(numbers("".join([*(block[1] for block in blocks), *printed, *written.values()])))
    assert [told for told in numbers(told_in(text)) if told not in figures] == [], "figures that no command printed"


def numbers(text: str) -> list[str]:
    """Every number in a text: `1,180.00` as `1180`."""
    found = (number.rstrip(",").replace(",", "") for number in NUMBER.findall(text))
    return [re.sub(r"\.0+$", "", number) for number in found]


def told_in(text: str) -> str:
    """What a page tells in its own words: no block, link's target or table, no date, and no number of a check."""
    text = re.sub(r"```.*?```|\]\([^)]*\)|^\|.*?$", "", text, flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"\b\d+ November 2026|[Cc]heck \d\b", "", text)


def test_the_hours_of_a_throughput_are_those_of_an_order() -> None:
    """10,000,000 inputs by one worker: at 20 a second, 90 % of the time, 154.3 h, and 8 h beside them."""
    page = (EXAMPLES / "embedding-campaign.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([\d.]+) \| (\d+) days \|$", page, re.MULTILINE)
    assert len(rows) == 3
    for pace, shown, days in rows:
        took = Throughput(asked=SHAPE, cell=SHAPE, inputs_completed=int(pace), wall_seconds=1)
        hours = hours_for(Volume(inputs=10_000_000), took, 1, Overheads())
        assert (f"{hours.total_hours:.1f}", shortest_term(hours)) == (shown, int(days))


def test_every_page_is_linked() -> None:
    for page in PAGES:
        assert f"docs/examples/{page}" in (REPOSITORY / "README.md").read_text(encoding="utf-8")
        assert f"examples/{page}" in (REPOSITORY / "docs" / "ordering.md").read_text(encoding="utf-8")


def run(command: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a terminal shows of a command: both streams as they come, and the exit status where the line asks for it."""
    line = command.replace("\\\n", " ")
    terminal = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n", write_through=True)
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", terminal)
        patched.setattr(sys, "stderr", terminal)
        status = main(shlex.split(line.removesuffix(STATUS))[1:])
    assert isinstance(terminal.buffer, io.BytesIO)
    shown = terminal.buffer.getvalue().decode()
    if line.endswith(STATUS):
        return f"{shown}exit status {status}\n"
    assert status == 0, shown
    return shown
