"""Workspaces, their people, their keys, their agents, and the identity of sessions."""

from datetime import datetime

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class User(AbstractUser):
    """A person who signs in; language, time zone and theme are their own."""

    language = models.CharField(max_length=16, blank=True)
    time_zone = models.CharField(max_length=64, blank=True)
    theme = models.CharField(max_length=8, blank=True)

    def __str__(self) -> str:
        return self.username


class Workspace(models.Model):
    """A team's own shelf. Every stored row belongs to exactly one."""

    name = models.SlugField(max_length=64, unique=True)
    title = models.CharField(max_length=120, blank=True)
    time_zone = models.CharField(max_length=64, default="UTC")
    settings = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class Role(models.TextChoices):
    VIEWER = "viewer", _("Viewer")
    EDITOR = "editor", _("Editor")
    ADMIN = "admin", _("Admin")


class Membership(models.Model):
    """A person's role in a workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=8, choices=Role.choices)
    created_at = models.DateTimeField()
    entered_at = models.DateTimeField(null=True, blank=True)  # when the person last chose this workspace

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "user"], name="one_membership_per_person"),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="membership_role_is_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} is {self.role} in {self.workspace_id}"


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self, now: datetime) -> "ApiKeyQuerySet":
        """Keys that are neither revoked nor expired."""
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=now), revoked_at=None)


class ApiKey(models.Model):
    """An agent's way in: `mh_<lookup>_<secret>`; only the lookup and an HMAC are stored."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="api_keys")
    name = models.CharField(max_length=120)
    lookup = models.CharField(max_length=8, unique=True)
    digest = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    agent = models.CharField(max_length=200, blank=True)
    user = models.CharField(max_length=200, blank=True)
    project = models.CharField(max_length=500, blank=True)
    created_by = models.CharField(max_length=200, blank=True)
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = ApiKeyQuerySet.as_manager()

    def __str__(self) -> str:
        return f"{self.name} (mh_{self.lookup}_...)"


class Agent(models.Model):
    """A named agent of a workspace."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="agents")
    name = models.CharField(max_length=200)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="agent_name_is_unique")]

    def __str__(self) -> str:
        return self.name


class Session(models.Model):
    """The identity of one conversation. `sid` is the caller's own id; events hang on it in session_cache."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="sessions")
    sid = models.CharField(max_length=200)
    agent = models.ForeignKey(Agent, on_delete=models.SET_NULL, null=True, blank=True, related_name="sessions")
    user = models.CharField(max_length=200, blank=True)
    project = models.CharField(max_length=500, blank=True)
    title = models.CharField(max_length=300, blank=True)
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    last_active_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "sid"], name="session_sid_is_unique")]
        indexes = [
            models.Index(fields=["workspace", "-last_active_at", "-id"], name="session_recent"),
            models.Index(fields=["workspace", "project", "-last_active_at"], name="session_project"),
        ]

    def __str__(self) -> str:
        return self.sid


class Tally(models.Model):
    """How often something happened since a window of time began: writes of a key, guesses at a password."""

    key = models.CharField(max_length=200, primary_key=True)
    count = models.IntegerField()
    ends = models.FloatField()  # seconds since 1970; counting compares them inside the database

    def __str__(self) -> str:
        return f"{self.key}: {self.count}"
