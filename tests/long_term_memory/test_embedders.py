"""Embedders: the local one, an HTTP one against a local upstream, and what happens while one is down."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from memoryhub.common import clock
from memoryhub.jobs.tasks import run_now
from memoryhub.long_term_memory.models import SearchDocument
from memoryhub.long_term_memory.queries import search_memories
from memoryhub.long_term_memory.search import embedders, selection, vectors
from memoryhub.long_term_memory.search.request import SearchRequest
from memoryhub.long_term_memory.services import MemoryDraft, ScopeNames, Writer, embed_missing, refresh_file, remember
from memoryhub.work.models import Job
from memoryhub.workspaces.principals import Principal

ANA = ScopeNames(user="ana")


def test_the_local_embedder_puts_meanings_side_by_side() -> None:
    embedder = embedders.LocalEmbedder()

    cat, kitten, invoice, chinese = embedder.embed(
        ["a small cat", "a little kitten", "the invoice is due", "一只小猫"], "document"
    )

    assert cat.shape == (512,)
    assert np.linalg.norm(cat) == pytest.approx(1.0, abs=1e-5)
    assert cat @ kitten > cat @ invoice
    assert cat @ chinese > cat @ invoice


def test_damaged_weights_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedders.LocalEmbedder, "SHA256", "0" * 64)

    with pytest.raises(embedders.EmbedderUnavailable, match="damaged"):
        embedders.LocalEmbedder().embed(["x"], "query")


def test_packing_keeps_the_direction() -> None:
    noise = np.random.default_rng(1).normal(size=512).astype(np.float32)
    vector = noise / np.linalg.norm(noise)

    packed = np.frombuffer(embedders.pack(vector), dtype=np.int8).astype(np.float32)

    assert len(packed) == 512
    assert float(packed @ vector / np.linalg.norm(packed)) > 0.999


class Provider:
    """An OpenAI-compatible embedder: a text's vector counts three letters."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self.is_down = False
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *args: Any) -> None:
                pass

            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                provider.seen.append((self.headers["Authorization"], sent))
                rows = [
                    {"index": index, "embedding": [text.count(letter) + 0.1 for letter in "abc"]}
                    for index, text in enumerate(sent["input"])
                ]
                data = json.dumps({"data": rows[::-1]}).encode()
                self.send_response(503 if provider.is_down else 200)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def provider(settings: Any) -> Iterator[Provider]:
    made = Provider()
    settings.EMBEDDER = "openai_compatible"
    settings.EMBEDDER_URL = f"http://127.0.0.1:{made.server.server_port}/v1"
    settings.EMBEDDER_MODEL, settings.EMBEDDER_API_KEY = "letters", "key"
    settings.EMBEDDER_QUERY_PREFIX, settings.EMBEDDER_DOCUMENT_PREFIX = "query: ", "passage: "
    yield made
    made.server.shutdown()
    made.server.server_close()


def keep(owner: Principal, *contents: str) -> list[str]:
    drafts = [MemoryDraft(content=content, scope=ANA) for content in contents]
    return [result.id for result in remember(writer=Writer.of(owner, door="test"), drafts=drafts)]


def search(owner: Principal, query: str) -> tuple[list[str], list[str]]:
    result = search_memories(owner.workspace, SearchRequest(query=query, scope=ANA, limit=1), now=clock.now())
    return [hit.memory.public_id for hit in result.hits], result.notes


def test_a_provider_gets_prefixes_and_its_order_does_not_matter(owner: Principal, provider: Provider) -> None:
    first, second = keep(owner, "aaaa x", "bbbb y")

    assert search(owner, "bbb") == ([second], [])
    assert search(owner, "aaa") == ([first], [])
    assert provider.seen[0] == ("Bearer key", {"model": "letters", "input": ["passage: aaaa x", "passage: bbbb y"]})
    assert provider.seen[-1][1]["input"] == ["query: aaa"]


def test_a_provider_that_is_down_costs_the_vectors_and_a_job_brings_them(owner: Principal, provider: Provider) -> None:
    provider.is_down = True
    kept = keep(owner, "aaaa x", "plain bbbbbb")
    assert search(owner, "plain") == ([kept[1]], ["embedder_unavailable"])
    assert SearchDocument.objects.filter(vector__isnull=False).count() == 0

    provider.is_down = False
    run_now(Job.objects.get(kind="embed_memories").pk)

    assert Job.objects.get(kind="embed_memories").result == {"embedded": 2}
    assert search(owner, "aaa") == ([kept[0]], [])


def test_another_model_embeds_anew_and_search_works_meanwhile(
    owner: Principal, provider: Provider, settings: Any
) -> None:
    kept = keep(owner, "aaaa x", "plain bbbbbb")
    settings.EMBEDDER_MODEL = "other-letters"

    assert search(owner, "plain") == ([kept[1]], [])
    assert embed_missing(workspace=owner.workspace) == 2
    assert embed_missing(workspace=owner.workspace) == 0
    assert set(SearchDocument.objects.values_list("model__name", flat=True)) == {"other-letters"}


def test_a_large_workspace_finds_by_meaning_through_the_mapped_file(
    owner: Principal, provider: Provider, settings: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.DATA_DIR = tmp_path
    kept = keep(owner, *(f"{'a' * (number + 1)} note" for number in range(5)), "bbbbbb far", "cccccc away")
    monkeypatch.setattr(selection, "SMALL", 3)

    refresh_file(owner.workspace)

    assert search(owner, "bbbbbbb") == ([kept[5]], [])
    vectors.drop_files(owner.workspace.pk)
    assert search(owner, "far") == ([kept[5]], [])
