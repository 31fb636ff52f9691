"""Writes about who: workspaces, people, keys, agents and sessions."""

import logging
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.validators import MaxLengthValidator, validate_slug
from django.db import IntegrityError, transaction

from memoryhub.common import clock, errors
from memoryhub.workspaces import keys
from memoryhub.workspaces.models import Agent, ApiKey, Membership, Role, Session, User, Workspace
from memoryhub.workspaces.principals import ALL_SCOPES, ROOM_SCOPES, Binding

logger = logging.getLogger(__name__)


class NameTaken(errors.Conflict):
    slug = "name-taken"
    title = "This name is taken"


class UnknownScope(errors.Invalid):
    slug = "unknown-scope"
    title = "Unknown scope"


class UnknownTimeZone(errors.Invalid):
    slug = "unknown-time-zone"
    title = "Unknown time zone"


class LastAdmin(errors.Conflict):
    slug = "last-admin"
    title = "A workspace needs an admin"


class PasswordNeeded(errors.Invalid):
    slug = "password-needed"
    title = "A new person needs a password"


class AlreadyMember(errors.Conflict):
    slug = "already-a-member"
    title = "Already a member"


class WeakPassword(errors.Invalid):
    slug = "weak-password"
    title = "This password is too weak"


def create_workspace(*, name: str, title: str = "", time_zone: str = "UTC") -> Workspace:
    """Create a workspace; its name is a slug and unique in the hub."""
    try:
        validate_slug(name)
        MaxLengthValidator(64)(name)
    except ValidationError as error:
        raise errors.Invalid("A workspace's name is 1 to 64 letters, digits, - and _.") from error
    check_time_zone(time_zone)
    try:
        with transaction.atomic():
            return Workspace.objects.create(name=name, title=title, time_zone=time_zone, created_at=clock.now())
    except IntegrityError as error:
        raise NameTaken(f"There is a workspace named {name} already.") from error


def check_time_zone(name: str) -> None:
    """Raise UnknownTimeZone unless the tz database knows the name."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # the tz library raises a different one for each kind of bad name
        raise UnknownTimeZone(f"{name[:80]!r} is not a time zone of the tz database, such as Asia/Shanghai.") from error


def create_user(*, name: str, password: str, workspace: Workspace, role: str, email: str = "") -> User:
    """Create a person with a role in a workspace."""
    if role not in Role.values:
        raise errors.Invalid(f"A role is one of {', '.join(Role.values)}.")
    check_password(password, User(username=name, email=email))
    try:
        with transaction.atomic():
            user = User.objects.create_user(username=name, email=email, password=password)
            Membership.objects.create(workspace=workspace, user=user, role=role, created_at=clock.now())
    except IntegrityError as error:
        raise NameTaken(f"There is a person named {name} already.") from error
    return user


def check_password(password: str, user: User | None = None) -> None:
    """Raise WeakPassword with every reason in its errors."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise WeakPassword(" ".join(error.messages)) from error


def describe_workspace(*, workspace: Workspace, title: str, time_zone: str) -> None:
    """Change a workspace's title and time zone."""
    check_time_zone(time_zone)
    workspace.title, workspace.time_zone = title.strip(), time_zone
    workspace.save(update_fields=["title", "time_zone"])


def add_member(*, workspace: Workspace, name: str, role: str, password: str = "") -> User:
    """Give somebody a role here; a name that the hub does not know needs a first password."""
    user = User.objects.filter(username=name).first()
    if user is None:
        if not password:
            raise PasswordNeeded("Nobody has this name yet; give a first password to create the person.")
        return create_user(name=name, password=password, workspace=workspace, role=role)
    if Membership.objects.filter(workspace=workspace, user=user).exists():
        raise AlreadyMember("This person is a member already.")
    set_role(workspace=workspace, user=user, role=role)
    return user


def set_role(*, workspace: Workspace, user: User, role: str) -> Membership:
    """Give a person a role in a workspace, or change it; the last admin stays one."""
    if role not in Role.values:
        raise errors.Invalid(f"A role is one of {', '.join(Role.values)}.")
    with transaction.atomic():
        if role != Role.ADMIN:
            _keep_an_admin(workspace, user)
        membership, _ = Membership.objects.update_or_create(
            workspace=workspace,
            user=user,
            defaults={"role": role},
            create_defaults={"role": role, "created_at": clock.now()},
        )
    return membership


def enter_workspace(*, workspace: Workspace, user: User) -> None:
    """Remember that a person chose this workspace, so that the next sign-in starts there."""
    Membership.objects.filter(workspace=workspace, user=user).update(entered_at=clock.now())


