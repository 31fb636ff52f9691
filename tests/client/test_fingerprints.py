"""What a fingerprint notices: each change of a file or folder that could change a result."""

import os
import time

import pytest

from memoryhub.client.fingerprints import (
    Racy,
    directory,
    files,
    look_at_file,
    look_at_folder,
    tags,
    take_look,
    version,
)


@pytest.fixture
def old_file(tmp_path):
    """A file whose times are old enough to be trusted (its ctime is not: only the kernel sets that)."""
    path = tmp_path / "a.txt"
    path.write_text("one")
    os.utime(path, (time.time() - 100, time.time() - 100))
    return path


def replace(path):
    other = path.with_suffix(".new")
    other.write_text("one")
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.rename(path)


CHANGES = {
    "longer": lambda p: p.write_text("longer"),
    "same size": lambda p: p.write_text("two"),
    "gone": lambda p: p.unlink(),
    "older mtime": lambda p: os.utime(p, (1, 1)),
    "another file with the same size and mtime": replace,
    "a link to another file": lambda p: (p.rename(p.with_suffix(".x")), p.symlink_to(p.with_suffix(".x"))),
}


def same_size_and_mtime_restored(path):
    found = path.stat()
    path.write_text("two")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))


CHANGES["content changed, size and mtime restored"] = same_size_and_mtime_restored


@pytest.mark.parametrize("change", [name for name in CHANGES if "link" not in name])
def test_a_change_is_noticed(old_file, change):
    state = look_at_file(str(old_file))

    CHANGES[change](old_file)

    assert not state.is_unchanged()


def test_a_young_file_is_told_by_its_content(tmp_path):
    """Two writes inside one tick of the clock leave the same times; only the content differs."""
    path = tmp_path / "a.txt"
    path.write_text("one")
    state = look_at_file(str(path))
    assert state.sha256 is not None
    assert "mtime_ns" not in state.as_fingerprint()

    path.write_text("two")
    state.facts = look_at_file(str(path)).facts  # as if the clock had not moved between the two

    assert not state.is_unchanged()


def test_absence_is_a_fingerprint(tmp_path):
    state = look_at_file(str(tmp_path / "none"))
    assert state.as_fingerprint()["absent"] is True
    assert state.is_unchanged()

    (tmp_path / "none").write_text("")

    assert not state.is_unchanged()


@pytest.mark.parametrize(
    "change",
    [
        lambda d: (d / "new").write_text(""),
        lambda d: (d / "a").unlink(),
        lambda d: (d / "a").rename(d / "c"),
        lambda d: (d / "a").write_text("other"),
        lambda d: os.utime(d / "a", (1, 1)),
        lambda d: (d / "sub").rmdir(),
    ],
)
def test_a_listing_notices_what_it_shows(tmp_path, change):
    (tmp_path / "a").write_text("one")
    (tmp_path / "sub").mkdir()
    before = look_at_folder(str(tmp_path), contents=False)

    change(tmp_path)

    assert look_at_folder(str(tmp_path), contents=False) != before


def test_a_tree_notices_changes_far_below_and_refuses_to_judge_young_files(tmp_path, monkeypatch):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "f").write_text("one")
    with pytest.raises(Racy):
        look_at_folder(str(tmp_path), contents=True)
    monkeypatch.setattr("memoryhub.client.fingerprints._RACY_NS", 0)
    before = look_at_folder(str(tmp_path), contents=True)

    (deep / "g").write_text("")

    assert look_at_folder(str(tmp_path), contents=True) != before
    assert look_at_folder(str(tmp_path), contents=False) == look_at_folder(str(tmp_path), contents=False)


def test_spellings_of_a_path_are_one_dependency(old_file, monkeypatch):
    link = old_file.with_name("link")
    link.symlink_to(old_file)
    monkeypatch.chdir(old_file.parent)
    spellings = [str(old_file), "a.txt", "./a.txt", "../" + old_file.parent.name + "/a.txt", str(link), old_file]

    looks = [take_look(files("path"), {"path": spelling}).fingerprints[0]["path"] for spelling in spellings]

    assert set(looks) == {os.path.realpath(old_file)}


def test_rules_name_parameters_lists_and_fixed_things(old_file, tmp_path):
    look = take_look(
        (*files("paths", str(old_file)), *directory("where"), *tags("t"), *version("schema", lambda: "7")),
        {"paths": [str(tmp_path / "x"), tmp_path / "y"], "where": str(tmp_path)},
    )

    kinds = [(item["kind"], item.get("absent"), item.get("value")) for item in look.fingerprints]
    assert kinds == [
        ("file", True, None),
        ("file", True, None),
        ("file", None, None),
        ("directory", None, None),
        ("tag", None, None),
        ("version", None, "7"),
    ]
