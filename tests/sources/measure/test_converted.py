"""The converted copy of a GGUF file: made once, used again, never trusted when damaged, and never in the way."""

from __future__ import annotations

import errno
import fcntl
import importlib.util
import os
import shutil
import time
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
import torch
from model_files import SMOLLM2, need

from gpufit.datadir import converted_dir
from gpufit.profile.precision import DtypeShare
from gpufit.sources.measure.converted import (
    MANIFEST,
    MOST_COPIES,
    converted_bytes,
    in_a_process,
    is_whole,
    prepare,
)
from gpufit.sources.measure.protocol import Job
from gpufit.sources.model_files.find import find_model

WEIGHTS = b"w" * 5000


def job_of(path: Path, **changes: object) -> Job:
    settings: dict[str, object] = {
        "model_path": str(path.parent),
        "gguf_file": path.name,
        "model_name": "m",
        "model_source": str(path),
        "fingerprint": "0" * 64,
        "revision": None,
        "dtype": "auto",
        "attention": None,
        "device": "cpu",
        "seed": 0,
        "logits_kept": "last",
        "trust_remote_code": False,
        "stored": (),
    }
    return Job(**(settings | changes))


@dataclass
class Converter:
    """Stands in for the process that reads the file: writes a directory, and counts how often it had to."""

    calls: int = 0
    why: str | None = None
    before: Callable[[], None] = lambda: None
    said: list[str] = field(default_factory=list)

    def __call__(self, job: Job, folder: Path) -> str | None:
        self.calls += 1
        self.before()
        (folder / "config.json").write_text("{}")
        (folder / "model.safetensors").write_bytes(WEIGHTS)
        return self.why

    def prepare(self, job: Job) -> Job:
        return prepare(job, self.said.append, self)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF")
    return path


@pytest.fixture
def converter() -> Converter:
    return Converter()


def folders() -> list[str]:
    return sorted(path.name for path in converted_dir().iterdir())


def test_a_file_is_converted_once_and_loaded_from_its_copy_ever_after(source: Path, converter: Converter) -> None:
    job = job_of(source)
    first, second = converter.prepare(job), converter.prepare(job)
    assert converter.calls == 1
    assert first == second
    assert (first.gguf_file, first.dtype, first.notes) == (None, "bfloat16", ())
    assert sorted(path.name for path in Path(first.model_path).iterdir()) == [
        "config.json",
        MANIFEST,
        "model.safetensors",
    ]
    assert [text.split()[0] for text in converter.said] == ["converting", "loading", "loading"]
    assert all(first.model_path in text for text in converter.said)


def test_what_is_reported_of_the_model_is_still_the_file(source: Path, converter: Converter) -> None:
    job = job_of(source, stored=(DtypeShare(dtype="Q4_1", size_bytes=20, tensors=1),))
    copied = converter.prepare(job)
    for name in ("model_name", "model_source", "fingerprint", "stored"):
        assert getattr(copied, name) == getattr(job, name)


def test_each_dtype_and_each_file_has_a_copy_of_its_own(source: Path, converter: Converter) -> None:
    jobs = [job_of(source), job_of(source, dtype="fp32"), job_of(source, fingerprint="1" * 64)]
    assert len({converter.prepare(job).model_path for job in jobs}) == converter.calls == 3


def test_a_directory_is_left_alone_and_so_is_a_dtype_that_will_be_refused(source: Path, converter: Converter) -> None:
    for job in (job_of(source, gguf_file=None), job_of(source, dtype="../int8")):
        assert converter.prepare(job) == job
    assert (converter.calls, converter.said) == (0, [])


def test_where_blocks_may_stay_packed_nothing_is_converted(
    source: Path, converter: Converter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "kernels" else None)
    assert converter.prepare(job_of(source)) == job_of(source)


def cut_short(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(WEIGHTS[:-1])


def overwrite(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(WEIGHTS[:-1] + b"x")


def lose_a_file(folder: Path) -> None:
    (folder / "config.json").unlink()


def lose_the_manifest(folder: Path) -> None:
    (folder / MANIFEST).unlink()


def garble_the_manifest(folder: Path) -> None:
    (folder / MANIFEST).write_bytes(b"{")


def empty(folder: Path) -> None:
    shutil.rmtree(folder)
    folder.mkdir()


@pytest.mark.parametrize(
    "damage", [cut_short, overwrite, lose_a_file, lose_the_manifest, garble_the_manifest, empty, shutil.rmtree]
)
def test_a_damaged_copy_is_made_anew(source: Path, converter: Converter, damage: Callable[[Path], None]) -> None:
    folder = Path(converter.prepare(job_of(source)).model_path)
    damage(folder)
    assert not is_whole(folder, source)
    assert converter.prepare(job_of(source)).model_path == str(folder)
    assert converter.calls == 2
    assert is_whole(folder, source)
    assert folders() == [folder.name]


def test_a_file_that_was_written_again_is_converted_again(source: Path, converter: Converter) -> None:
    converter.prepare(job_of(source))
    os.utime(source, ns=(1, 1))
    converter.prepare(job_of(source))
    assert converter.calls == 2


def test_without_a_place_to_keep_it_the_file_itself_is_loaded_and_the_profile_says_so(
    source: Path, converter: Converter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(source))
    job = converter.prepare(job_of(source))
    assert (job.gguf_file, job.dtype) == ("m.gguf", "auto")
    assert job.notes == (
        f"no converted copy of the GGUF file could be kept ({source}/gpufit/converted: Not a directory): "
        "the load phase includes the conversion",
    )
    assert converter.calls == 0
    assert "loading m.gguf itself" in converter.said[-1]


def test_a_disk_with_too_little_room_is_not_filled(
    source: Path, converter: Converter, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, 639))
    # 200 bytes of Q4_1 are 10 blocks of 32 elements: 640 bytes in bfloat16.
    stored = (DtypeShare(dtype="Q4_1", size_bytes=200, tensors=1),)
    assert "639 B free" in converter.prepare(job_of(source, stored=stored)).notes[0]
    assert (converter.calls, folders()) == (0, [])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, 640))
    assert converter.prepare(job_of(source, stored=stored)).notes == ()


