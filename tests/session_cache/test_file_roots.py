"""What the hub sees by itself below its allowed folders: files, folders, everything below them, and absence."""

import os
import random

import pytest

from memoryhub.client import fingerprints
from memoryhub.client.fingerprints import look_at_file, look_at_folder
from memoryhub.invalidation.domain.dependency import Match, compare, parse_dependency
from memoryhub.session_cache.services import file_roots


@pytest.fixture
def root(tmp_path, settings):
    """A folder that the hub may see, with old files in folders."""
    root = tmp_path / "root"
    (root / "src" / "deep").mkdir(parents=True)
    for name in ("a", "src/b", "src/deep/c"):
        (root / name).write_text(name)
    settings.FILE_ROOTS = [str(root)]
    return root


@pytest.fixture(autouse=True)
def _nothing_is_young(monkeypatch):
    """A file can't be made old, for its ctime is set by the kernel: the rule for young files is moved instead."""
    monkeypatch.setattr(fingerprints, "_RACY_NS", -int(1e12))
    monkeypatch.setattr(file_roots, "RACY_SECONDS", -1000.0)


def folder(path, *, contents=False):
    return look_at_folder(str(path), contents=contents)


def verdict(raw):
    """What the hub's own look says about a stored dependency."""
    stored = parse_dependency(raw)
    seen = file_roots.look_at([stored]).get(stored.identity)
    return "not seen" if seen is None else compare(stored, seen).value


CHANGES = {
    "nothing": lambda root: None,
    "a new file": lambda root: (root / "src" / "new").write_text("x"),
    "a file goes": lambda root: (root / "src" / "b").unlink(),
    "a file is longer": lambda root: (root / "src" / "b").write_text("longer"),
    "a deep file is longer": lambda root: (root / "src" / "deep" / "c").write_text("longer"),
    "a deep file is new": lambda root: (root / "src" / "deep" / "d").write_text("x"),
    "the folder goes": lambda root: os.rename(root / "src", root / "gone"),
    "the folder is a file": lambda root: (os.rename(root / "src", root / "gone"), (root / "src").write_text("x")),
}
IN_LISTING = {
    "a new file",
    "a file goes",
    "a file is longer",
    "a deep file is new",
    "the folder goes",
    "the folder is a file",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_listing_is_proven_or_contradicted(root, change):
    stored = folder(root / "src")

    CHANGES[change](root)

    assert verdict(stored) == ("different" if change in IN_LISTING else "hash")


@pytest.mark.parametrize("change", CHANGES)
def test_a_tree_is_proven_or_contradicted(root, change):
    stored = folder(root / "src", contents=True)

    CHANGES[change](root)

    assert verdict(stored) == ("hash" if change == "nothing" else "different")


@pytest.mark.parametrize("contents", [False, True])
def test_a_hash_of_which_nobody_says_what_it_is_of_is_only_ever_proven(root, contents):
    """Another caller may hash folders by a rule of its own: a difference says nothing then."""
    stored = {name: value for name, value in folder(root / "src", contents=contents).items() if name != "recursive"}

    assert verdict(stored) == "hash"
    (root / "src" / "new").write_text("x")
    assert verdict(stored) == "not seen"


def test_absence_is_seen(root):
    no_file, no_folder = root / "none", root / "nowhere"
    stored = [look_at_file(str(no_file)).as_fingerprint(), folder(no_folder)]
    assert [verdict(raw) for raw in stored] == ["fingerprint", "fingerprint"]

    no_file.write_text("x")
    no_folder.mkdir()

    assert [verdict(raw) for raw in stored] == ["different", "different"]


def test_a_path_below_a_file_is_absent(root):
    below = look_at_file(str(root / "a" / "x")).as_fingerprint()

    assert below["absent"]
    assert verdict(below) == "fingerprint"


def test_a_folder_without_any_look_proves_nothing(root):
    assert verdict({"kind": "directory", "path": str(root / "src")}) == "not seen"


def test_nothing_outside_is_looked_at_even_by_a_link(root, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "link").symlink_to(outside)

    assert verdict(folder(outside)) == "not seen"
    assert verdict({**folder(outside), "path": str(root / "link")}) == "not seen"
    assert verdict({"kind": "file", "path": str(root / "link" / "x"), "absent": True}) == "not seen"


def test_no_roots_see_nothing(root, settings):
    settings.FILE_ROOTS = []

    assert verdict(folder(root / "src")) == "not seen"


def test_one_look_up_looks_at_a_bounded_number_of_entries_and_bytes(root, monkeypatch):
    tree, content = folder(root, contents=True), {**look_at_file(str(root / "a"), with_hash=True).as_fingerprint()}
    assert [verdict(tree), verdict(content)] == ["hash", "hash"]

    monkeypatch.setattr(
        file_roots._Budget, "__init__", lambda self: (setattr(self, "entries", 3), setattr(self, "bytes", 0))[0]
    )

    assert [verdict(tree), verdict(content)] == ["not seen", "not seen"]


def test_a_young_file_below_a_tree_decides_nothing(root, monkeypatch):
    stored = folder(root, contents=True)
    monkeypatch.setattr(file_roots, "RACY_SECONDS", 2.0)
    (root / "src" / "b").write_text("x")

    assert verdict(stored) == "not seen"


@pytest.mark.parametrize("seed", range(30))
def test_the_hub_and_the_client_see_the_same(tmp_path, settings, seed):
    """Random trees with links, odd names, empty folders and folders in folders."""
    dice = random.Random(seed)
    settings.FILE_ROOTS = [str(tmp_path)]
    folders = [tmp_path]
    for number in range(dice.randint(0, 25)):
        name = dice.choice(["f", "ü", " ", "~", "a\nb", "\udc80x"]) + str(number)
        path = dice.choice(folders) / name
        what = dice.random()
        if what < 0.3:
            path.mkdir()
            folders.append(path)
        elif what < 0.5:
            path.symlink_to(dice.choice(["nowhere", "..", str(dice.choice(folders))]))
        else:
            path.write_bytes(dice.randbytes(dice.randint(0, 50)))
    for path in folders:
        for contents in (False, True):
            seen = folder(path, contents=contents)
            if "\udc80" not in str(path):
                assert compare(*two(seen)) is Match.PROVEN_BY_HASH
            assert seen["sha256"] == file_roots.folder_hash(str(path), contents=contents)


def two(raw):
    stored = parse_dependency(raw)
    return stored, file_roots.look_at([stored])[stored.identity]
