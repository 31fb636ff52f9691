"""The decay policy: rules that are checked, what they would move, and curves drawn anew by them.

Saving is two steps: the rules, at once, and the curves, chunk by chunk under the same change set. A large workspace leaves
the second step to a job; running it again changes nothing.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from django.db import connection, transaction
from django.db.models import Max, Min

from memoryhub.audit.models import ChangeSet
from memoryhub.audit.services import open_change_set, record_event
from memoryhub.common import clock, errors
from memoryhub.long_term_memory.domain.decay import DecayPolicy, PolicyBook, draw_curve
from memoryhub.long_term_memory.domain.lifecycle import Standing, judge
from memoryhub.long_term_memory.models import DecayRules, Kind, Memory, MemoryState, MemoryTag
from memoryhub.long_term_memory.queries.policy import (
    facts_of_curve,
    get_policy_book,
    policy_as_dict,
    read_policy_book,
)
from memoryhub.long_term_memory.rows import execute_many, insert_rows
from memoryhub.long_term_memory.services import deriving
from memoryhub.long_term_memory.services import revisions as revising
from memoryhub.long_term_memory.services.writer import Writer

CHUNK = 1_000  # curves of one transaction
SAMPLE_STRETCHES, SAMPLE_STRETCH = 10, 100  # memories that an estimate looks at: ten stretches all along the workspace
MAX_ITEMS = 200  # of a report
Progress = Callable[[int, int], None]


class InvalidPolicy(errors.Invalid):
    slug = "invalid-policy"
    title = "This decay policy can't be used"


@dataclass(frozen=True, slots=True)
class PolicyPreview:
    """How many of `matched` memories a policy moves or would move, by new state, and the book it makes."""

    matched: int
    changes: dict[str, int]
    items: list[dict[str, Any]]
    book: PolicyBook
    change_set: ChangeSet | None = None


def build_policy_book(current: PolicyBook, changes: dict[str, Any]) -> PolicyBook:
    """A book with some fields changed, every policy in it checked; raises InvalidPolicy."""
    given = dict(changes)
    by_kind = given.pop("by_kind", None)
    by_tag = given.pop("by_tag", None)
    base = {**policy_as_dict(current.base), **given}
    try:
        book = read_policy_book(
            base,
            by_kind if by_kind is not None else _plain(current.by_kind),
            by_tag if by_tag is not None else _plain(current.by_tag),
        )
        unknown = set(book.by_kind) - set(Kind.values)
        if unknown:
            raise ValueError(f"by_kind takes {', '.join(Kind.values)}")
        for policy in (
            book.base,
            *(book.policy_for(kind, frozenset()) for kind in book.by_kind),
            *(book.policy_for("semantic", frozenset({tag})) for tag in book.by_tag),
        ):
            policy.validated()
    except (TypeError, ValueError) as error:
        raise InvalidPolicy(f"{error}.") from error
    return book


def _plain(book: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    return {
        name: {key: sorted(value) if isinstance(value, frozenset) else value for key, value in fields.items()}
        for name, fields in book.items()
    }


def save_policy(*, writer: Writer, changes: dict[str, Any], dry_run: bool = False) -> PolicyPreview:
    """Change the decay policy; a dry run says which memories would change state, and stores nothing.

    Curves are drawn anew in chunks; the rules and all transitions are one change set.
    """
    if dry_run:
        book = build_policy_book(get_policy_book(writer.workspace), changes)
        return _redraw_all(writer, book, clock.now(), None)
    return redraw_in_steps(writer=writer, change_set=put_in_force(writer=writer, changes=changes))


def put_in_force(*, writer: Writer, changes: dict[str, Any]) -> ChangeSet:
    """Store the rules and return their change set; the curves still follow the old ones until they are drawn anew."""
    book = build_policy_book(get_policy_book(writer.workspace), changes)
    with transaction.atomic():
        change_set = open_change_set(
            workspace=writer.workspace,
            actor=writer.actor,
            action="decay policy",
            reason=writer.reason,
            door=writer.door,
        )
        store_rules(writer, book, clock.now(), change_set)
    return change_set


def redraw_in_steps(*, writer: Writer, change_set: ChangeSet, on_progress: Progress | None = None) -> PolicyPreview:
    """Draw every curve by the rules in force, under the change set that put them there; again does no harm."""
    preview = _redraw_all(writer, get_policy_book(writer.workspace), clock.now(), change_set, on_progress)
    change_set.subject_count = max(change_set.subject_count, sum(preview.changes.values()))
    change_set.save(update_fields=["subject_count"])
    return preview


def estimate_policy(*, writer: Writer, changes: dict[str, Any]) -> PolicyPreview:
    """What a policy would do to a thousand memories from all along the workspace; nothing is stored."""
    book = build_policy_book(get_policy_book(writer.workspace), changes)
    preview, now = PolicyPreview(0, {}, [], book), clock.now()
    bounds = Memory.objects.filter(workspace=writer.workspace).aggregate(low=Min("id"), high=Max("id"))
    if bounds["low"] is None:
        return preview
    step = max(1, (bounds["high"] - bounds["low"] + 1) // SAMPLE_STRETCHES)
    seen, matched = 0, 0
    for start in range(bounds["low"], bounds["high"] + 1, step):
        rows = _next_rows(writer, max(seen, start - 1), SAMPLE_STRETCH)
        if rows:
            seen, matched = rows[-1].pk, matched + len(rows)
            _note(preview, _redraw_chunk(writer, rows, book, now, None))
    return PolicyPreview(matched, preview.changes, preview.items, book)


def store_rules(writer: Writer, book: PolicyBook, now: datetime, change_set: ChangeSet) -> None:
    """Write the rules and what they were before, so that the change set can be reverted."""
    before = DecayRules.objects.filter(workspace=writer.workspace).first()
    stored = {"base": policy_as_dict(book.base), "by_kind": _plain(book.by_kind), "by_tag": _plain(book.by_tag)}
    DecayRules.objects.update_or_create(workspace=writer.workspace, defaults={**stored, "changed_at": now})
    record_event(
        workspace=writer.workspace,
        actor=writer.actor,
        action="decay policy",
        subject_type="decay_policy",
        subject_id=writer.workspace.name,
        detail={
            "before": {"base": before.base, "by_kind": before.by_kind, "by_tag": before.by_tag} if before else None,
            "after": stored,
        },
        change_set=change_set,
    )


def redraw_under(writer: Writer, book: PolicyBook, change_set: ChangeSet, on_progress: Progress | None = None) -> None:
    """Draw every curve anew under a policy that is stored already."""
    _redraw_all(writer, book, clock.now(), change_set, on_progress)


def _redraw_all(
    writer: Writer,
    book: PolicyBook,
    now: datetime,
    change_set: ChangeSet | None,
    on_progress: Progress | None = None,
) -> PolicyPreview:
    """Walk all memories outside the trash, in chunks; without a change set only count."""
    preview = PolicyPreview(0, {}, [], book, change_set)
    total = Memory.objects.filter(workspace=writer.workspace).out_of_trash().count() if on_progress else 0
    matched, last = 0, 0
    while rows := _next_rows(writer, last, CHUNK):
        last, matched = rows[-1].pk, matched + len(rows)
        _note(preview, _redraw_chunk(writer, rows, book, now, change_set))
        if on_progress:
            on_progress(matched, max(matched, total))
    return PolicyPreview(matched, preview.changes, preview.items, book, change_set)


def _next_rows(writer: Writer, after: int, count: int) -> list[Memory]:
    rows = Memory.objects.filter(workspace=writer.workspace, id__gt=after).out_of_trash()
    return list(rows.select_related("scope").order_by("id")[:count])


def _note(preview: PolicyPreview, moved: Sequence[tuple[Memory, str]]) -> None:
    for memory, state in moved:
        preview.changes[state] = preview.changes.get(state, 0) + 1
        if len(preview.items) < MAX_ITEMS:
            preview.items.append({"id": memory.public_id, "to": state, "importance": memory.importance})


def _redraw_chunk(
    writer: Writer, rows: list[Memory], book: PolicyBook, now: datetime, change_set: ChangeSet | None
) -> list[tuple[Memory, str]]:
    """Draw the curves of some rows; returns those that change state with their new one."""
    tags: dict[int, set[str]] = {memory.pk: set() for memory in rows}
    links = MemoryTag.objects.filter(
        memory_id__gte=rows[0].pk, memory_id__lte=rows[-1].pk, memory__workspace=writer.workspace
    )
    for memory_id, name in links.values_list("memory_id", "tag__name"):
        if memory_id in tags:
            tags[memory_id].add(name)
    moved, lasting = [], []
    for memory in rows:
        before = memory.state
        if redraw_for_policy(memory, frozenset(tags[memory.pk]), book, now):
            moved.append((memory, memory.state))
            if {before, memory.state} != {MemoryState.ACTIVE, MemoryState.FADING}:
                lasting.append(memory)  # fading is derived; every other move is a version
    if change_set is not None:
        with transaction.atomic():
            _store_curves(rows)
            _store_policy_versions(writer, lasting, tags, change_set, now)
            revising.update_document_facts(rows)
    return moved


def redraw_for_policy(memory: Memory, tags: frozenset[str], book: PolicyBook, now: datetime) -> bool:
    """Draw one curve and judge by it, also what the old curve archived; True where the state changes."""
    policy = book.policy_for(memory.kind, tags)
    curve = draw_curve(facts_of_curve(memory, tags), policy)
    before = memory.state
    by_curve = memory.state == MemoryState.ARCHIVED and memory.state_by_curve
    standing = Standing("active" if by_curve else memory.state, memory.state_since)  # type: ignore[arg-type]
    verdict = judge(standing, curve, policy, now)
    if verdict.state != before:
        memory.state, memory.state_since, memory.state_by_curve = verdict.state, verdict.since, True
        if verdict.state == "forgotten":
            memory.trashed_at, memory.dedupe_key = now, None
    deriving.store_curve(memory, curve, policy, now)
    return memory.state != before


_CURVE_FIELDS = (
    "daily_loss", "floor", "fades_at", "archives_at", "forgets_at", "strength", "strength_at", "state", "state_since",
    "state_by_curve", "trashed_at", "dedupe_key",
)  # fmt: skip


def _store_curves(rows: list[Memory]) -> None:
    fields: list[Any] = [Memory._meta.get_field(name) for name in _CURVE_FIELDS]
    sets = ", ".join(f"{name} = %s" for name in _CURVE_FIELDS)
    execute_many(
        f"UPDATE long_term_memory_memory SET {sets} WHERE id = %s AND version = %s",  # noqa: S608
        [(*(f.get_db_prep_save(getattr(m, f.attname), connection) for f in fields), m.pk, m.version) for m in rows],
    )


def _store_policy_versions(
    writer: Writer, rows: list[Memory], tags: dict[int, set[str]], change_set: ChangeSet, now: datetime
) -> None:
    """Versions for the rows whose state was moved for good, so that a revert brings them back."""
    versions = []
    for memory in rows:
        memory.version += 1
        revision = revising.Revision(memory, tags[memory.pk])
        revision.operation = "deleted" if memory.state == MemoryState.FORGOTTEN else "modified"
        versions.append(revising.version_of(revision, writer, change_set, now))
    execute_many(
        "UPDATE long_term_memory_memory SET version = %s WHERE id = %s AND version = %s",
        [(memory.version, memory.pk, memory.version - 1) for memory in rows],
    )
    insert_rows(versions)


def default_policy() -> dict[str, Any]:
    """The product's own policy."""
    return {**asdict(DecayPolicy()), "protected_tags": sorted(DecayPolicy().protected_tags)}
