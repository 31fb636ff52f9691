"""MCP `memory.jsonl`, a knowledge graph: entities with observations, and relations, one object a line.

One memory per observation (subject: the entity; tags `entity:NAME`, `type:TYPE`), one per relation ("A works_at B",
tags `entity:A`, `entity:B`, `relation:works_at`), and one that holds the place of an entity without observations.
Where each stood is kept, so the same graph comes out again.
"""

from collections.abc import Iterator
from typing import Any, BinaryIO

from memoryhub.interchange.convert import origin_of, without, write_json_lines
from memoryhub.interchange.fields import keep_origin, read_content, read_name, read_tags
from memoryhub.interchange.json_stream import read_json
from memoryhub.interchange.record import MAX_TAG_CHARACTERS, BadRecord, MemoryRecord, Problem, Reading, Records

NAME = "mcp"
LIST_KEYS = ("items",)
ENTITY_TAG, TYPE_TAG, RELATION_TAG = "entity:", "type:", "relation:"
# The entity that holds memories which name none.
DEFAULT_ENTITY, DEFAULT_TYPE = "memories", "memory"


def read(stream: BinaryIO) -> Reading:
    for element in read_json(stream, LIST_KEYS):
        if isinstance(element, Problem):
            yield element
            continue
        line, value = element
        try:
            yield from _to_records(value, line)
        except BadRecord as error:
            yield Problem(line, str(error))


def _to_records(data: Any, line: int) -> Reading:
    kind = data.get("type") if isinstance(data, dict) else None
    if kind == "entity":
        yield from _entity(data, line)
    elif kind == "relation":
        yield _relation(data, line)
    else:
        raise BadRecord("neither an entity nor a relation")


def _entity(data: dict[str, Any], line: int) -> Reading:
    name = _required(data, "name")
    entity_type = read_name(data.get("entityType"), "entityType") or ""
    observations = data.get("observations", [])
    if not isinstance(observations, list):
        raise BadRecord("observations is not a list")
    tags = _tags((ENTITY_TAG, name), (TYPE_TAG, entity_type))
    entity = without(data, "observations")
    if not observations:
        origin = keep_origin(NAME, {"entity": entity, "line": line, "placeholder": True})
        yield MemoryRecord(line=line, content=f"{name} ({entity_type})", subject=name, tags=tags, origin=origin)
    for index, observation in enumerate(observations):
        try:
            content = read_content(observation, f"observation {index + 1}")
        except BadRecord as error:
            yield Problem(line, str(error))
            continue
        origin = keep_origin(NAME, {"entity": entity, "line": line, "index": index})
        yield MemoryRecord(line=line, content=content, subject=name, tags=tags, origin=origin)


def _relation(data: dict[str, Any], line: int) -> MemoryRecord:
    source, target, relation = (_required(data, key) for key in ("from", "to", "relationType"))
    return MemoryRecord(
        line=line,
        content=f"{source} {relation} {target}",
        subject=source,
        tags=_tags((ENTITY_TAG, source), (ENTITY_TAG, target), (RELATION_TAG, relation)),
        origin=keep_origin(NAME, {"relation": data, "line": line}),
    )


def _required(data: dict[str, Any], key: str) -> str:
    value = read_name(data.get(key), key)
    if value is None:
        raise BadRecord(f"{key} is missing")
    return value


def _tags(*pairs: tuple[str, str]) -> tuple[str, ...]:
    return read_tags([(prefix + value)[:MAX_TAG_CHARACTERS] for prefix, value in pairs if value])


def write(records: Records) -> Iterator[str]:
    """Entities first, then relations, as the reference server writes them. The graph is grouped in memory, the
    contents of one graph, since an entity's observations may lie anywhere among the records."""
    graph = _Graph()
    for record in records:
        graph.add(record)
    return write_json_lines(graph.objects())


class _Graph:
    def __init__(self) -> None:
        self._entities: dict[tuple[str, str], dict[str, Any]] = {}
        self._observations: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
        self._first_lines: dict[tuple[str, str], int] = {}
        self._relations: list[tuple[int, dict[str, Any]]] = []
        self._counted = 0

    def add(self, record: MemoryRecord) -> None:
        self._counted += 1
        kept = origin_of(record, NAME) or {}
        relation = kept.get("relation")
        if relation is None and not kept:
            relation = _relation_of(record)
        if relation is not None:
            self._relations.append((self._place(kept), relation))
            return
        entity = kept.get("entity") or _entity_of(record)
        key = (str(entity.get("name")), str(entity.get("entityType", "")))
        self._entities.setdefault(key, entity)
        self._first_lines.setdefault(key, self._place(kept))
        observations = self._observations.setdefault(key, [])
        placeholder = f"{key[0]} ({key[1]})"
        if not kept.get("placeholder") or record.content != placeholder:
            observations.append((self._place(kept), kept.get("index", self._counted), record.content))

    def _place(self, kept: dict[str, Any]) -> int:
        """Where the file had it; what came later follows behind."""
        return int(kept.get("line", 1_000_000_000 + self._counted))

    def objects(self) -> Iterator[dict[str, Any]]:
        for key in sorted(self._entities, key=lambda key: self._first_lines[key]):
            texts = dict.fromkeys(text for _, _, text in sorted(self._observations[key]))
            yield {**self._entities[key], "observations": list(texts)}
        for _, relation in sorted(self._relations, key=lambda pair: pair[0]):
            yield relation


def _entity_of(record: MemoryRecord) -> dict[str, Any]:
    """The entity that a memory of another origin belongs to: by its tags, else its subject, else whose it is."""
    named = _tagged(record, ENTITY_TAG)
    name = next(iter(named), "") or record.subject or record.user or record.project or record.agent or DEFAULT_ENTITY
    entity_type = next(iter(_tagged(record, TYPE_TAG)), DEFAULT_TYPE)
    return {"type": "entity", "name": name, "entityType": entity_type}


def _relation_of(record: MemoryRecord) -> dict[str, Any] | None:
    """A relation is told by its tags: two entities and what joins them."""
    ends, relations = _tagged(record, ENTITY_TAG), _tagged(record, RELATION_TAG)
    if len(ends) != 2 or len(relations) != 1:
        return None
    return {"type": "relation", "from": ends[0], "to": ends[1], "relationType": relations[0]}


def _tagged(record: MemoryRecord, prefix: str) -> list[str]:
    return [tag.removeprefix(prefix) for tag in record.tags if tag.startswith(prefix)]
