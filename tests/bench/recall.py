"""`python -m tests.bench.recall`: does recall find what was said? r@5, r@10, r@20 and nDCG@10 over long conversations.

The conversations (a JSON list as LoCoMo publishes it) are named by MEMORYHUB_BENCH_CONVERSATIONS; without them there is
nothing to measure here. Each turn is stored as a memory through the ordinary service, with its speaker as subject and its
session, and each question is searched in its own conversation's scope, once by words alone and once with the local embedder.
"""

import json
import math
import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.throwaway import show, throwaway_hub

SETTING = "MEMORYHUB_BENCH_CONVERSATIONS"
CUTS = (5, 10, 20)
CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
GOALS = {"local": 80.0, "none": 77.0}
_EVIDENCE = re.compile(r"D?:?(\d+):(\d+)")


def turns(conversation: dict[str, Any]) -> Iterator[tuple[str, str, str, str, datetime]]:
    """(turn id, session, speaker, text, time) in order; a photo's caption belongs to its turn's text."""
    names = [name for name in conversation if re.fullmatch(r"session_\d+", name)]
    for name in sorted(names, key=lambda name: int(name.split("_")[1])):
        at = datetime.strptime(conversation[f"{name}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for turn in conversation[name]:
            text = " ".join(filter(None, (turn["text"], turn.get("blip_caption"))))
            yield turn["dia_id"], name, turn["speaker"], text, at


def questions(sample: dict[str, Any], known: set[str]) -> Iterator[tuple[str, int, set[str]]]:
    """(question, category, turns that answer it); malformed evidence is repaired as far as it can be read."""
    for entry in sample["qa"]:
        found = {f"D{int(a)}:{int(b)}" for text in entry.get("evidence", ()) for a, b in _EVIDENCE.findall(text)}
        if found & known:
            yield entry["question"], entry["category"], found & known


def store(writer: Any, sample: dict[str, Any]) -> dict[str, str]:
    """Keep a conversation's turns; returns the turn of each memory id."""
    from memoryhub.long_term_memory.services import MemoryDraft, ScopeNames, remember

    sample_id = sample["sample_id"]
    rows = list(turns(sample["conversation"]))
    drafts = [
        MemoryDraft(
            content=text,
            scope=ScopeNames(user=sample_id),
            subject=speaker,
            session=f"{sample_id}-{session}",
            event=turn_id,
            created_at=at,
            kind="episodic",
            valid_from=None,
        )
        for turn_id, session, speaker, text, at in rows
    ]
    stored = remember(writer=writer, drafts=drafts)
    return {result.id: row[0] for result, row in zip(stored, rows, strict=True)}


def measure(writer: Any, samples: list[dict[str, Any]]) -> dict[str, dict[str, list[float]]]:
    """Per category and over 1 to 4: the share of each question's turns among the first k, and nDCG@10."""
    from memoryhub.common import clock
    from memoryhub.long_term_memory.queries import search_memories
    from memoryhub.long_term_memory.search.request import SearchRequest
    from memoryhub.long_term_memory.services import ScopeNames

    figures: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for sample in samples:
        turn_of = store(writer, sample)
        scope = ScopeNames(user=sample["sample_id"])
        for question, category, gold in questions(sample, set(turn_of.values())):
            request = SearchRequest(query=question, scope=scope, limit=max(CUTS))
            hits = search_memories(writer.workspace, request, now=clock.now()).hits
            ranked = [turn_of[hit.memory.public_id] for hit in hits if hit.memory.public_id in turn_of]
            groups = [CATEGORIES[category], *(["all"] if category != 5 else [])]
            for group in groups:
                for cut in CUTS:
                    figures[group][f"r@{cut}"].append(len(gold & set(ranked[:cut])) / len(gold))
                figures[group]["ndcg@10"].append(ndcg(ranked[:10], gold))
    return figures


def ndcg(ranked: list[str], gold: set[str]) -> float:
    gained = sum(1 / math.log2(place + 2) for place, turn in enumerate(ranked) if turn in gold)
    return gained / sum(1 / math.log2(place + 2) for place in range(min(len(gold), 10)))


def main() -> None:
    path = os.environ.get(SETTING)
    if not path:
        print(f"{SETTING} names no conversations; nothing to measure", file=sys.stderr)
        return
    samples = json.loads(Path(path).read_text())
    with throwaway_hub() as workspace:
        from django.test import override_settings

        from memoryhub.long_term_memory.services import Writer
        from memoryhub.workspaces.models import Workspace
        from memoryhub.workspaces.principals import command_principal

        for embedder, goal in GOALS.items():
            with override_settings(EMBEDDER=embedder):
                shelf = Workspace.objects.create(name=f"bench-{embedder}", created_at=workspace.created_at)
                figures = measure(Writer.of(command_principal(shelf, "bench"), door="bench"), samples)
            for group, values in sorted(figures.items()):
                for name, shares in sorted(values.items()):
                    aim = f">= {goal}" if (group, name) == ("all", "r@10") else ""
                    value = 100 * sum(shares) / len(shares)
                    show(f"recall_{embedder}_{name}", value, "%", aim, category=group, questions=len(shares))


if __name__ == "__main__":
    main()
