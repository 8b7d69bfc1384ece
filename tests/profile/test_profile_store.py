from __future__ import annotations

import os
from pathlib import Path

import pytest
from builders import make_cell, make_profile

from gpufit.errors import UnreadableInputError
from gpufit.files import _temporary, remove_leftovers
from gpufit.profile import codec
from gpufit.profile.store import find_profiles, load_profile, save_profile


def names_in(folder: Path) -> list[str]:
    """What lies in a folder, hidden files included."""
    return sorted(path.name for path in folder.iterdir())


def test_what_was_saved_is_loaded_again_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "profiles" / "tiny.json"
    save_profile(make_profile(), path)
    assert load_profile(path) == make_profile()
    assert names_in(path.parent) == ["tiny.json"]


def test_saving_after_each_cell_replaces_the_earlier_state(tmp_path: Path) -> None:
    path = tmp_path / "tiny.json"
    for count in range(3):
        save_profile(make_profile(cells=tuple(make_cell(128, n + 1) for n in range(count))), path)
    assert len(load_profile(path).cells) == 2


def test_a_file_that_is_missing_or_a_folder_or_too_long_is_named_in_one_line(tmp_path: Path) -> None:
    for path, said in (
        (tmp_path / "none.json", "no such file"),
        (tmp_path, "a folder, not a file"),
        (tmp_path / ("n" * 300), "cannot be read (File name too long)"),
    ):
        with pytest.raises(UnreadableInputError) as refused:
            load_profile(path)
        assert str(refused.value) == f"{path}: {said}"


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "half.json"
    save_profile(make_profile(), path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(UnreadableInputError, match=r"half\.json: not a profile"):
        load_profile(path)


def test_a_profile_that_cannot_be_saved_says_so_and_the_old_one_stays(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UnreadableInputError, match="cannot be written"):
        save_profile(make_profile(), tmp_path / "file" / "tiny.json")


def test_profiles_are_found_newest_first(tmp_path: Path) -> None:
    for age, name in enumerate(("c.json", "a.json", "b.json")):
        (tmp_path / name).write_bytes(b"{}")
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    (tmp_path / "notes.txt").write_bytes(b"")
    assert [path.name for path in find_profiles(tmp_path)] == ["c.json", "a.json", "b.json"]


def test_a_folder_that_does_not_exist_holds_no_profiles(tmp_path: Path) -> None:
    assert find_profiles(tmp_path / "none") == ()


def test_dangling_links_folders_and_half_written_files_are_not_profiles(tmp_path: Path) -> None:
    (tmp_path / "gone.json").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.json").mkdir()
    (tmp_path / ".tiny.json.0123456789abcdef").write_bytes(b"{")
    (tmp_path / "tiny.json").write_bytes(b"{}")
    assert [path.name for path in find_profiles(tmp_path)] == ["tiny.json"]


def test_a_write_that_was_cut_short_costs_neither_the_file_nor_the_next_save(tmp_path: Path) -> None:
    """What a kill in the middle of a write leaves is a hidden file of any length: nobody reads it as the profile."""
    path = tmp_path / "tiny.json"
    old, new = make_profile(cells=(make_cell(128, 1),)), make_profile()
    save_profile(new, path)
    whole = path.read_bytes()
    save_profile(old, path)
    for length in {0, 1, *range(2, len(whole), len(whole) // 20), len(whole)}:
        _temporary(path).write_bytes(whole[:length])
        assert find_profiles(tmp_path) == (path,)
        assert load_profile(path) == old
    save_profile(new, path)
    assert load_profile(path) == new
    assert len(names_in(tmp_path)) > 20
    remove_leftovers(path)
    assert names_in(tmp_path) == ["tiny.json"]


def test_a_profile_cut_at_any_byte_is_never_taken_for_a_whole_one(tmp_path: Path) -> None:
    whole = codec.encode(make_profile()).rstrip()
    assert codec.decode(whole, "whole") == make_profile()
    for length in range(len(whole)):
        with pytest.raises(UnreadableInputError, match="cut"):
            codec.decode(whole[:length], "cut")


def test_a_models_config_in_place_of_a_profile_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "llama-8b.json"
    path.write_text('{"model_type": "llama", "architectures": ["LlamaForCausalLM"]}')
    with pytest.raises(UnreadableInputError, match=r"llama-8b\.json: the config of a model, not a profile: call it"):
        load_profile(path)
