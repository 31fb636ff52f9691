"""`@hub.tools.cached` against a running hub: what runs once, what runs again, and what is never shared."""

import asyncio
import os
import threading
import time

import pytest

from memoryhub.client import directory, files, tags, tree
from memoryhub.client.errors import Invalid


def counted(function):
    """Count the runs of a function."""
    function.runs = 0
    return function


@pytest.fixture
def tool(hub):
    """A cached tool that answers its arguments, with the list of its runs."""
    runs = []

    @hub.tools.cached(name=f"echo-{id(runs)}")
    def echo(value, other=None):
        runs.append(value)
        return [value, other]

    echo.runs = runs
    return echo


def wait_for_stream(hub):
    assert hub.tools._listener.is_connected.wait(5)


def test_the_same_call_runs_once(tool):
    assert tool(1) == [1, None]
    assert tool(1) == [1, None]
    assert tool(value=1, other=None) == [1, None]

    assert tool.runs == [1]


@pytest.mark.parametrize("pair", [(1, True), (1, "1"), (0, False), (10**20, 10**20 + 1), (None, "None"), ([1], [True])])
def test_calls_that_only_look_alike_are_two(tool, pair):
    for value in pair:
        tool(value)
    for value in pair:
        assert type(tool(value)[0]) is type(value)

    assert len(tool.runs) == 2


@pytest.mark.parametrize("value", [None, b"\x00", (1, 2), {"a": (b"x",)}, {3, 1}])
def test_any_value_comes_back_of_its_own_type(hub, value):
    runs = []

    @hub.tools.cached(name=f"value-{id(runs)}")
    def get():
        runs.append(1)
        return value

    first, second, third = get(), get(), get()

    assert first == second == third == value
    assert type(second) is type(value)
    assert runs == [1]


@pytest.mark.parametrize("value", [float("nan"), {1: "a"}, object()])
def test_what_can_not_be_stored_is_returned_all_the_same(hub, value):
    runs = []

    @hub.tools.cached(name=f"odd-{id(runs)}")
    def get():
        runs.append(1)
        return value

    assert get() is value
    assert get() is value
    assert runs == [1, 1]


def test_callers_never_share_one_object(tool):
    first = tool(1)
    second = tool(1)
    second.append("mine")
    third = tool(1)

    assert first == third == [1, None]


def test_an_error_is_raised_and_not_remembered(hub):
    runs = []

    @hub.tools.cached(name=f"broken-{id(runs)}")
    def broken():
        runs.append(1)
        raise KeyError("this one")

    for _ in range(2):
        with pytest.raises(KeyError, match="this one"):
            broken()

    assert len(runs) == 2


@pytest.mark.parametrize(
    "error", [StopIteration("over"), RuntimeError("coroutine raised something"), KeyboardInterrupt()]
)
def test_any_error_is_the_functions_own(hub, error):
    @hub.tools.cached(name=f"fails-with-{type(error).__name__}")
    def fails():
        raise error

    with pytest.raises(type(error)) as raised:
        fails()

    assert raised.value is error


def test_wrong_arguments_are_the_functions_own_error(tool):
    with pytest.raises(TypeError, match="echo"):
        tool()


def test_a_method_is_cached_without_its_object(hub):
    class Shop:
        runs = 0

        @hub.tools.cached(name=f"price-{time.time_ns()}")
        def price(self, item):
            Shop.runs += 1
            return item.upper()

    assert Shop().price("tea") == Shop().price("tea") == "TEA"
    assert Shop.runs == 1


def test_an_async_function_is_cached_and_runs_once_for_many(hub):
    runs = []

    @hub.tools.cached(name=f"slow-{id(runs)}")
    async def slow(value):
        runs.append(value)
        await asyncio.sleep(0.3)
        return value

    async def many():
        return await asyncio.gather(*(slow("x") for _ in range(20)))

    assert asyncio.run(many()) == ["x"] * 20
    assert runs == ["x"]


