"""Whatever happens to a file between two reads, a cached read says what an uncached one says.

Two clients of one session read through their caches while the file system is changed behind their backs in every way
that agents and their users do it: edits of the same size, renames over, restored times, links, checkouts, removals.
"""

import os
import random
import shutil
import time

import pytest

from memoryhub.client import directory, files

INTERLEAVINGS = int(os.environ.get("MEMORYHUB_INTERLEAVINGS") or 200)
NAMES = ("a", "b", "c")
TEXTS = ("one", "two", "six", "a longer text", "")


class World:
    """A folder, two cached readers of it, and the changes that may happen."""

    def __init__(self, root, make_client):
        self.root = root
        self.saved = root.parent / "saved"
        self.readers = [self.reader(make_client(session="interleaved", root=root)) for _ in range(2)]

    def reader(self, client):
        @client.tools.cached(name="read", version="1", depends_on=files("path"))
        def read(path):
            try:
                with open(path) as file:
                    return file.read()
            except OSError as error:
                return type(error).__name__

        @client.tools.cached(name="listing", version="1", depends_on=directory("path"))
        def listing(path):
            return sorted((e.name, e.is_symlink(), e.stat(follow_symlinks=False).st_size) for e in os.scandir(path))

        return read, listing

    def truth(self, path):
        try:
            with open(path) as file:
                return file.read()
        except OSError as error:
            return type(error).__name__

    def path(self, dice):
        return self.root / dice.choice(NAMES)

    def edit(self, dice):
        path = self.path(dice)
        if path.is_symlink() and not path.exists():
            path.unlink()
        path.write_text(dice.choice(TEXTS))

    def edit_keeping_times(self, dice):
        path = self.path(dice)
        if path.exists():
            found = path.stat()
            path.write_text(dice.choice(TEXTS))
            os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))

    def touch(self, dice):
        path = self.path(dice)
        if path.exists():
            moment = dice.choice([1, time.time() - 100, time.time(), time.time() + 1000])
            os.utime(path, (moment, moment))

    def rename(self, dice):
        source = self.path(dice)
        if source.exists() or source.is_symlink():
            os.replace(source, self.path(dice))

    def link(self, dice):
        path = self.path(dice)
        path.unlink(missing_ok=True)
        path.symlink_to(dice.choice([name for name in NAMES if name != path.name]))

    def remove(self, dice):
        self.path(dice).unlink(missing_ok=True)

    def save(self, dice):
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(self.root, self.saved, symlinks=True)

    def checkout(self, dice):
        """Everything goes back to what was saved, times included, as restores and some checkouts do it."""
        if self.saved.exists():
            for name in NAMES:
                (self.root / name).unlink(missing_ok=True)
            shutil.copytree(self.saved, self.root, symlinks=True, dirs_exist_ok=True)

    def grow_old(self, dice):
        """Files whose times are old enough to be trusted by their stat alone."""
        path = self.path(dice)
        if path.exists() and not path.is_symlink():
            os.utime(path, (time.time() - 500, time.time() - 500))


CHANGES = ("edit", "edit", "edit_keeping_times", "touch", "rename", "link", "remove", "save", "checkout", "grow_old")


@pytest.mark.slow
def test_a_cached_read_never_differs_from_an_uncached_one(tmp_path, make_client):
    root = tmp_path / "work"
    root.mkdir()
    world = World(root, make_client)
    dice = random.Random(20261129)
    for number in range(INTERLEAVINGS):
        done = []
        for _ in range(dice.randint(1, 3)):
            change = dice.choice(CHANGES)
            getattr(world, change)(dice)
            done.append(change)
        path = world.path(dice)
        for read, listing in world.readers:
            assert read(str(path)) == world.truth(path), (number, done)
            assert read(str(path)) == world.truth(path), (number, done)
            shown = [tuple(row) for row in listing(str(root))]
            assert shown == sorted(
                (e.name, e.is_symlink(), e.stat(follow_symlinks=False).st_size) for e in os.scandir(root)
            ), (number, done)
    hits = make_client(session="interleaved").tools.stats()["hits"]
    assert hits > INTERLEAVINGS / 4, "a cache that never hits proves nothing"
