"""Erasing for good, in every room: a memory, or everything of an agent, a user or a project.

Beside the memories themselves their words stand in request bodies and excerpts that the doctor holds, in events and tool
results of sessions, in what jobs and replies remember, and in files that were uploaded. All of these go; the ledger's
numbers stay. Only backups are left: they are named to whoever erases.
"""

from dataclasses import asdict, dataclass, field
from typing import Any

from django.db import models

from memoryhub.audit.models import IdempotentReply
from memoryhub.flows.memory_uploads import drop_uploads
from memoryhub.long_term_memory.domain.scoping import ScopeNames
from memoryhub.long_term_memory.models import RecallReceipt
from memoryhub.long_term_memory.services import forgetting
from memoryhub.long_term_memory.services.writer import Writer
from memoryhub.prompt_cache.models import Diagnosis, RequestFingerprint
from memoryhub.prompt_cache.services.erasing import forget_request_texts
from memoryhub.session_cache.models import Blob, SessionEvent, ToolResult
from memoryhub.session_cache.services.erasing import ErasedSessions, erase_sessions
from memoryhub.work.models import Job
from memoryhub.work.services import forget_details
from memoryhub.workspaces.models import Agent, Session, Workspace

# Jobs that hold numbers and names only; the parameters, results and errors of all others may quote memories.
QUIET_JOBS = ("decay", "diagnose", "embed_memories", "erase", "find_out", "reprice", "tend_ledger")
OTHER_TABLES: tuple[type[models.Model], ...] = (
    Blob,
    SessionEvent,
    ToolResult,
    Session,
    RequestFingerprint,
    Diagnosis,
    Job,
)


@dataclass(frozen=True, slots=True)
class Erasure:
    """What went. `sessions_kept` are sessions that stay because a session of somebody else was forked from them."""

    memories: int = 0
    versions: int = 0
    receipts: int = 0
    sessions: int = 0
    sessions_kept: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def erase_memory(*, writer: Writer, memory_id: str) -> Erasure:
    """Remove every trace of one memory; raises UnknownMemory."""
    erased = forgetting.erase_memory(writer=writer, memory_id=memory_id, scrub=False)
    _erase_quotes(writer.workspace)
    return Erasure(erased.memories, erased.versions, erased.receipts)


def erase_scope(*, writer: Writer, scope: ScopeNames) -> Erasure:
    """Remove everything of an agent, a user or a project; running it again finds nothing more to do."""
    erased = forgetting.erase_scope(writer=writer, scope=scope)
    sessions = list(_sessions_of(writer.workspace, scope))
    receipts = RecallReceipt.objects.filter(workspace=writer.workspace, session__in=sessions)
    receipt_ids = erased.receipt_ids | set(receipts.values_list("pk", flat=True))
    receipts.delete()
    done = erase_sessions(sessions) if sessions else ErasedSessions()
    if scope.agent and not (scope.user or scope.project):
        Agent.objects.filter(workspace=writer.workspace, name=scope.agent).delete()
    _erase_quotes(writer.workspace)
    return Erasure(erased.memories, erased.versions, len(receipt_ids), done.count, done.kept)


def _sessions_of(workspace: Workspace, scope: ScopeNames) -> models.QuerySet[Session]:
    columns = {"agent": "agent__name", "user": "user", "project": "project"}
    return Session.objects.filter(
        workspace=workspace, **{columns[name]: value for name, value in scope.named().items()}
    )


def _erase_quotes(workspace: Workspace) -> None:
    """Remove what may quote erased words, whosever they are, and scrub the files once."""
    forget_request_texts(workspace=workspace)
    IdempotentReply.objects.filter(workspace=workspace).delete()
    forget_details(workspace=workspace, except_kinds=QUIET_JOBS)
    drop_uploads(workspace)
    forgetting.scrub_files(OTHER_TABLES)