def remove_member(*, workspace: Workspace, user: User) -> None:
    """Take a person out of a workspace; the last admin stays."""
    with transaction.atomic():
        _keep_an_admin(workspace, user)
        Membership.objects.filter(workspace=workspace, user=user).delete()


def _keep_an_admin(workspace: Workspace, leaving: User) -> None:
    admins = Membership.objects.select_for_update().filter(workspace=workspace, role=Role.ADMIN)
    if list(admins.values_list("user_id", flat=True)) == [leaving.pk]:
        raise LastAdmin("Make somebody else an admin first.")


def create_api_key(
    *,
    workspace: Workspace,
    name: str,
    scopes: Iterable[str] | None = None,
    expires_at: datetime | None = None,
    binding: Binding | None = None,
    created_by: str = "",
) -> tuple[ApiKey, str]:
    """Create a key and return it with its token, which is shown this once; without scopes it may do all but `admin`."""
    chosen = sorted(set(ROOM_SCOPES if scopes is None else scopes))
    unknown = [scope for scope in chosen if scope not in ALL_SCOPES]
    if unknown or not chosen:
        raise UnknownScope(f"A key's scopes are some of {', '.join(ALL_SCOPES)}; got {', '.join(unknown) or 'none'}.")
    if not name.strip():
        raise errors.Invalid("A key needs a name.")
    binding = binding or Binding()
    lookup, token = keys.make_token()
    key = ApiKey.objects.create(
        workspace=workspace,
        name=name.strip()[:120],
        lookup=lookup,
        digest=keys.digest_of(token, settings.KEY_PEPPER),
        scopes=chosen,
        agent=binding.agent or "",
        user=binding.user or "",
        project=binding.project or "",
        created_by=created_by,
        created_at=clock.now(),
        expires_at=expires_at,
    )
    return key, token


def revoke_api_key(*, workspace: Workspace, key_id: int) -> ApiKey:
    """Revoke a key; it stops working everywhere within five seconds."""
    try:
        key = ApiKey.objects.get(workspace=workspace, pk=key_id)
    except ApiKey.DoesNotExist as error:
        raise errors.NotFound("There is no such key in this workspace.") from error
    if key.revoked_at is None:
        key.revoked_at = clock.now()
        key.save(update_fields=["revoked_at"])
    return key


def note_key_uses(uses: dict[int, datetime]) -> None:
    """Store when keys were last used."""
    for key_id, used_at in uses.items():
        ApiKey.objects.filter(pk=key_id).update(last_used_at=used_at)


def ensure_agent(*, workspace: Workspace, name: str) -> Agent:
    """Return the workspace's agent of that name, made on its first use."""
    agent, _ = Agent.objects.get_or_create(workspace=workspace, name=name[:200], defaults={"created_at": clock.now()})
    return agent


def ensure_session(
    *,
    workspace: Workspace,
    sid: str,
    agent: str | None = None,
    user: str | None = None,
    project: str | None = None,
    title: str | None = None,
    metadata: dict[str, Any] | None = None,
    started_at: datetime | None = None,
) -> Session:
    """Return the session of that id, made on its first use; what is given here describes it anew, None leaves it."""
    if not sid or len(sid) > 200:
        raise errors.Invalid("A session's id takes 1 to 200 characters.")
    now = clock.now()
    given: dict[str, Any] = {
        "agent": ensure_agent(workspace=workspace, name=agent) if agent else None,
        "user": user,
        "project": project,
        "title": title,
        "metadata": metadata,
    }
    described = {name: value for name, value in given.items() if value is not None}
    session, created = Session.objects.get_or_create(
        workspace=workspace,
        sid=sid,
        defaults={**described, "created_at": started_at or now, "last_active_at": started_at or now},
    )
    changed = [name for name, value in described.items() if getattr(session, name) != value]
    if changed and not created:
        for name in changed:
            setattr(session, name, described[name])
        session.save(update_fields=changed)
    return session


def ensure_sessions(*, workspace: Workspace, sids: Sequence[str]) -> dict[str, Session]:
    """Return the sessions of many ids by id, the missing ones made; two queries, however many there are."""
    wanted = {sid for sid in sids if sid}
    if not wanted:
        return {}
    now = clock.now()
    known = {session.sid: session for session in Session.objects.filter(workspace=workspace, sid__in=wanted)}
    missing = [
        Session(workspace=workspace, sid=sid, created_at=now, last_active_at=now)
        for sid in sorted(wanted - known.keys())
    ]
    if missing:
        Session.objects.bulk_create(missing, ignore_conflicts=True)
        known |= {s.sid: s for s in Session.objects.filter(workspace=workspace, sid__in=[s.sid for s in missing])}
    return known
