"""Memories that are addressed like files: where they may stand, and how they move."""

import pytest

from memoryhub.audit.models import ChangeSet
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import Memory, MemoryVersion
from memoryhub.long_term_memory.queries.files import (
    BadPlace,
    Directory,
    UnknownFile,
    below,
    files_of,
    find_scope_row,
    get_file,
    list_files,
)
from memoryhub.long_term_memory.queries.memories import MemoryFilter, filter_memories
from memoryhub.long_term_memory.services.editing import edit_memory
from memoryhub.long_term_memory.services.files import (
    MovedIntoItself,
    create_file,
    forget_files,
    rename_files,
    scope_of_files,
    write_file,
)
from memoryhub.long_term_memory.services.places import PathBlocked
from memoryhub.long_term_memory.services.remembering import remember
from memoryhub.long_term_memory.services.writer import (
    ChangedMeanwhile,
    HoldsSecrets,
    InvalidMemory,
    MemoryChanges,
    MemoryDraft,
    PathTaken,
    Writer,
)
from memoryhub.workspaces.principals import Actor, Binding, OutsideBinding, Principal

SCOPE = ScopeNames(agent="default")


@pytest.fixture
def writer(owner: Principal) -> Writer:
    return Writer.of(owner, door="test")


def make(writer: Writer, *paths: str) -> None:
    for path in paths:
        create_file(writer=writer, scope=SCOPE, path=path, content=f"at {path}\n")


def paths(writer: Writer) -> list[str | None]:
    return [memory.path for memory in files_of(find_scope_row(writer.workspace, SCOPE))]


def test_a_file_is_a_memory_with_versions(writer: Writer) -> None:
    created = create_file(writer=writer, scope=SCOPE, path="/m/a.txt", content="one\n")
    write_file(writer=writer, scope=SCOPE, path="/m/a.txt", content="two\n", expected_version=1)

    found = get_file(writer.workspace, SCOPE, "/m/a.txt")

    assert (found.public_id, found.content, found.version) == (created.public_id, "two\n", 2)
    assert list(MemoryVersion.objects.filter(memory=found).order_by("number").values_list("content", flat=True)) == [
        "one\n",
        "two\n",
    ]


def test_a_file_may_be_empty_and_become_empty(writer: Writer) -> None:
    create_file(writer=writer, scope=SCOPE, path="/empty", content="")
    make(writer, "/full")
    write_file(writer=writer, scope=SCOPE, path="/full", content="")

    assert [memory.content for memory in files_of(find_scope_row(writer.workspace, SCOPE))] == ["", ""]


def test_equal_files_are_two_memories(writer: Writer) -> None:
    for path in ("/a", "/b"):
        create_file(writer=writer, scope=SCOPE, path=path, content="same")

    assert paths(writer) == ["/a", "/b"]


@pytest.mark.parametrize("path", ["/m/a.txt", "/m"])
def test_nothing_is_created_where_something_stands(writer: Writer, path: str) -> None:
    make(writer, "/m/a.txt")

    with pytest.raises(PathTaken):
        make(writer, path)

    assert paths(writer) == ["/m/a.txt"]


@pytest.mark.parametrize("path", ["/m/a.txt/b", "/m/a.txt/b/c"])
def test_nothing_is_created_below_a_file(writer: Writer, path: str) -> None:
    make(writer, "/m/a.txt")

    with pytest.raises(PathBlocked) as caught:
        make(writer, path)

    assert caught.value.extra["conflicting_path"] == "/m/a.txt"


def test_neighbours_with_the_same_beginning_are_no_conflict(writer: Writer) -> None:
    make(writer, "/m/a", "/m/a.txt", "/m/ab/c", "/m2", "/M/a")

    assert paths(writer) == ["/M/a", "/m/a", "/m/a.txt", "/m/ab/c", "/m2"]


def test_a_forgotten_file_leaves_its_place(writer: Writer) -> None:
    make(writer, "/m/a.txt")
    forget_files(writer=writer, scope=SCOPE, path="/m/a.txt")

    make(writer, "/m/a.txt", "/m/b")

    assert paths(writer) == ["/m/a.txt", "/m/b"]


def test_an_edit_of_the_path_keeps_the_same_rules(writer: Writer) -> None:
    make(writer, "/a", "/b/c")
    memory = get_file(writer.workspace, SCOPE, "/a")

    for path, error in (("/b", PathTaken), ("/b/c", PathTaken), ("/b/c/d", PathBlocked), ("no", InvalidMemory)):
        with pytest.raises(error):
            edit_memory(writer=writer, memory_id=memory.public_id, changes=MemoryChanges(path=path))

    assert paths(writer) == ["/a", "/b/c"]


def test_a_directory_moves_as_one_change(writer: Writer) -> None:
    make(writer, "/p/a", "/p/q/b", "/px", "/r")
    before = ChangeSet.objects.count()

    moved = rename_files(writer=writer, scope=SCOPE, old="/p", new="/new/place")

    assert moved == 2
    assert paths(writer) == ["/new/place/a", "/new/place/q/b", "/px", "/r"]
    assert ChangeSet.objects.count() == before + 1


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ("/p", "/p/q", MovedIntoItself),
        ("/p", "/p", PathTaken),
        ("/p/a", "/p/a", PathTaken),
        ("/p/a", "/r", PathTaken),
        ("/r", "/p", PathTaken),
        ("/p", "/r/below", PathBlocked),
        ("/nothing", "/x", UnknownFile),
        ("/p", "/x/../y", InvalidMemory),
    ],
)
def test_moves_that_are_refused_change_nothing(writer: Writer, old: str, new: str, error: type[Exception]) -> None:
    make(writer, "/p/a", "/p/q/b", "/r")

    with pytest.raises(error):
        rename_files(writer=writer, scope=SCOPE, old=old, new=new)

    assert paths(writer) == ["/p/a", "/p/q/b", "/r"]


