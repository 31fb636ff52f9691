"""`python -m tests.bench.memory_speed [memories]`: import, insert, search and decay over a thousand users' memories.

Memories are sentences of a few thousand words with a realistic spread, their vectors synthetic (the encoder is not what
is measured here; one query's encoding is). Single inserts are ordinary sentences, the recall fixture's: a made-up word is
several pieces to the encoder. A tenth of a million by default; a million as the goal is stated takes longer.
"""

import itertools
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.throwaway import show, throwaway_hub

FIXTURE = Path(__file__).parents[2] / "fixtures" / "recall"
USERS = 1_000
WORDS = 6_000


def vocabulary(dice: random.Random) -> list[str]:
    syllables = ["ka", "ro", "mi", "ten", "la", "su", "vor", "ne", "chi", "dal", "pu", "gre", "shi", "on", "tar", "bel"]
    return ["".join(dice.choices(syllables, k=dice.randint(2, 4))) + str(number % 10) for number in range(WORDS)]


def sentences(count: int) -> Iterator[str]:
    """Sentences whose words are as unevenly common as in real texts."""
    dice = random.Random(3)
    words = vocabulary(dice)
    weights = list(itertools.accumulate(1 / (rank + 10) for rank in range(WORDS)))
    for number in range(count):
        yield " ".join(dice.choices(words, cum_weights=weights, k=dice.randint(8, 24))) + f" note {number}"


def p50(run: Callable[[int], Any], times: int) -> float:
    taken = []
    for number in range(times):
        start = time.perf_counter()
        run(number)
        taken.append((time.perf_counter() - start) * 1000)
    return statistics.median(taken)


def fill(writer: Any, count: int) -> float:
    """Import memories from a file, as the command does; returns rows a second."""
    from memoryhub.flows.import_memories import import_stream

    with tempfile.TemporaryFile() as file:
        for number, text in enumerate(sentences(count)):
            scope, tags = {"user": f"user-{number % USERS}"}, [f"tag-{number % 50}"]
            file.write(json.dumps({"content": text, "scope": scope, "tags": tags}).encode() + b"\n")
        file.seek(0)
        start = time.perf_counter()
        result = import_stream(writer=writer, stream=file, format="memoryhub")
        taken = time.perf_counter() - start
    assert result.created == count
    return count / taken


def give_vectors(workspace_id: int) -> None:
    """Synthetic unit vectors, as int8."""
    from django.db import connection

    from memoryhub.long_term_memory.models import SearchDocument
    from memoryhub.long_term_memory.services.revisions import current_model_id

    noise = np.random.default_rng(5)
    model_id = current_model_id()
    keys = list(SearchDocument.objects.order_by("key").values_list("key", flat=True))
    sql = "UPDATE long_term_memory_searchdocument SET vector = %s, model_id = %s WHERE key = %s"
    for first in range(0, len(keys), 20_000):
        part = keys[first : first + 20_000]
        rows = noise.integers(-127, 127, size=(len(part), 512), dtype=np.int8)
        with connection.cursor() as cursor:
            cursor.executemany(sql, [(row.tobytes(), model_id, key) for row, key in zip(rows, part, strict=True)])


def measure(writer: Any, count: int) -> None:
    from memoryhub.common import clock
    from memoryhub.long_term_memory.domain.scoping import ScopeNames
    from memoryhub.long_term_memory.queries import search_memories
    from memoryhub.long_term_memory.search.request import SearchRequest
    from memoryhub.long_term_memory.services import MemoryDraft, recall_memories, refresh_file, remember, run_decay

    show("memory_import_rows_per_s", fill(writer, count), "rows/s", ">= 5000", memories=count)
    give_vectors(writer.workspace.pk)
    refresh_file(writer.workspace)
    asked = list(sentences(400))[200:]

    def request(number: int, **scope: str) -> SearchRequest:
        return SearchRequest(query=" ".join(asked[number % 200].split()[:6]), scope=ScopeNames(**scope))

    def scoped(number: int) -> Any:
        return search_memories(writer.workspace, request(number, user=f"user-{number * 7 % USERS}"), now=clock.now())

    def recalled(number: int) -> Any:
        return recall_memories(writer=writer, request=request(number, user=f"user-{number * 7 % USERS}"))

    def wide(number: int) -> Any:
        return search_memories(writer.workspace, request(number), now=clock.now())

    told = [json.loads(line)["content"] for line in (FIXTURE / "memories.jsonl").read_text().splitlines()]

    def insert(number: int) -> Any:
        draft = MemoryDraft(content=f"{told[number]} (note {number})", scope=ScopeNames(user=f"user-{number}"))
        return remember(writer=writer, drafts=[draft])

    scoped(0)
    show("memory_search_scoped_p50", p50(scoped, 100), "ms", "<= 25", memories=count)
    show("memory_recall_scoped_p50", p50(recalled, 50), "ms", "", memories=count)
    wide(0)
    show("memory_search_workspace_p50", p50(wide, 30), "ms", "<= 150", memories=count)
    show("memory_insert_p50", p50(insert, 100), "ms", "<= 6", memories=count)
    start = time.perf_counter()
    steps: list[float] = [start]
    run_decay(writer=writer, on_progress=lambda done, total: steps.append(time.perf_counter()))
    show("memory_decay", time.perf_counter() - start, "s", "<= 60", memories=count)
    longest = max(after - before for before, after in itertools.pairwise(steps)) * 1000
    show("memory_decay_longest_step", longest, "ms", "<= 200", memories=count)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with throwaway_hub() as workspace:
        from memoryhub.long_term_memory.services import Writer
        from memoryhub.workspaces.principals import command_principal

        measure(Writer.of(command_principal(workspace, "bench"), door="bench"), count)


if __name__ == "__main__":
    main()
