"""The doctor over recorded requests: fingerprints are kept, each request is compared with the one before it.

Bodies are not kept. Of each conversation the last one stays compressed for at most 65 minutes, so that the next request can be
compared text by text; then hashes and lengths remain. Excerpts of the differing text are stored only where the workspace says so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet

from memoryhub.audit.services import record_event
from memoryhub.common import clock
from memoryhub.prompt_cache.domain.blocks import Prompt
from memoryhub.prompt_cache.domain.doctor import Diagnosis as Answer
from memoryhub.prompt_cache.domain.doctor import diagnose
from memoryhub.prompt_cache.domain.exchange import Exchange, find_tariff
from memoryhub.prompt_cache.domain.exchange_body import names_previous, reason_of
from memoryhub.prompt_cache.domain.fingerprint import keep_body, pack, read_kept_body, unpack
from memoryhub.prompt_cache.domain.pricing import PriceBook
from memoryhub.prompt_cache.domain.request_body import BadRequestBody, read_prompt
from memoryhub.prompt_cache.models import Diagnosis, RecordState, RequestFingerprint, UsageRecord
from memoryhub.prompt_cache.price_books import get_price_book
from memoryhub.prompt_cache.queries.replays import modifiers_of, tokens_of
from memoryhub.work.services import enqueue_job
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor

BODY_KEPT_MINUTES = 60  # the longest lifetime of a cache entry; the sweep comes every five minutes, so 65 at the most
PENDING_SECONDS = 10  # bulk diagnoses are gathered for so long
EXAMINED_AT_ONCE = 20  # more responses in one call are left to a job
CHUNK = 1_000
EXCERPTS_SETTING = "doctor_excerpts"  # in a workspace's settings: true keeps excerpts of the differing text


@dataclass(frozen=True, slots=True)
class SentRequest:
    """The request behind a recorded response."""

    message_id: str
    body: Any
    answered_no_change: bool = False  # the response carried `"diagnostics": null`


def examine(*, workspace: Workspace, message_ids: Sequence[str], requests: Iterable[SentRequest] = ()) -> None:
    """Keep the requests' fingerprints and diagnose these responses; many without bodies are left to a job.

    A request that comes along with a response which is known already is kept if it is news.
    """
    sent = {one.message_id: one for one in requests}
    late = [key for key in sent if key not in message_ids]
    if late:
        kept = RequestFingerprint.objects.filter(record__workspace=workspace, record__message_id__in=late)
        known = set(kept.values_list("record__message_id", flat=True))
        message_ids = [*message_ids, *(key for key in late if key not in known)]
    now_ids = list(message_ids) if len(message_ids) <= EXAMINED_AT_ONCE else [key for key in message_ids if key in sent]
    if len(now_ids) < len(message_ids):
        leave_diagnosis(workspace=workspace)
    records = UsageRecord.objects.of(workspace).responses().filter(message_id__in=now_ids)
    examiner = _Examiner(workspace)
    examiner.known = {one.pk: one for one in Diagnosis.objects.filter(record__in=records, basis="body")}
    for record in sorted(records, key=lambda one: (one.occurred_at, one.pk)):
        examiner.examine(record, sent.get(record.message_id))
    examiner.store()


def leave_diagnosis(*, workspace: Workspace) -> None:
    """Leave a job that diagnoses what was recorded without it; calls within ten seconds share one."""
    now = clock.now()
    slot = int(now.timestamp()) // PENDING_SECONDS
    key = f"diagnose:{workspace.pk}:{slot}"
    enqueue_job(
        workspace=workspace, kind="diagnose", idempotency_key=key, run_after=now + timedelta(seconds=PENDING_SECONDS)
    )


def diagnose_pending(*, workspace: Workspace) -> int:
    """Diagnose all responses that were recorded without it, chain by chain; return how many."""
    pending = UsageRecord.objects.of(workspace).responses().filter(diagnosis__isnull=True)
    done = 0
    for chain in pending.values_list("chain", flat=True).order_by("chain").distinct():
        while records := list(pending.filter(chain=chain).order_by("occurred_at", "id")[:CHUNK]):
            examiner = _Examiner(workspace)
            previous = (
                _before(records[0], UsageRecord.objects.of(workspace).responses().filter(chain=chain))
                if chain
                else None
            )
            for record in records:
                examiner.compare_usage(previous, record)
                previous = record if chain else None
            examiner.store()
            done += len(records)
    return done


def forget_kept_bodies() -> int:
    """Forget bodies whose time is over, and fingerprints and excerpts past their retention; return how many bodies."""
    now = clock.now()
    due = RequestFingerprint.objects.filter(kept_until__lte=now)
    forgotten = due.update(kept_body=None, kept_until=None)
    oldest = now - timedelta(days=settings.FINGERPRINT_DAYS)
    RequestFingerprint.objects.filter(created_at__lt=oldest).delete()
    Diagnosis.objects.with_excerpts().filter(created_at__lt=oldest).update(before="", after="")
    return forgotten


def keep_excerpts(*, workspace: Workspace, actor: Actor, keep: bool) -> None:
    """Switch excerpts of the differing text on or off; off removes those that are stored."""
    with transaction.atomic():
        workspace = Workspace.objects.select_for_update().get(pk=workspace.pk)
        workspace.settings = {**workspace.settings, EXCERPTS_SETTING: keep}
        workspace.save(update_fields=["settings"])
        removed = 0
        if not keep:
            removed = Diagnosis.objects.of(workspace).with_excerpts().update(before="", after="")
        record_event(
            workspace=workspace,
            actor=actor,
            action="doctor.excerpts_kept" if keep else "doctor.excerpts_removed",
            subject_type="workspace",
            subject_id=str(workspace.pk),
            detail={"removed": removed},
        )


def conversation_key(prompt: Prompt) -> str:
    """Return what two requests of one conversation share: its first message."""
    first = next((block for block in prompt.blocks if block.section == "messages"), None)
    return first.digest.hex() if first else ""


def static_key(prompt: Prompt) -> str:
    """Return what two requests of one agent share: tools and system prompt."""
    digest = hashlib.sha256()
    for block in prompt.blocks:
        if block.section != "messages":
            digest.update(block.digest)
    return digest.hexdigest()[:32]


# Counters may be completed later, when the text is gone; what was seen in it stays.
_SEEN_IN_TEXT = ("detail", "path", "kind", "offset", "before", "after", "fix", "basis")


class _Examiner:
    """Compares records with their predecessors and writes what it found at the end, in one statement."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.book: PriceBook = get_price_book(workspace)
        self.keep_excerpts = workspace.settings.get(EXCERPTS_SETTING) is True
        self.found: list[Diagnosis] = []
        self.kept: list[tuple[RequestFingerprint, Prompt]] = []  # of this batch, in order of start
        self.let_go: list[int] = []  # records whose body the next request has been compared with
        self.known: dict[int, Diagnosis] = {}  # what a comparison of texts found before, of the same records
        self.now = clock.now()

    def examine(self, record: UsageRecord, sent: SentRequest | None) -> None:
        """Diagnose one record, with its request where it came along or its fingerprint is known."""
        prompt = self._keep(record, sent) if sent else None
        if prompt is None:
            stored = RequestFingerprint.objects.filter(record=record).select_related("record").first()
            prompt = self._prompt_of(stored) if stored else None
        if prompt is None:
            chain = UsageRecord.objects.of(self.workspace).responses().filter(chain=record.chain)
            self.compare_usage(_before(record, chain) if record.chain else None, record)
            return
        previous, old_prompt = self._previous(record, prompt, sent)
        no_change = sent is not None and sent.answered_no_change and names_previous(sent.body)
        current = replace(_exchange(record, prompt), provider_saw_no_change=no_change)
        before = _exchange(previous, old_prompt) if previous else None
        self._note(record, previous, current, self._ask(before, current, record))

    def compare_usage(self, previous: UsageRecord | None, record: UsageRecord) -> None:
        """Diagnose from usage and time alone."""
        current = _exchange(record, None)
        before = _exchange(previous, None) if previous else None
        self._note(record, previous, current, self._ask(before, current, record))

    def store(self) -> None:
        """Write fingerprints and diagnoses, each by one statement; those that exist are replaced."""
        fingerprints = [fingerprint for fingerprint, _ in self.kept]
        names = ["packed", "conversation", "static", "kept_body", "kept_until", "created_at"]
        RequestFingerprint.objects.bulk_create(
            fingerprints, batch_size=100, update_conflicts=True, unique_fields=["record"], update_fields=names
        )
        if self.let_go:
            RequestFingerprint.objects.filter(pk__in=self.let_go).update(kept_body=None, kept_until=None)
        names = [field.name for field in Diagnosis._meta.concrete_fields if field.name not in ("record", "created_at")]
        Diagnosis.objects.bulk_create(
            self.found, batch_size=200, update_conflicts=True, unique_fields=["record"], update_fields=names
        )

    def _ask(self, before: Exchange | None, current: Exchange, record: UsageRecord) -> Answer:
        size = current.tokens.prompt if current.tokens else 0
        tariff = find_tariff(self.book, record.model, record.occurred_at, size, modifiers_of(record))
        return diagnose(before, current, (), tariff)

    def _keep(self, record: UsageRecord, sent: SentRequest) -> Prompt | None:
        """Store the request's fingerprint, and its body for the next comparison."""
        try:
            prompt = read_prompt(sent.body, model=record.model)
        except BadRequestBody:
            return None
        fingerprint = RequestFingerprint(
            record=record,
            packed=pack(prompt),
            conversation=conversation_key(prompt),
            static=static_key(prompt),
            kept_body=keep_body(sent.body) or None,
            kept_until=self.now + timedelta(minutes=BODY_KEPT_MINUTES),
            created_at=self.now,
        )
        self.kept.append((fingerprint, prompt))
        return prompt

    def _previous(
        self, record: UsageRecord, prompt: Prompt, sent: SentRequest | None
    ) -> tuple[UsageRecord | None, Prompt | None]:
        """Return the request that this one continues, with its prompt; older bodies of the conversation are let go.

        1. the message that the request itself names
        2. the latest of the same chain that begins with the same first message, or has tools, system and some message in common
        3. without a chain, the latest of the last 65 minutes with the same first message
        """
        named = _named_previous(sent)
        in_batch = self._continued_in_batch(record, prompt, named)
        if in_batch is not None:
            fingerprint, old_prompt = in_batch
            fingerprint.kept_body = fingerprint.kept_until = None
            return fingerprint.record, old_prompt
        stored = self._fingerprints_before(record)
        found = stored.filter(record__message_id=named).first() if named else None
        if found is None:
            found = self._continued(record, prompt, stored)
        if found is None:
            return None, None
        self.let_go.append(found.pk)
        return found.record, self._prompt_of(found)

    def _continued_in_batch(
        self, record: UsageRecord, prompt: Prompt, named: str
    ) -> tuple[RequestFingerprint, Prompt] | None:
        """Return the request before among those of this batch, by the same rules."""
        conversation, static = conversation_key(prompt), static_key(prompt)
        shared = {block.digest for block in prompt.blocks if block.section == "messages"}
        for fingerprint, old in reversed(self.kept):
            other = fingerprint.record
            if other.pk == record.pk or (named and other.message_id != named):
                continue
            if named:
                return fingerprint, old
            if other.chain != record.chain:
                continue
            if fingerprint.conversation == conversation and conversation:
                return fingerprint, old
            same_agent = bool(record.chain) and fingerprint.static == static
            if same_agent and any(block.digest in shared for block in old.blocks if block.section == "messages"):
                return fingerprint, old
        return None

    def _fingerprints_before(self, record: UsageRecord) -> QuerySet[RequestFingerprint]:
        earlier = Q(record__occurred_at__lt=record.occurred_at) | Q(
            record__occurred_at=record.occurred_at, record__lt=record.pk
        )
        return (
            RequestFingerprint.objects.filter(earlier, record__workspace=self.workspace)
            .select_related("record")
            .order_by("-record__occurred_at", "-record")
        )

    def _continued(
        self, record: UsageRecord, prompt: Prompt, stored: QuerySet[RequestFingerprint]
    ) -> RequestFingerprint | None:
        conversation, static = conversation_key(prompt), static_key(prompt)
        if not record.chain:
            since = record.occurred_at - timedelta(minutes=BODY_KEPT_MINUTES)
            recent = stored.filter(record__chain="", record__occurred_at__gte=since)
            return recent.filter(conversation=conversation).first() if conversation else None
        chain = stored.filter(record__chain=record.chain)
        candidate = chain.filter(Q(conversation=conversation) | Q(static=static)).first()
        if candidate is None or candidate.conversation == conversation:
            return candidate
        shared = {block.digest for block in prompt.blocks if block.section == "messages"}
        old = unpack(bytes(candidate.packed))
        if any(block.digest in shared for block in old.blocks if block.section == "messages"):
            return candidate
        return chain.filter(conversation=conversation).first()

    def _prompt_of(self, stored: RequestFingerprint) -> Prompt:
        """Return the stored request: whole while its body is kept, else its hashes."""
        if stored.kept_body and stored.kept_until and stored.kept_until > self.now:
            return read_prompt(read_kept_body(bytes(stored.kept_body)), model=stored.record.model)
        return unpack(bytes(stored.packed))

    def _note(self, record: UsageRecord, previous: UsageRecord | None, current: Exchange, answer: Answer) -> None:
        keep = self.keep_excerpts
        known = self.known.get(record.pk)
        diagnosis = Diagnosis(
            record=record,
            workspace=self.workspace,
            previous=previous,
            occurred_at=record.occurred_at,
            session=record.session,
            project=record.project,
            model=record.model,
            verdict=answer.verdict,
            cause=answer.cause,
            detail=answer.detail or "",
            path=answer.path or "",
            kind=answer.kind or "",
            offset=answer.offset,
            before=(answer.before or "") if keep else "",
            after=(answer.after or "") if keep else "",
            fix=answer.fix,
            also=list(answer.also),
            basis=answer.basis,
            expected_tokens=answer.expected_tokens,
            read_tokens=answer.read_tokens,
            missed_tokens=answer.missed_tokens,
            missed_pico=answer.missed_pico,
            reported=answer.reported and answer.verdict != "first",
            provider_reason=(answer.provider_reason or "")[:200],
            provider_saw_no_change=current.provider_saw_no_change,
            agrees=answer.agrees,
            created_at=self.now,
        )
        if known is not None and diagnosis.basis == "hashes" and known.cause == diagnosis.cause:
            for name in _SEEN_IN_TEXT:
                setattr(diagnosis, name, getattr(known, name))
        self.found.append(diagnosis)


def _before(record: UsageRecord, chain: QuerySet[UsageRecord]) -> UsageRecord | None:
    earlier = Q(occurred_at__lt=record.occurred_at) | Q(occurred_at=record.occurred_at, id__lt=record.pk)
    return chain.filter(earlier).order_by(F("occurred_at").desc(), F("id").desc()).first()


def _named_previous(sent: SentRequest | None) -> str:
    return str(sent.body["diagnostics"]["previous_message_id"]) if sent and names_previous(sent.body) else ""


def _exchange(record: UsageRecord, prompt: Prompt | None) -> Exchange:
    usable = record.state != RecordState.EXCLUDED
    return Exchange(
        prompt=prompt,
        tokens=tokens_of(record) if usable else None,
        model=record.model,
        started_at=_started(record),
        first_byte_at=record.first_byte_at,
        ended_at=record.ended_at,
        provider_reason=reason_of(record.diagnostics),
    )


def _started(record: UsageRecord) -> datetime:
    return record.started_at or record.occurred_at
