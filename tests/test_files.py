"""Writing in one step: the old file or the new one, and nothing else in the folder."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from gpufit.errors import UnreadableInputError, UsageError, unreadable, unwritable
from gpufit.files import check_writable, remove_leftovers, sole_writer, write_atomically


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


def test_a_folder_that_had_to_be_made_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "out.json"
    assert [check_writable(path), check_writable(path)] == [path.parent, None]
    other = tmp_path / "c" / "out.json"
    assert [write_atomically(b"new", other), write_atomically(b"new", other)] == [other.parent, None]


@pytest.mark.parametrize(
    ("error", "read", "written"),
    [
        (PermissionError(13, "Permission denied"), "may not be read (permission denied)", "may not be written"),
        (FileNotFoundError(2, "No such file"), "no such file", "cannot be written (No such file)"),
        (IsADirectoryError(21, "Is a directory"), "a folder, not a file", "cannot be written (Is a directory)"),
        (OSError(5, "Input/output error"), "cannot be read (Input/output error)", "(Input/output error)"),
    ],
)
def test_what_the_system_says_is_told_in_plain_words(error: OSError, read: str, written: str) -> None:
    assert str(unreadable("a.toml", error)) == f"a.toml: {read}"
    said = str(unwritable("a.toml", error, "; nothing was changed"))
    assert written in said
    assert said.endswith("; nothing was changed")
    assert "Errno" not in f"{read}{said}"


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


KILLED_AT_A_STEP = """
import os, signal, sys
from pathlib import Path
from gpufit.files import write_atomically
step, seen = int(sys.argv[2]), 0
def count(event, arguments):
    global seen
    if event.split(".")[0] in ("open", "os", "shutil"):
        seen += 1
        if seen == step:
            os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(count)
write_atomically(b"new" * 100_000, Path(sys.argv[1]))
"""
"""Python announces each call that touches the file system before it makes it: the process ends itself there."""


def test_killed_before_any_step_of_a_write_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    found = []
    for step in range(1, 50):
        path.write_bytes(b"old")
        done = run_python(KILLED_AT_A_STEP, str(path), str(step))
        found.append(path.read_bytes())
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL
    assert done.returncode == 0
    assert set(found) == {b"old", b"new" * 100_000}
    assert found == sorted(found, key=lambda content: content != b"old")
    assert len(names_in(tmp_path)) > 1
    with sole_writer(path):
        remove_leftovers(path)
    assert names_in(tmp_path) == ["out.json"]


WRITING_FOR_EVER = """
import sys
from pathlib import Path
from gpufit.files import write_atomically
print("ready", flush=True)
while True:
    for content in (b"a" * 3_000_000, b"b" * 2_000_000):
        write_atomically(content, Path(sys.argv[1]))
"""


def test_killed_at_any_moment_of_many_writes_leaves_one_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_bytes(b"a" * 3_000_000)
    moments = random.Random(7)
    for _ in range(25):
        process = subprocess.Popen([sys.executable, "-c", WRITING_FOR_EVER, str(path)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(moments.uniform(0, 0.05))
        process.kill()
        process.communicate()
        content = path.read_bytes()
        assert content in (b"a" * 3_000_000, b"b" * 2_000_000)
    remove_leftovers(path)
    assert names_in(tmp_path) == ["out.json"]


def test_only_the_leftovers_of_this_very_file_are_removed(tmp_path: Path) -> None:
    # Two models of one family: their names agree far beyond the first twenty letters.
    first, second = tmp_path / "SmolLM2-135M-Instruct.Q4_1.json", tmp_path / "SmolLM2-135M-Instruct.Q8_0.json"
    others = [".hidden", ".SmolLM2-135M-Instruc.other", "notes.txt"]
    for name in others:
        (tmp_path / name).write_bytes(b"")
    for path in (first, second):
        path.write_bytes(b"old")
        before = names_in(tmp_path)
        step = 1
        while names_in(tmp_path) == before:  # until it is killed with its temporary file there
            run_python(KILLED_AT_A_STEP, str(path), str(step))
            step += 1
    (left_by_second,) = set(names_in(tmp_path)) - set(before)
    assert len(names_in(tmp_path)) == len(others) + 2 + 2
    remove_leftovers(first)
    assert set(names_in(tmp_path)) == {first.name, second.name, left_by_second, *others}


HOLDING = """
import sys
from pathlib import Path
from gpufit.files import sole_writer
with sole_writer(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def hold(path: Path) -> subprocess.Popen[str]:
    """A process that is the sole writer of a file until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_a_second_writer_is_refused_and_told_who_the_first_is(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_bytes(b"whole")
    link = tmp_path / "link.json"
    link.symlink_to(path)
    holder = hold(path)
    for name in (path, link):
        with pytest.raises(UsageError, match=f"process {holder.pid} is writing it"), sole_writer(name):
            pytest.fail("two writers at once")
    assert path.read_bytes() == b"whole"
    with sole_writer(tmp_path / "other.json"):
        pass
    holder.communicate("")
    with sole_writer(path):
        pass
    assert names_in(tmp_path) == ["link.json", "out.json"]


def test_a_writer_that_was_killed_leaves_no_stale_lock(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    holder = hold(path)
    holder.kill()
    holder.communicate()
    assert len(names_in(tmp_path)) == 1
    with sole_writer(path):
        remove_leftovers(path)
        with pytest.raises(UsageError, match=f"process {os.getpid()} is writing it"), sole_writer(path):
            pytest.fail("the lock itself was taken for a leftover")
    assert names_in(tmp_path) == []


TAKING_TURNS = """
import sys
from pathlib import Path
from gpufit.errors import UsageError
from gpufit.files import sole_writer
path, turns = Path(sys.argv[1]), 0
while turns < 200:
    try:
        with sole_writer(path):
            path.write_text(str(int(path.read_text()) + 1))
            turns += 1
    except UsageError:
        pass
"""


def test_writers_that_come_and_go_never_meet(tmp_path: Path) -> None:
    path = tmp_path / "count"
    path.write_text("0")
    processes = [subprocess.Popen([sys.executable, "-c", TAKING_TURNS, str(path)]) for _ in range(3)]
    assert [process.wait(timeout=60) for process in processes] == [0, 0, 0]
    assert path.read_text() == "600"
    assert names_in(tmp_path) == ["count"]


def test_the_longest_name_can_be_locked(tmp_path: Path) -> None:
    for name in ("n" * 255, "é" * 127):
        with sole_writer(tmp_path / name):
            assert len(names_in(tmp_path)) == 1