def test_fifty_callers_of_a_slow_tool_run_it_once(make_client):
    """Ten clients with five threads each, all at once, for the same session."""
    runs, answers = [], []
    start = threading.Barrier(50)

    def slow_tool(client):
        @client.tools.cached(name="fifty", session="fifty")
        def slow(value):
            runs.append(value)
            time.sleep(0.5)
            return value * 2

        return slow

    def call(slow):
        start.wait()
        answers.append(slow(21))

    tools = [slow_tool(make_client()) for _ in range(10)]
    threads = [threading.Thread(target=call, args=(tools[i % 10],)) for i in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    assert answers == [42] * 50
    assert len(runs) == 1


def test_two_clients_share_a_session_but_not_two_sessions(make_client):
    runs = []

    def tool_of(client):
        @client.tools.cached(name=f"shared-{id(runs)}", version="1")
        def get(value):
            runs.append(value)
            return value

        return get

    one, other = tool_of(make_client(session="same")), tool_of(make_client(session="same"))
    apart = tool_of(make_client(session="apart"))

    one(1), other(1), apart(1)

    assert len(runs) == 2


def test_a_file_is_read_again_once_it_changed(hub, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one")
    os.utime(path, (1, 1))
    runs = []

    @hub.tools.cached(name=f"read-{id(runs)}", depends_on=files("path"))
    def read(path):
        runs.append(path)
        with open(path) as file:
            return file.read()

    assert [read(str(path)), read(str(path)), read(str(path))] == ["one"] * 3
    assert len(runs) == 1
    path.write_text("two")
    assert [read(str(path)), read(str(path))] == ["two"] * 2
    assert len(runs) == 2
    path.unlink()
    with pytest.raises(FileNotFoundError):
        read(str(path))


def test_the_spelling_of_a_path_does_not_matter_but_the_folder_does(hub, tmp_path, monkeypatch):
    for folder in ("x", "y"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.txt").write_text(folder)
    runs = []

    @hub.tools.cached(name=f"read-{id(runs)}", depends_on=files("path"))
    def read(path):
        runs.append(path)
        with open(path) as file:
            return file.read()

    monkeypatch.chdir(tmp_path / "x")
    assert {read("a.txt"), read("./a.txt"), read("../x/a.txt"), read(str(tmp_path / "x" / "a.txt"))} == {"x"}
    assert len(runs) == 1
    monkeypatch.chdir(tmp_path / "y")
    assert read("a.txt") == "y"
    assert len(runs) == 2


def test_a_retargeted_link_is_noticed(hub, tmp_path):
    (tmp_path / "one").write_text("1")
    (tmp_path / "two").write_text("2")
    link = tmp_path / "link"
    link.symlink_to("one")

    @hub.tools.cached(name=f"read-{id(link)}", depends_on=files("path"))
    def read(path):
        with open(path) as file:
            return file.read()

    assert [read(str(link)), read(str(link))] == ["1", "1"]
    link.unlink()
    link.symlink_to("two")
    assert read(str(link)) == "2"


def test_a_listing_notices_new_children(hub, tmp_path):
    @hub.tools.cached(name=f"list-{id(tmp_path)}", depends_on=directory("path"))
    def names(path):
        return sorted(os.listdir(path))

    assert names(str(tmp_path)) == names(str(tmp_path)) == []
    (tmp_path / "new").write_text("")
    assert names(str(tmp_path)) == ["new"]


def test_a_search_over_a_tree_notices_a_change_far_below(hub, tmp_path):
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "f").write_text("needle")

    @hub.tools.cached(name=f"grep-{id(tmp_path)}", depends_on=tree("path"))
    def grep(path, word):
        return [f for folder, _, fs in os.walk(path) for f in fs if word in open(os.path.join(folder, f)).read()]

    assert grep(str(tmp_path), "needle") == ["f"]
    (deep / "f").write_text("thread")
    assert grep(str(tmp_path), "needle") == []


def test_a_value_that_was_computed_from_before_a_change_is_not_stored(hub, tmp_path):
    """The file changes while the tool runs: nobody may be served what was read before."""
    path = tmp_path / "a.txt"
    path.write_text("one")

    @hub.tools.cached(name=f"read-{id(path)}", depends_on=files("path"))
    def read(path):
        with open(path) as file:
            text = file.read()
        if text == "one":
            with open(path, "w") as file:
                file.write("two")
        return text

    assert read(str(path)) == "one"
    assert read(str(path)) == "two"


def test_an_invalidation_reaches_another_clients_front_cache(make_client):
    runs = []

    def tool_of(client):
        @client.tools.cached(name="pushed", session="pushed", version="1", depends_on=tags("deploy"))
        def get(value):
            runs.append(value)
            return value

        return get

    one, other = make_client(), make_client()
    get_one, get_other = tool_of(one), tool_of(other)
    get_one(1)
    wait_for_stream(one)
    get_other(1)
    wait_for_stream(other)
    get_one(1), get_other(1), get_one(1), get_other(1)
    assert len(runs) == 1
    assert len(one.tools.front) == len(other.tools.front) == 1

    one.tools.invalidate(tag="deploy", reason="deployed")

    deadline = time.monotonic() + 5
    while len(other.tools.front) and time.monotonic() < deadline:
        time.sleep(0.01)
    get_other(1)
    assert len(runs) == 2


def test_a_write_tool_invalidates_even_when_it_fails(hub):
    runs = []

    @hub.tools.cached(name=f"query-{id(runs)}")
    def query():
        runs.append(1)
        return len(runs)

    @hub.tools.writes(f"query-{id(runs)}", name=f"insert-{id(runs)}")
    def insert(fails):
        if fails:
            raise RuntimeError("half done")

    assert query() == query() == 1
    insert(fails=False)
    assert query() == query() == 2
    with pytest.raises(RuntimeError):
        insert(fails=True)
    assert query() == 3


def test_a_write_of_anything_asks_for_proof_and_drops_nothing_that_has_it(hub, make_client, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one")
    os.utime(path, (1, 1))
    other = make_client(session="unknown-write")
    runs = []

    @hub.tools.cached(name="read-before-shell", session="unknown-write", depends_on=files("path"))
    def read(path):
        runs.append(path)
        return open(path).read()

    @other.tools.writes(name="shell-of-anything", session="unknown-write")
    def shell(text=None):
        if text:
            path.write_text(text)

    assert [read(str(path)), read(str(path))] == ["one", "one"]
    shell()
    assert read(str(path)) == "one"
    assert len(runs) == 1, "its file proves it"
    asked = other.tools.look_up("read-before-shell", {"path": str(path)}, session="unknown-write")
    assert asked.state == "miss", "another root, another key"

    other.tools.set_policy("by-time", cacheable=True, strategy="ttl")
    fact = {"kind": "file", "path": str(path), "size": 3, "mtime_ns": 10**9}
    other.tools.put("by-time", None, "one", session="unknown-write", depends_on=[fact])
    assert other.tools.look_up("by-time", None, session="unknown-write").is_hit
    shell("two!")
    asked = other.tools.look_up("by-time", None, session="unknown-write")
    assert (asked.state, asked.raw["because"], asked.raw["changed_by"]) == (
        "validate", "unknown_write", "shell-of-anything",
    )  # fmt: skip
    assert read(str(path)) == "two!"


def test_hits_of_the_front_cache_are_counted(hub, tool):
    tool(5)
    wait_for_stream(hub)
    for _ in range(10):
        tool(5)
    tool(6)

    stats = hub.tools.stats()

    assert stats["hits"] == 10
    assert stats["misses"] == 2


def test_by_hand(hub):
    name = f"hand-{time.time_ns()}"
    hub.tools.set_policy(name, cacheable=True)

    assert hub.tools.look_up(name, {"q": 1}).reason == "absent"
    assert hub.tools.put(name, {"q": 1}, b"bytes")["stored"]
    assert hub.tools.look_up(name, {"q": 1}).value == b"bytes"
    assert hub.tools.put(name, {"q": 1}, object()) == {"stored": False, "reason": "uncacheable"}
    with pytest.raises(Invalid):
        hub.tools.invalidate(reason="everything?")


def test_the_policy_of_the_hub_wins(hub):
    name = f"forbidden-{time.time_ns()}"
    hub.tools.set_policy(name, cacheable=False)
    runs = []

    @hub.tools.cached(name=name)
    def get():
        runs.append(1)
        return 1

    get(), get()

    assert len(runs) == 2
