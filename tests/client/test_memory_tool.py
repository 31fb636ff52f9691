"""The memory tool through the SDK's own base class, over a running hub: documented answers, and no way around the root."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from anthropic.lib.tools import BetaAbstractMemoryTool, ToolError

from memoryhub.client import MemoryHub, MemoryTool, errors
from memoryhub.client import memory_tool as module

_numbers = itertools.count()
BAD_WAYS = [
    "/memories_backup/x.txt",
    "/memories/../etc/passwd",
    "/memories/a/../../b",
    "/memories/..",
    "/memories/%2e%2e%2fetc",
    "/memories/%2E%2E/etc",
    "/memories/%252e%252e%252fetc",
    "/memories/..\\etc",
    "/memories\\..\\etc",
    "/memories/a\\b",
    "/memories/./a",
    "/memories/a\x00b",
    "/memories/a\nb",
    "/etc/passwd",
    "memories/a",
    "../memories/a",
    "/",
    "",
    "/Memories/a",
    "%2fmemories/a",
]


@pytest.fixture
def tool(hub: MemoryHub) -> MemoryTool:
    return MemoryTool(hub, user=f"user {next(_numbers)}")


@pytest.fixture
def run(tool: MemoryTool) -> Callable[..., str]:
    return lambda command, **fields: tool.call({"command": command, **fields})


@pytest.fixture
def fails(tool: MemoryTool) -> Callable[..., str]:
    def call(command: str, **fields: Any) -> str:
        with pytest.raises(ToolError) as caught:
            tool.call({"command": command, **fields})
        return str(caught.value)

    return call


def test_it_is_the_tool_that_the_runner_knows(tool: MemoryTool) -> None:
    assert isinstance(tool, BetaAbstractMemoryTool)
    assert tool.to_dict() == {"type": "memory_20250818", "name": "memory"}


def test_create_and_view_a_file(run: Callable[..., str]) -> None:
    created = run("create", path="/memories/a.txt", file_text="one\ntwo")

    assert created == "File created successfully at: /memories/a.txt"
    assert run("view", path="/memories/a.txt") == (
        "Here's the content of /memories/a.txt with line numbers:\n     1\tone\n     2\ttwo"
    )


@pytest.mark.parametrize(
    ("view_range", "expected"),
    [([2, 3], "     2\tb\n     3\tc"), ([3, -1], "     3\tc\n     4\td"), ([1, 1], "     1\ta"), ([4, 9], "     4\td")],
)
def test_view_a_range_of_lines(run: Callable[..., str], view_range: list[int], expected: str) -> None:
    run("create", path="/memories/a", file_text="a\nb\nc\nd")

    answer = run("view", path="/memories/a", view_range=view_range)

    assert answer == f"Here's the content of /memories/a with line numbers:\n{expected}"


@pytest.mark.parametrize("view_range", [[5, 6], [3, 2], [1], [1, 2, 3], 7])
def test_a_range_that_is_none_is_refused(run: Callable[..., str], fails: Callable[..., str], view_range: Any) -> None:
    run("create", path="/memories/a", file_text="a\nb\nc\nd")

    assert "Invalid `view_range`" in fails("view", path="/memories/a", view_range=view_range)


def test_more_lines_than_the_limit_are_refused(
    run: Callable[..., str], fails: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run("create", path="/memories/a", file_text="x\n" * 5)
    monkeypatch.setattr(module, "MAX_LINES", 5)

    assert fails("view", path="/memories/a") == "File /memories/a exceeds maximum line limit of 999,999 lines."


def test_view_a_directory_two_levels_deep(run: Callable[..., str]) -> None:
    for path, text in (
        ("a.txt", "12345"),
        ("p/b.txt", "x" * 1536),
        ("p/q/c.txt", "xyz"),
        ("p/q/r/d.txt", "12"),
        (".hidden", "h"),
        ("p/.git/config", "h"),
        ("node_modules/x/y.js", "h"),
        ("p/node_modules/z.js", "h"),
    ):
        run("create", path=f"/memories/{path}", file_text=text)

    answer = run("view", path="/memories").splitlines()

    assert answer[0] == (
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items and node_modules:"
    )
    assert {line.split("\t")[1] for line in answer[1:]} == {
        "/memories",
        "/memories/a.txt",
        "/memories/p/",
        "/memories/p/b.txt",
        "/memories/p/q/",
    }
    assert "5B\t/memories/a.txt" in answer
    assert "1.5K\t/memories/p/b.txt" in answer
    assert "5B\t/memories/p/q/" in answer


@pytest.mark.parametrize("path", ["/memories/", "/memories//", "/memories/p/", "/memories//p"])
def test_slashes_too_many_do_not_show_in_listings(run: Callable[..., str], path: str) -> None:
    run("create", path="/memories/p/a.txt", file_text="x")

    answer = run("view", path=path)

    assert "//" not in answer
    assert "/memories/p/a.txt" in answer


def test_an_empty_root_is_there(run: Callable[..., str]) -> None:
    assert run("view", path="/memories").splitlines()[1:] == ["0B\t/memories"]


def test_view_what_is_not_there(fails: Callable[..., str]) -> None:
    assert fails("view", path="/memories/none") == (
        "The path /memories/none does not exist. Please provide a valid path."
    )


def test_create_where_something_stands(run: Callable[..., str], fails: Callable[..., str]) -> None:
    run("create", path="/memories/p/a.txt", file_text="x")

    for path in ("/memories/p/a.txt", "/memories/p", "/memories/p/"):
        assert fails("create", path=path, file_text="y") == f"Error: File {path} already exists"
    assert run("view", path="/memories/p/a.txt").endswith("\tx")


def test_create_below_a_file_tells_no_more_than_the_path(run: Callable[..., str], fails: Callable[..., str]) -> None:
    run("create", path="/memories/a.txt", file_text="x")

    assert fails("create", path="/memories/a.txt/g", file_text="x") == (
        "Error: /memories/a.txt is a file, so nothing can lie below it."
    )


def test_create_an_empty_file(run: Callable[..., str]) -> None:
    run("create", path="/memories/empty", file_text="")

    assert run("view", path="/memories/empty").endswith("line numbers:\n     1\t")


def test_str_replace_shows_what_it_made(run: Callable[..., str]) -> None:
    run("create", path="/memories/a", file_text="\n".join("abcdefgh"))

    answer = run("str_replace", path="/memories/a", old_str="e", new_str="E1\nE2")

    head, *snippet = answer.split("\n")
    assert head.startswith("The memory file has been edited.")
    assert snippet == ["     3\tc", "     4\td", "     5\tE1", "     6\tE2", "     7\tf", "     8\tg"]


def test_leaving_new_str_out_deletes(run: Callable[..., str]) -> None:
    run("create", path="/memories/a", file_text="one\ntwo\n")

    assert run("str_replace", path="/memories/a", old_str="one\n").startswith("The memory file has been edited.")
    assert run("view", path="/memories/a").split("\n")[1:] == ["     1\ttwo", "     2\t"]


def test_str_replace_needs_exactly_one_place(run: Callable[..., str], fails: Callable[..., str]) -> None:
    run("create", path="/memories/a", file_text="x y\nz\nx x")

    assert fails("str_replace", path="/memories/a", old_str="q", new_str="r") == (
        "No replacement was performed, old_str `q` did not appear verbatim in /memories/a."
    )
    assert fails("str_replace", path="/memories/a", old_str="x", new_str="r") == (
        "No replacement was performed. Multiple occurrences of old_str `x` in lines: 1, 3, 3. Please ensure it is unique"
    )
    assert "did not appear" in fails("str_replace", path="/memories/a", old_str="", new_str="r")
    assert run("view", path="/memories/a").endswith("     1\tx y\n     2\tz\n     3\tx x")


def test_replacing_something_by_itself_is_no_error(run: Callable[..., str]) -> None:
    run("create", path="/memories/a", file_text="x")

    assert "edited" in run("str_replace", path="/memories/a", old_str="x", new_str="x")


@pytest.mark.parametrize(("line", "expected"), [(0, ["new", "a", "b"]), (1, ["a", "new", "b"]), (2, ["a", "b", "new"])])
@pytest.mark.parametrize("text", ["new", "new\n"])
def test_insert_after_a_line(run: Callable[..., str], line: int, expected: list[str], text: str) -> None:
    run("create", path="/memories/a", file_text="a\nb\n")

    answer = run("insert", path="/memories/a", insert_line=line, insert_text=text)

    assert answer == "The file /memories/a has been edited."
    assert [shown.split("\t")[1] for shown in run("view", path="/memories/a").split("\n")[1:]] == [*expected, ""]


@pytest.mark.parametrize("line", [-1, 3, 1.5, None])
def test_insert_outside_the_file(run: Callable[..., str], fails: Callable[..., str], line: Any) -> None:
    run("create", path="/memories/a", file_text="a\nb\n")

    assert fails("insert", path="/memories/a", insert_line=line, insert_text="x") == (
        f"Error: Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, 2]"
    )


@pytest.mark.parametrize("fields", [{"old_str": "a", "new_str": "b"}, {"insert_line": 0, "insert_text": "x"}])
def test_only_files_that_are_there_are_edited(
    run: Callable[..., str], fails: Callable[..., str], fields: dict[str, Any]
) -> None:
    run("create", path="/memories/p/a", file_text="a")
    command = "str_replace" if "old_str" in fields else "insert"

    for path in ("/memories/none", "/memories/p", "/memories"):
        assert fails(command, path=path, **fields) == (
            f"Error: The path {path} does not exist. Please provide a valid path."
        )


def test_delete_a_file_and_a_directory(run: Callable[..., str], fails: Callable[..., str]) -> None:
    for path in ("a", "p/b", "p/q/c", "p2/d"):
        run("create", path=f"/memories/{path}", file_text="x")

    assert run("delete", path="/memories/a") == "Successfully deleted /memories/a"
    assert run("delete", path="/memories/p") == "Successfully deleted /memories/p"
    assert fails("delete", path="/memories/a") == "Error: The path /memories/a does not exist"
    listed = run("view", path="/memories")
    assert "/memories/p2/d" in listed
    assert "/memories/p/" not in listed


@pytest.mark.parametrize("path", ["/memories", "/memories/", "/memories//"])
def test_the_root_stays(run: Callable[..., str], fails: Callable[..., str], path: str) -> None:
    run("create", path="/memories/a", file_text="x")

    assert fails("delete", path=path).startswith("Error: ")
    assert fails("rename", old_path=path, new_path="/memories/b").startswith("Error: ")
    assert fails("rename", old_path="/memories/a", new_path=path).startswith("Error: ")
    assert fails("create", path=path, file_text="x").startswith("Error: ")
    assert "/memories/a" in run("view", path="/memories")


def test_rename_a_file_and_a_directory(run: Callable[..., str], fails: Callable[..., str]) -> None:
    run("create", path="/memories/a", file_text="A")
    run("create", path="/memories/p/b", file_text="B")

    answer = run("rename", old_path="/memories/a", new_path="/memories/deep/er/a")
    run("rename", old_path="/memories/p", new_path="/memories/q")

    assert answer == "Successfully renamed /memories/a to /memories/deep/er/a"
    assert run("view", path="/memories/deep/er/a").endswith("\tA")
    assert run("view", path="/memories/q/b").endswith("\tB")
    assert fails("rename", old_path="/memories/p", new_path="/memories/x") == (
        "Error: The path /memories/p does not exist"
    )


def test_renames_that_are_refused_change_nothing(run: Callable[..., str], fails: Callable[..., str]) -> None:
    run("create", path="/memories/a", file_text="A")
    run("create", path="/memories/p/b", file_text="B")
    before = run("view", path="/memories")

    for new in ("/memories/p/b", "/memories/p", "/memories/a"):
        assert fails("rename", old_path="/memories/a", new_path=new) == f"Error: The destination {new} already exists"
    assert "itself" in fails("rename", old_path="/memories/p", new_path="/memories/p/q")
    assert "below" in fails("rename", old_path="/memories/p", new_path="/memories/a/p")
    assert run("view", path="/memories") == before


@pytest.mark.parametrize("path", BAD_WAYS)
def test_no_way_leads_around_the_root(run: Callable[..., str], fails: Callable[..., str], path: str) -> None:
    run("create", path="/memories/safe", file_text="x")

    assert fails("view", path=path).startswith("Error: ")
    assert fails("create", path=path, file_text="x").startswith("Error: ")
    assert fails("str_replace", path=path, old_str="x", new_str="y").startswith("Error: ")
    assert fails("insert", path=path, insert_line=0, insert_text="x").startswith("Error: ")
    assert fails("delete", path=path).startswith("Error: ")
    assert fails("rename", old_path=path, new_path="/memories/z").startswith("Error: ")
    assert fails("rename", old_path="/memories/safe", new_path=path).startswith("Error: ")
    assert run("view", path="/memories/safe").endswith("\tx")


@pytest.mark.parametrize(
    "name", ["100%.md", "a b.txt", "深色 模式.md", "..a", "a..b", "...", "e\u0301.md", "%20.txt", "~"]
)
def test_odd_names_are_kept(run: Callable[..., str], name: str) -> None:
    path = f"/memories/{name}"
    run("create", path=path, file_text="x")

    assert run("view", path=path).endswith("\tx")


@pytest.mark.parametrize(
    "command",
    [
        {},
        {"command": "view"},
        {"command": "create", "path": "/memories/a"},
        {"command": "create", "path": "/memories/a", "file_text": 7},
        {"command": "str_replace", "path": "/memories/a"},
        {"command": "insert", "path": "/memories/a", "insert_line": 0},
        {"command": "rename", "old_path": "/memories/a"},
        {"command": "format", "path": "/memories/a"},
        {"command": "view", "path": 7},
        {"command": "view", "path": None},
        {"command": ["view"]},
        "view",
        None,
    ],
)
def test_what_a_model_got_wrong_is_a_tool_error(tool: MemoryTool, command: Any) -> None:
    with pytest.raises(ToolError):
        tool.call(command)


def test_what_the_hub_refuses_is_a_tool_error(fails: Callable[..., str]) -> None:
    assert "secret" in fails("create", path="/memories/a", file_text="sk-ant-" + "x" * 40)
    assert "102400" in fails("create", path="/memories/a", file_text="x" * 102_401).replace(",", "")
    assert fails("create", path="/memories/a", file_text="half \ud800").startswith("Error: ")
    assert "20 segments" in fails("create", path="/memories" + "/a" * 20, file_text="x")


def test_a_hub_that_is_down_is_a_tool_error(make_client: Callable[..., MemoryHub]) -> None:
    tool = MemoryTool(make_client(base_url="http://127.0.0.1:9"))

    with pytest.raises(ToolError, match="out of reach"):
        tool.call({"command": "view", "path": "/memories"})


def test_clearing_forgets_everything_and_only_that(hub: MemoryHub, tool: MemoryTool) -> None:
    other = MemoryTool(hub, user="somebody else entirely")
    for each in (tool, other):
        each.call({"command": "create", "path": f"/memories/{next(_numbers)}", "file_text": "x"})

    assert tool.clear_all_memory() == "All memory cleared"
    assert tool.call({"command": "view", "path": "/memories"}).splitlines()[1:] == ["0B\t/memories"]
    assert len(other.call({"command": "view", "path": "/memories"}).splitlines()) > 2


def test_files_of_users_are_apart(hub: MemoryHub) -> None:
    ann, bob = MemoryTool(hub, user="ann"), MemoryTool(hub, user="bob")
    ann.call({"command": "create", "path": "/memories/same", "file_text": "ann's"})
    bob.call({"command": "create", "path": "/memories/same", "file_text": "bob's"})

    assert ann.call({"command": "view", "path": "/memories/same"}).endswith("ann's")


def test_edits_begin_again_with_what_somebody_else_wrote(tool: MemoryTool, run: Callable[..., str]) -> None:
    run("create", path="/memories/a", file_text="one\n")
    files = tool._files
    write, meddled = files.write, []

    def meddle(file: Any, content: str) -> None:
        if not meddled:
            meddled.append(1)
            write(file, "zero\none\n")
        write(file, content)

    files.write = meddle  # type: ignore[method-assign]
    run("str_replace", path="/memories/a", old_str="one", new_str="two")

    assert run("view", path="/memories/a").split("\n")[1:] == ["     1\tzero", "     2\ttwo", "     3\t"]


def test_an_error_names_its_kind(hub: MemoryHub) -> None:
    with pytest.raises(errors.NotFound) as caught:
        hub.connection.request("GET", "/memories/files/content", query={"path": "/none"})

    assert caught.value.slug == "unknown-file"
