#!/usr/bin/env python3
"""Pictures of the reports on a profile or model, to be looked at: the page by Chromium, the workbook by LibreOffice.

    python scripts/look_at_reports.py profiles/model.json --context 8k --concurrency 16
    python scripts/look_at_reports.py Qwen3-32B --out DIR --engine vllm --tp 2

All but `--out DIR` (looks/ otherwise) goes to `gpufit fit`. Makes report.html and report.xlsx, and of them page-light,
page-dark, page-phone, page-print-N and workbook-N, each a .png. Ends with 2 where a program is missing, and with the
status of `gpufit fit` where that fails.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PROGRAMS = {
    "chromium": (("chromium", "chromium-browser", "google-chrome"), "chromium"),
    "soffice": (("soffice", "libreoffice"), "libreoffice-calc"),
    "pdftoppm": (("pdftoppm",), "poppler-utils"),
}
"""What is needed: the names it goes by, and the Debian package that has it."""

SCREEN, PHONE = 1280, 390
"""Widths in CSS pixels: a laptop's window, and a common phone held upright."""

_SILENT = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-features=NetworkTimeServiceQuerying,OptimizationHints,MediaRouter",
)
"""Chromium's own errands on the network."""

DARK = "--blink-settings=preferredColorScheme=0"
DOTS_PER_INCH = 80
SECONDS = 240

_CLOSED_TO_SCRIPTS = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
_TELL_SIZE = """<script>addEventListener("load", () => parent.postMessage(
  [document.documentElement.scrollWidth, document.documentElement.scrollHeight], "*"))</script></body>"""
_TELL_TABLES = """<script>addEventListener("load", () => {
  document.querySelectorAll("details").forEach(one => one.open = true);
  parent.postMessage([...document.querySelectorAll(".scroll")].map(one => one.scrollWidth - one.clientWidth), "*")
})</script></body>"""
_HEAR_SIZE = """<script>addEventListener("message", event => document.body.dataset.size = event.data)</script>"""


class MissingProgramError(Exception):
    """A program that draws is not on this machine; the text says which package has it."""


def find_program(name: str) -> str:
    """Where a program of PROGRAMS is. Raises MissingProgramError."""
    names, package = PROGRAMS[name]
    for one in names:
        if (found := shutil.which(one)) is not None:
            return found
    raise MissingProgramError(f"{' or '.join(names)} is not on PATH: apt-get install {package}")


def run_chromium(*options: str | Path) -> subprocess.CompletedProcess[str]:
    """Chromium without a window, on a profile of its own; what it says on standard error is kept."""
    fixed = ["--headless", "--disable-gpu", "--hide-scrollbars", "--no-first-run", *_SILENT]
    if os.geteuid() == 0:  # its sandbox refuses to run as root
        fixed.append("--no-sandbox")
    with tempfile.TemporaryDirectory() as folder:
        command = [find_program("chromium"), *fixed, f"--user-data-dir={folder}", *map(str, options)]
        return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)


def framed(page: Path, width: int, height: int, folder: Path) -> Path:
    """The page in a frame: Chromium's own window cannot be as narrow as a phone's."""
    frame = f'<iframe src="{page.resolve().as_uri()}" width="{width}" height="{height}" style="border:0"></iframe>'
    path = folder / "frame.html"
    path.write_text(f'<!DOCTYPE html><body style="margin:0">{_HEAR_SIZE}{frame}</body>', encoding="utf-8")
    return path


def page_size(page: Path, width: int) -> tuple[int, int]:
    """Width and height of what a page draws in a frame of a width, in CSS pixels; wider is a page that overflows."""
    size = told(page, width, _TELL_SIZE)
    return size[0], size[1]


def hidden_widths(page: Path, width: int) -> list[int]:
    """Of each table of a page in a frame of a width, how many CSS pixels of it are scrolled out of sight."""
    return told(page, width, _TELL_TABLES)