def test_the_size_of_a_copy_is_that_of_its_elements() -> None:
    stored = (
        DtypeShare(dtype="Q4_1", size_bytes=20 * 3, tensors=1),
        DtypeShare(dtype="Q8_0", size_bytes=34, tensors=1),
        DtypeShare(dtype="F32", size_bytes=8, tensors=1),
    )
    assert converted_bytes(job_of(Path("m.gguf"), stored=stored), "float32") == 4 * (3 * 32 + 32 + 2)


@pytest.mark.parametrize("full", [True, False])
def test_a_conversion_that_fails_leaves_nothing_behind(source: Path, converter: Converter, full: bool) -> None:
    def no_space() -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if full:
        converter.before = no_space
    else:
        converter.why = "converting ended with status 1: no such architecture"
    job = converter.prepare(job_of(source))
    assert job.gguf_file == "m.gguf"
    assert ("No space left" if full else "no such architecture") in job.notes[0]
    assert folders() == []


def test_of_two_processes_the_slower_one_takes_the_copy_of_the_faster(source: Path, converter: Converter) -> None:
    faster = Converter()
    converter.before = lambda: (faster.prepare(job_of(source)), None)[1]
    job = converter.prepare(job_of(source))
    assert (converter.calls, faster.calls, job.notes) == (1, 1, ())
    assert is_whole(Path(job.model_path), source)
    assert len(folders()) == 1


def test_only_the_copies_used_last_are_kept(source: Path, converter: Converter) -> None:
    for number in range(MOST_COPIES):
        folder = Path(converter.prepare(job_of(source, fingerprint=str(number) * 64)).model_path)
        os.utime(folder, (1000 + number, 1000 + number))
    converter.prepare(job_of(source, fingerprint="0" * 64))  # the oldest is used again, so the next one goes
    converter.prepare(job_of(source, fingerprint="9" * 64))
    assert [name[0] for name in folders()] == ["0", "2", "3", "9"]


def test_what_a_killed_process_left_is_cleared_away_after_a_day(source: Path, converter: Converter) -> None:
    converted_dir().mkdir(parents=True)
    old, young = converted_dir() / ".old", converted_dir() / ".young"
    for path, age in ((old, 25), (young, 23)):
        path.mkdir()
        (path / "model.safetensors").write_bytes(b"half")
        os.utime(path, (time.time() - age * 3600,) * 2)
    converter.prepare(job_of(source))
    assert (old.exists(), young.exists()) == (False, True)


def test_a_half_made_copy_that_nobody_works_on_is_cleared_away_at_once(source: Path, converter: Converter) -> None:
    left, in_work = converted_dir() / ".left", converted_dir() / ".in-work-elsewhere"
    for path in (left, in_work):
        path.mkdir(parents=True)
        (path / "model.safetensors").write_bytes(b"half")
        (path / ".in-work").touch()
    with (in_work / ".in-work").open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        converter.prepare(job_of(source))
    assert (left.exists(), in_work.exists()) == (False, True)


@pytest.mark.model
def test_a_file_that_cannot_be_converted_is_refused_in_a_few_words(source: Path, tmp_path: Path) -> None:
    why = in_a_process(job_of(source), tmp_path)
    assert why is not None
    assert why.startswith("converting ended with status 1: ")
    assert len(why) > len("converting ended with status 1: ")
    assert "\n" not in why
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.model
def test_the_copy_of_a_real_file_is_the_same_model_to_the_bit(
    model_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpufit.sources.measure import loading

    monkeypatch.setenv("XDG_CACHE_HOME", str(model_cache))
    files = find_model(str(need(SMOLLM2)))
    job = job_of(SMOLLM2, fingerprint=files.fingerprint, stored=files.stored)
    copied = prepare(job, lambda text: None)
    assert (copied.gguf_file, copied.notes) == (None, ())
    # 134,515,008 elements (test_profile_real), and what a GGUF file holds beside them for its rotary tables: nothing.
    assert converted_bytes(job, "bfloat16") == 2 * 134_515_008
    cpu = torch.device("cpu")
    direct, again = (loading.load(one, loading.plan_load(one), cpu) for one in (job, copied))
    assert type(direct) is type(again)
    for mine, theirs in (
        (direct.named_parameters(), again.named_parameters()),
        (direct.named_buffers(), again.named_buffers()),
    ):
        for (name, one), (other_name, other) in zip(mine, theirs, strict=True):
            assert (name, one.dtype, one.shape) == (other_name, other.dtype, other.shape)
            assert torch.equal(one.view(torch.uint8), other.view(torch.uint8))
    facts = (loading.position_limit, loading.sliding_window, lambda config: config._attn_implementation)
    assert [fact(direct.config) for fact in facts] == [fact(again.config) for fact in facts]
    assert msgspec.json.decode((Path(copied.model_path) / "config.json").read_bytes())["model_type"] == "llama"
