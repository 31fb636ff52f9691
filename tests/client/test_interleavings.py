"""Whatever happens to files between two reads, a cached read says what an uncached one says.

Two clients of one session, each with a front cache of its own, read through their caches while the file system is changed
behind their backs in every way that agents and their users do it: edits of the same size, renames over, restored times,
links to files and folders, checkouts of many files at once, removals; and by write tools that one of the clients runs.
"""

import os
import random
import shutil
import time

import pytest

from memoryhub.client import directory, files, fingerprints, tree

INTERLEAVINGS = int(os.environ.get("MEMORYHUB_INTERLEAVINGS") or 200)
NAMES = ("a", "b", "c", "d1/a", "d1/b", "d2/a", "d2/b", "way/a")  # way leads to d1 or d2
MANY = tuple(f"d1/many-{number}" for number in range(30))
TEXTS = ("one", "two", "six", "a longer text", "")
OLD_ENOUGH_NS = (
    int(0.03e9),
    int(2e9),
)  # told by times alone after this: three ticks of this kernel's clock, or as shipped


class Reader:
    """One client's tools. Each is compared with the same function without a cache."""

    def __init__(self, client, root):
        self.front = client.tools.front
        self.root = root
        options = {"session": "interleaved", "version": "1"}
        cached = client.tools.cached
        self.tools = [
            (read, cached(read, name="read", depends_on=files("path"), **options)),
            (listing, cached(listing, name="listing", depends_on=directory("path"), **options)),
            (search, cached(search, name="search", depends_on=tree("path"), **options)),
        ]
        self.note = cached(lambda: self.blackboard().read_text(), name="note", ttl=600, **options)
        self.write_note = client.tools.writes("note", name="write_note", session="interleaved")(
            lambda text: self.blackboard().write_text(text)
        )

    def blackboard(self):
        return self.root.parent / "blackboard"


def read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError as error:
        return type(error).__name__


def listing(path):
    try:
        return sorted([e.name, e.is_symlink(), e.stat(follow_symlinks=False).st_size] for e in os.scandir(path))
    except OSError as error:
        return type(error).__name__


def search(path):
    """What a grep over a folder finds: every file's text."""
    return sorted(
        [os.path.relpath(os.path.join(folder, name), path), read(os.path.join(folder, name))]
        for folder, _, names in os.walk(path)
        for name in names
    )


class World:
    """A folder and the changes that may happen to it."""

    def __init__(self, root):
        self.root, self.saved = root, root.parent / "saved"
        for folder in ("d1", "d2"):
            (root / folder).mkdir(parents=True)
        (root / "way").symlink_to("d1")
        for name in MANY:
            (root / name).write_text("many")

    def path(self, dice, names=NAMES):
        return self.root / dice.choice(names)

    def edit(self, dice):
        path = self.path(dice)
        if path.is_symlink() and not path.exists():
            path.unlink()
        path.write_text(dice.choice(TEXTS))

    def edit_keeping_times(self, dice):
        path = self.path(dice, (*NAMES, *MANY))
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
        path.symlink_to(dice.choice([name for name in "abc" if name != path.name]))

    def lead_elsewhere(self, dice):
        """A link to a folder is pointed at another one, whose file of the same name may look alike."""
        new = self.root / "new-way"
        new.symlink_to(dice.choice(["d1", "d2"]))
        os.replace(new, self.root / "way")

    def remove(self, dice):
        self.path(dice).unlink(missing_ok=True)

    def save(self, dice):
        shutil.rmtree(self.saved, ignore_errors=True)
        shutil.copytree(self.root, self.saved, symlinks=True)

    def check_out(self, dice):
        """Everything goes back to what was saved, times included, as restores and some checkouts do it."""
        if self.saved.exists():
            for name in (*NAMES, *MANY):
                (self.root / name).unlink(missing_ok=True)
            (self.root / "way").unlink(missing_ok=True)
            shutil.copytree(self.saved, self.root, symlinks=True, dirs_exist_ok=True)

    def edit_many(self, dice):
        """Many files at once, the same size, with the times that they had."""
        text = dice.choice(["many", "more", "most"])
        for name in MANY:
            path = self.root / name
            if path.exists():
                found = path.stat()
                path.write_text(text)
                os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))

    def grow_old(self, dice):
        """Files whose times are old enough to be trusted by their stat alone."""
        path = self.path(dice)
        if path.exists() and not path.is_symlink():
            os.utime(path, (time.time() - 500, time.time() - 500))
            time.sleep(2 * OLD_ENOUGH_NS[0] / 1e9)


CHANGES = (
    "edit", "edit", "edit_keeping_times", "touch", "rename", "link", "lead_elsewhere", "remove", "save", "check_out",
    "edit_many", "grow_old",
)  # fmt: skip


def wait_until_heard(reader, heard):
    deadline = time.monotonic() + 15
    while reader.front.announcements == heard:
        assert time.monotonic() < deadline, "the event did not arrive"
        time.sleep(0.002)


def write_by_tool(readers, dice, number):
    """One client writes; it sees that at once, the other one as soon as the event has arrived."""
    writer, other = dice.sample(readers, 2)
    heard = other.front.announcements
    writer.write_note(f"note {number}")

    assert writer.note() == f"note {number}"
    wait_until_heard(other, heard)
    assert other.note() == f"note {number}"


@pytest.mark.slow
def test_a_cached_read_never_differs_from_an_uncached_one(tmp_path, make_client, monkeypatch):
    world = World(tmp_path / "work")
    readers = [Reader(make_client(session="interleaved", root=world.root), world.root) for _ in range(2)]
    dice = random.Random(20261129)
    readers[0].blackboard().write_text("empty")
    assert [reader.note() for reader in readers] == ["empty", "empty"]

    for number in range(INTERLEAVINGS):
        monkeypatch.setattr(fingerprints, "_RACY_NS", dice.choice(OLD_ENOUGH_NS))
        done = dice.choices(CHANGES, k=dice.randint(1, 3))
        for change in done:
            getattr(world, change)(dice)
        path = world.path(dice, (*NAMES, *NAMES, MANY[0]))
        folder = world.path(dice, (".", "d1", "way"))
        for reader in readers:
            for plain, cached in reader.tools:
                where = str(path if plain is read else folder)
                assert cached(where) == plain(where), (number, done, plain.__name__)
            assert reader.tools[0][1](str(path)) == read(str(path)), (number, done, "from the front cache")
        if number % 5 == 0:
            write_by_tool(readers, dice, number)

    stats = make_client(session="interleaved").tools.stats()
    hits = {row["tool"]: row["hits"] for row in stats["by_tool"]}
    assert hits["read"] > INTERLEAVINGS, "a cache that never hits proves nothing"
    assert hits["listing"] > INTERLEAVINGS / 4
    assert hits["search"] > INTERLEAVINGS / 20
    assert hits["note"] > INTERLEAVINGS / 10