def told(page: Path, width: int, script: str) -> list[int]:
    """The numbers that a script at the end of a page sends, the page laid out in a frame of a width."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy = folder / "copy.html"
        text = _CLOSED_TO_SCRIPTS.sub("", page.read_text(encoding="utf-8"))
        copy.write_text(text.replace("</body>", script), encoding="utf-8")
        shown = run_chromium("--virtual-time-budget=3000", "--dump-dom", framed(copy, width, 800, folder).as_uri())
    size = re.search(r'data-size="([\d,]+)"', shown.stdout)
    if size is None:
        raise RuntimeError(f"chromium did not lay out {page}: {shown.stderr[-500:]}")
    return [int(one) for one in size[1].split(",")]


def photograph(page: Path, width: int, picture: Path, *options: str) -> None:
    """The whole page at a width."""
    _, height = page_size(page, width)
    with tempfile.TemporaryDirectory() as name:
        frame = framed(page, width, height, Path(name))
        run_chromium(*options, f"--window-size={width},{height}", f"--screenshot={picture.resolve()}", frame.as_uri())


def print_page(page: Path, pdf: Path) -> None:
    """The page as Chromium would print it."""
    run_chromium("--no-pdf-header-footer", f"--print-to-pdf={pdf.resolve()}", page.resolve().as_uri())


def convert(document: Path, kind: str, folder: Path) -> Path:
    """What LibreOffice makes of a document: `pdf`, or `xlsx` with its own values of every formula."""
    with tempfile.TemporaryDirectory() as home:
        command = [find_program("soffice"), f"-env:UserInstallation={Path(home).as_uri()}", "--headless"]
        command += ["--convert-to", kind, "--outdir", str(folder), str(document)]
        subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
    made = folder / f"{document.stem}.{kind}"
    if not made.exists():
        raise RuntimeError(f"{command[0]} made no {kind} of {document}")
    return made


def rasterise(pdf: Path, stem: Path) -> None:
    """A picture of every page of a PDF."""
    command = [find_program("pdftoppm"), "-r", str(DOTS_PER_INCH), "-png", str(pdf), str(stem)]
    subprocess.run(command, capture_output=True, timeout=SECONDS, check=True)


def draw(folder: Path) -> None:
    """Every picture of the report.html and report.xlsx in a folder."""
    page = folder / "report.html"
    photograph(page, SCREEN, folder / "page-light.png")
    photograph(page, SCREEN, folder / "page-dark.png", DARK)
    photograph(page, PHONE, folder / "page-phone.png")
    with tempfile.TemporaryDirectory() as name:
        pdf = Path(name) / "page.pdf"
        print_page(page, pdf)
        rasterise(pdf, folder / "page-print")
        rasterise(convert(folder / "report.xlsx", "pdf", Path(name)), folder / "workbook")


def main(arguments: list[str]) -> int:
    """Write the reports and draw them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0], allow_abbrev=False)
    parser.add_argument(
        "--out", type=Path, default=Path("looks"), metavar="DIR", help="where to write (default: looks)"
    )
    parser.add_argument("profile", metavar="PROFILE", help="a profile or model, as for `gpufit fit`")
    known, options = parser.parse_known_args(arguments)
    try:
        for name in PROGRAMS:
            find_program(name)
    except MissingProgramError as error:
        print(f"look_at_reports: {error}", file=sys.stderr)
        return 2
    known.out.mkdir(parents=True, exist_ok=True)
    for form in ("html", "xlsx"):
        fit = [sys.executable, "-m", "gpufit", "fit", known.profile, *options, "-o", str(known.out / f"report.{form}")]
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        status = subprocess.run(fit, env=os.environ | {"PYTHONPATH": path}, check=False).returncode
        if status not in (0, 1):  # 1: answered, and nothing fits
            return status
    draw(known.out)
    print("\n".join(str(path) for path in sorted(known.out.glob("*.png"))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
