"""What the pages and docs/connect.md tell people to run is run here, word for word, against a hub of its own."""

import json
import re
import time

from tests.anthropic_api.provider import Provider
from tests.commands.mcp_client import list_tools
from tests.commands.pages import Reader, read_document
from tests.commands.shell import Shell, kind_of
from tests.live import Hub

PAGES_WITH_EMPTY_STATES = ("/", "/report", "/doctor", "/sessions", "/tool-cache", "/invalidate", "/memories")
NOTICED_SECONDS = 8.0


def test_what_the_empty_pages_tell_to_run_works(reader: Reader, shell: Shell) -> None:
    found = {command for path in PAGES_WITH_EMPTY_STATES for command in reader.commands(path)}

    assert len(found) >= 3
    for command in sorted(found):
        shell.run(command)


def test_every_command_of_the_connect_page_works(
    reader: Reader, shell: Shell, live_hub: Hub, provider: Provider
) -> None:
    asked = len(provider.seen)
    ran = [run_block(block, shell, live_hub) for block in reader.commands("/connect")]

    assert ran.count("python") == 1
    assert ran.count("mcp") == 1
    assert ran.count("shell") >= 5
    assert len(provider.seen) == asked + 2  # the proxied request and the tracked one


def test_the_connect_page_notices_a_quiet_key_within_seconds(reader: Reader, live_hub: Hub) -> None:
    key = live_hub.make_key(name="quiet")

    live_hub.call("GET", "/api/v1/memories?limit=1", key=key)

    deadline = time.monotonic() + NOTICED_SECONDS
    while used_line(reader) != "yes, just now" and time.monotonic() < deadline:
        time.sleep(0.2)
    assert used_line(reader) == "yes, just now"


def test_every_command_of_the_connecting_document_works(shell: Shell, live_hub: Hub, provider: Provider) -> None:
    asked = len(provider.seen)
    blocks = read_document("docs/connect.md", live_hub.base)

    for language, text in blocks:
        if language == "python":
            shell.python(text)
        elif language == "json":
            assert_mcp_works(text, live_hub)
        else:
            shell.run(re.sub(r"export MEMORYHUB_KEY=mh_\.\.\..*", "", text))
    assert {language for language, _ in blocks} == {"sh", "python", "json"}
    assert len(provider.seen) == asked + 1


def test_a_memorys_snippets_read_and_change_it(reader: Reader, shell: Shell, live_hub: Hub) -> None:
    text = 'It\'s read by "snippets" & 中文.'
    status, stored = live_hub.call("POST", "/api/v1/memories", {"content": text, "scope": {"agent": "o'neill"}})
    assert status == 201
    read, change, python = reader.commands(f"/memories/{stored['items'][0]['id']}")

    assert json.loads(shell.run(read))["content"] == text
    assert json.loads(shell.run(change))["importance"] == 0.5
    shell.python(python)


def run_block(block: str, shell: Shell, hub: Hub) -> str:
    """Run a block as what it is and return what it was; installing and exporting a key are the shell's own."""
    kind = kind_of(block)
    if kind == "shell":
        shell.run(block)
    elif kind == "python":
        shell.python(block)
    elif kind == "mcp":
        assert_mcp_works(block.replace("mh_…", "mh_..."), hub)
    return kind


def assert_mcp_works(configuration: str, hub: Hub) -> None:
    server = json.loads(configuration)["mcpServers"]["memoryhub"]
    headers = {name: value.replace("mh_...", hub.key) for name, value in server["headers"].items()}
    assert server["type"] == "http"
    assert "memory_search" in list_tools(server["url"], headers)


def used_line(reader: Reader) -> str:
    found = re.search(r"A key was used</span><span class=\"mh-when\">([^<]*)", reader.page("/connect"))
    assert found
    return found[1]
