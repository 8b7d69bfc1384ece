"""Writing in one step: the old file or the new one, and nothing else in the folder."""

from __future__ import annotations

import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from gpufit.errors import UnreadableInputError
from gpufit.files import check_writable, write_atomically


def names_in(folder: Path) -> list[str]:
    """What lies in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def run_python(code: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a piece of Python in a process of its own, since what it sets is set for the whole process."""
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=60)


def test_a_new_file_holds_exactly_the_content_and_missing_folders_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "out.json"
    write_atomically(b"\x00\xffcontent\n", path)
    assert path.read_bytes() == b"\x00\xffcontent\n"
    assert names_in(path.parent) == ["out.json"]


def test_an_old_file_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_bytes(b"old and longer than the new one")
    write_atomically(b"new", path)
    assert path.read_bytes() == b"new"
    assert names_in(tmp_path) == ["out.json"]


def test_an_open_reader_of_the_old_file_still_sees_the_old_one_whole(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_bytes(b"old")
    with path.open("rb") as reader:
        write_atomically(b"new", path)
        assert reader.read() == b"old"


FILE_SIZE_LIMIT = """
import resource, signal, sys
from pathlib import Path
from gpufit.errors import UnreadableInputError
from gpufit.files import write_atomically
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    write_atomically(b"x" * 8192, Path(sys.argv[1]))
except UnreadableInputError as error:
    print(error)
"""


@pytest.mark.parametrize("existed", [True, False])
def test_a_write_that_fails_half_way_leaves_the_old_file_and_no_litter(tmp_path: Path, existed: bool) -> None:
    path = tmp_path / "out.json"
    if existed:
        path.write_bytes(b"old")
    done = run_python(FILE_SIZE_LIMIT, str(path))
    assert done.stderr == ""
    assert done.stdout == f"{path}: cannot be written (File too large); nothing was changed\n"
    assert names_in(tmp_path) == (["out.json"] if existed else [])
    if existed:
        assert path.read_bytes() == b"old"


def test_a_file_where_a_folder_should_be_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"whole")
    path = tmp_path / "file" / "out.json"
    for write in (lambda: write_atomically(b"new", path), lambda: check_writable(path)):
        with pytest.raises(UnreadableInputError) as refused:
            write()
        assert str(refused.value).startswith(f"{path}: cannot be written (")
        assert "\n" not in str(refused.value)
    assert (tmp_path / "file").read_bytes() == b"whole"
    assert names_in(tmp_path) == ["file"]


def test_a_folder_is_never_replaced_by_a_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.mkdir()
    (path / "kept").write_bytes(b"")
    with pytest.raises(UnreadableInputError, match="it is a folder"):
        write_atomically(b"new", path)
    assert names_in(tmp_path) == ["out"]
    assert names_in(path) == ["kept"]


def test_a_link_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "out.json", tmp_path / "link.json"
    target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(b"new", link)
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert names_in(tmp_path / "real") == ["out.json"]


def test_a_private_file_stays_private(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_atomically(b"new", path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(("umask", "mode"), [("022", 0o644), ("077", 0o600)])
def test_a_new_file_gets_the_permissions_that_the_umask_leaves(tmp_path: Path, umask: str, mode: int) -> None:
    path = tmp_path / "out.json"
    code = (
        "import os, sys; from pathlib import Path; from gpufit.files import write_atomically;"
        "os.umask(int(sys.argv[2], 8)); write_atomically(b'new', Path(sys.argv[1]))"
    )
    assert run_python(code, str(path), umask).returncode == 0
    assert stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.parametrize("name", ["n" * 255, "é" * 127])
def test_the_longest_name_a_file_system_takes_can_be_written(tmp_path: Path, name: str) -> None:
    check_writable(tmp_path / name)
    write_atomically(b"new", tmp_path / name)
    assert (tmp_path / name).read_bytes() == b"new"


UNREADABLE_FOLDER = """
import os, sys
from pathlib import Path
from gpufit.files import write_atomically
if os.geteuid() == 0:
    os.setgid(65534); os.setuid(65534)
write_atomically(b"new", Path(sys.argv[1]))
print("written")
"""


def test_a_folder_that_cannot_be_synced_is_no_reason_to_call_a_written_file_unwritten() -> None:
    # A folder with write and search permission but no read permission: files can be made, the folder not opened.
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o333)
        path = Path(folder) / "out.json"
        done = run_python(UNREADABLE_FOLDER, str(path))
        Path(folder).chmod(0o700)
        assert (done.stdout, done.stderr) == ("written\n", "")
        assert path.read_bytes() == b"new"


def test_asking_whether_a_file_can_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "new" / "out.json"
    check_writable(path)
    assert names_in(path.parent) == []
    path.write_bytes(b"old")
    check_writable(path)
    assert path.read_bytes() == b"old"
    assert names_in(path.parent) == ["out.json"]
