"""`manage.py verify` sees damage, and sees none where there is none."""

import pytest
from django.core.management import call_command

from memoryhub.flows.verify import verify_workspace
from memoryhub.long_term_memory.models import Memory, SearchDocument
from memoryhub.session_cache.models import Blob, ToolSpace


@pytest.fixture
def used(api, workspace):
    api.post("/memories", [{"content": f"Fact number {n}.", "scope": {"agent": "ops"}} for n in range(3)])
    api.put("/tool-policies/web_search", {"cacheable": True, "ttl_seconds": 600})
    api.put("/sessions/s1/tool-results", {"tool": "web_search", "params": {"q": "a"}, "value": "b"})
    api.post("/sessions/s1/events", {"kind": "message", "role": "user", "content": "Good morning."})
    usage = {"input_tokens": 5, "output_tokens": 5}
    api.post(
        "/prompt-cache/usage",
        {"message_id": "m1", "model": "claude-opus-5-5", "started_at": "2026-11-20T10:00:00Z", "usage": usage},
    )
    return workspace


def troubles(workspace):
    return {name: found for name, found in verify_workspace(workspace) if found}


def test_what_the_services_wrote_agrees_with_itself(used, capsys):
    assert troubles(used) == {}
    with pytest.raises(SystemExit) as ended:
        call_command("verify")
    assert ended.value.code == 0
    assert "wrong" not in capsys.readouterr().out


def test_each_kind_of_damage_is_named(used):
    ToolSpace.objects.update(used_bytes=1)
    Blob.objects.update(data=b"rubbish")
    SearchDocument.objects.filter(key=Memory.objects.earliest("pk").document_key).delete()
    Memory.objects.filter(pk=Memory.objects.latest("pk").pk).update(content="Something else.")

    found = troubles(used)

    assert {name: len(lines) for name, lines in found.items()} == {
        "sizes of tool spaces": 1,
        "contents of events": Blob.objects.count(),
        "the search index": 1,
        "texts of memories": 1,
    }


def test_the_command_ends_with_1_on_damage(used):
    ToolSpace.objects.update(used_bytes=1)

    with pytest.raises(SystemExit) as ended:
        call_command("verify")

    assert ended.value.code == 1
