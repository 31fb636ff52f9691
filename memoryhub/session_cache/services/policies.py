"""What may be done with a tool's results."""

from dataclasses import dataclass
from typing import Any

from django.db import transaction

from memoryhub.audit.services import record_event
from memoryhub.common import clock, errors
from memoryhub.invalidation.domain.dependency import is_storable_text
from memoryhub.invalidation.strategies import DEFAULT_STRATEGY, STRATEGIES
from memoryhub.invalidation.strategies.ttl import MAX_TTL_SECONDS
from memoryhub.session_cache.models import ToolPolicy
from memoryhub.workspaces.models import Workspace
from memoryhub.workspaces.principals import Actor


class BadPolicy(errors.Invalid):
    slug = "bad-tool-policy"
    title = "This tool policy breaks a rule"


@dataclass(frozen=True, slots=True)
class PolicyChoice:
    """A policy as it is set, whole. Nothing is cached unless `cacheable` says so."""

    cacheable: bool = False
    ttl_seconds: float | None = None
    strategy: str = DEFAULT_STRATEGY
    scope: str = "session"
    invalidates: tuple[str, ...] = ()
    may_change_anything: bool = False
    ignore_unknown_writes: bool = False
    error_ttl_seconds: float = 0.0
    stale_while_revalidate_seconds: float = 0.0
    ttl_jitter: float = 0.0
    verify_share: float = 0.0
    redact_params: tuple[str, ...] = ()
    normalize_params: tuple[str, ...] = ()

    def as_fields(self) -> dict[str, Any]:
        """Return the fields as the model takes them."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def set_tool_policy(*, workspace: Workspace, tool: str, choice: PolicyChoice, actor: Actor) -> ToolPolicy:
    """Set a tool's policy, replacing the one before; the log says by whom."""
    _check(tool, choice)
    fields = choice.as_fields()
    with transaction.atomic():
        policy, created = ToolPolicy.objects.update_or_create(
            workspace=workspace, tool=tool, defaults={**fields, "updated_at": clock.now()}
        )
        record_event(
            workspace=workspace,
            actor=actor,
            action="tool_policy.created" if created else "tool_policy.changed",
            subject_type="tool_policy",
            subject_id=tool,
            detail=fields,
        )
    return policy


def _check(tool: str, choice: PolicyChoice) -> None:
    if not is_storable_text(tool, 800) or len(tool) > 200:
        raise BadPolicy("A tool's name takes 1 to 200 characters.")
    if choice.strategy not in STRATEGIES:
        raise BadPolicy(f"strategy is one of {', '.join(STRATEGIES)}.")
    if choice.scope not in ToolPolicy.Scope.values:
        raise BadPolicy(f"scope is one of {', '.join(ToolPolicy.Scope.values)}.")
    for name in ("ttl_seconds", "error_ttl_seconds", "stale_while_revalidate_seconds"):
        check_seconds(name, getattr(choice, name))
    for name in ("ttl_jitter", "verify_share"):
        if not 0 <= getattr(choice, name) <= 1:
            raise BadPolicy(f"{name} is a share from 0 to 1.")
    for name in ("invalidates", "redact_params", "normalize_params"):
        words = getattr(choice, name)
        if len(words) > 100 or not all(is_storable_text(word, 800) for word in words):
            raise BadPolicy(f"{name} takes up to 100 names.")
    if choice.cacheable and choice.may_change_anything:
        raise BadPolicy("A tool that may change anything is not cached: remove cacheable, or may_change_anything.")
    if choice.scope == ToolPolicy.Scope.WORKSPACE and choice.invalidates and choice.cacheable:
        raise BadPolicy("A tool that changes something can't share its results: remove invalidates, or the scope.")


def check_seconds(name: str, seconds: float | None) -> None:
    """Raise BadPolicy unless the time is none, 0, or a sensible number of seconds; it is never negative."""
    if seconds is not None and not 0 <= seconds <= MAX_TTL_SECONDS:
        raise BadPolicy(f"{name} is 0 to {MAX_TTL_SECONDS} seconds, and not negative.", field=name)