def test_a_directory_is_forgotten_with_all_below_it_and_nothing_else(writer: Writer) -> None:
    make(writer, "/p/a", "/p/q/b", "/p2/c", "/P/d")

    assert forget_files(writer=writer, scope=SCOPE, path="/p") == 2
    assert paths(writer) == ["/P/d", "/p2/c"]


def test_a_write_is_based_on_what_was_read(writer: Writer) -> None:
    make(writer, "/a")
    write_file(writer=writer, scope=SCOPE, path="/a", content="theirs", expected_version=1)

    with pytest.raises(ChangedMeanwhile):
        write_file(writer=writer, scope=SCOPE, path="/a", content="mine", expected_version=1)

    assert get_file(writer.workspace, SCOPE, "/a").content == "theirs"


def test_a_secret_is_refused_since_its_hash_must_hold(writer: Writer) -> None:
    with pytest.raises(HoldsSecrets):
        create_file(writer=writer, scope=SCOPE, path="/a", content="key: sk-ant-" + "x" * 40)

    assert paths(writer) == []


@pytest.mark.parametrize(
    "path", ["a", "/", "/a//b", "/a/", "/./a", "/a/../b", "/a\x07", "/e\u0301", "/z\u200bz", "/" + "a/" * 21 + "b"]
)
def test_bad_paths_are_refused(writer: Writer, path: str) -> None:
    with pytest.raises(InvalidMemory):
        make(writer, path)


def test_the_scope_is_the_bindings_or_the_default_agents(owner: Principal) -> None:
    bound = Writer(workspace=owner.workspace, actor=Actor("key", "k", "k"), binding=Binding(user="u1"))

    assert scope_of_files(owner.binding, ScopeNames()) == ScopeNames(agent="default")
    assert scope_of_files(bound.binding, ScopeNames()) == ScopeNames(user="u1")
    assert scope_of_files(bound.binding, ScopeNames(agent="a")) == ScopeNames(agent="a", user="u1")
    with pytest.raises(OutsideBinding):
        scope_of_files(bound.binding, ScopeNames(user="u2"))


def test_a_page_groups_what_lies_deeper(writer: Writer) -> None:
    make(writer, "/p/a", "/p/b/1", "/p/b/2", "/p/b.txt", "/p/c/x/y", "/q")
    files = files_of(find_scope_row(writer.workspace, SCOPE))
    expected = ["/p/a", "/p/b.txt", Directory("/p/b/"), Directory("/p/c/")]

    for limit in (1, 2, 3, 10):
        found, cursor = [], None
        while True:
            page, cursor = list_files(files, prefix="/p/", limit=limit, cursor=cursor, direct_only=True)
            found += [item.path if isinstance(item, Memory) else item for item in page]
            assert len(page) <= limit
            if cursor is None:
                break

        assert found == expected


def test_a_large_directory_is_stepped_over(writer: Writer, django_assert_max_num_queries: object) -> None:
    drafts = [MemoryDraft(content="x", scope=SCOPE, path=f"/big/{number:04}") for number in range(300)]
    remember(writer=writer, drafts=drafts, file_door=True, embed=False)
    make(writer, "/a", "/z")
    files = files_of(find_scope_row(writer.workspace, SCOPE))

    with django_assert_max_num_queries(4):  # type: ignore[operator]
        page, cursor = list_files(files, prefix="/", limit=5, cursor=None, direct_only=True)

    assert [item.path for item in page] == ["/a", "/big/", "/z"]
    assert cursor is None
    assert below(files, "/big/").count() == 300


@pytest.mark.parametrize(
    "cursor", ["x", "!!!", "W10", "WzEsMl0", "bnVsbA", "WyJcdTAwMDAiLHRydWVd", "WyJcdWQ4MDAiLHRydWVd"]
)
def test_a_cursor_of_another_kind_is_refused(writer: Writer, cursor: str) -> None:
    with pytest.raises(BadPlace):
        list_files(files_of(find_scope_row(writer.workspace, SCOPE)), prefix="/", limit=5, cursor=cursor)


def test_sizes_are_bytes(writer: Writer) -> None:
    create_file(writer=writer, scope=SCOPE, path="/a", content="深色 é")

    assert files_of(find_scope_row(writer.workspace, SCOPE)).get().size_bytes == len("深色 é".encode())  # type: ignore[attr-defined]


def test_a_path_prefix_takes_letters_as_they_are(writer: Writer) -> None:
    make(writer, "/Notes/a", "/notes/b", "/notes%/c", "/notes_/d")

    def found(prefix: str) -> set[str | None]:
        rows = filter_memories(writer.workspace, MemoryFilter(path_prefix=prefix))
        return set(rows.values_list("path", flat=True))

    assert found("/notes/") == {"/notes/b"}
    assert found("/notes%") == {"/notes%/c"}
    assert found("/n") == {"/notes/b", "/notes%/c", "/notes_/d"}
