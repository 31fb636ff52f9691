"""The rows of long-term memory.

`Memory` holds what people and agents see; `SearchDocument` holds what ranking reads of it, packed and ordered by
scope, written in the same transaction; `MemoryVersion` holds every earlier form.
"""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from memoryhub.audit.models import ChangeSet
from memoryhub.workspaces.models import Session, Workspace

SCOPE_SHIFT = 40  # a search document's key is scope << 40 | memory: one scope is one range of keys
MEMORY_MASK = (1 << SCOPE_SHIFT) - 1


class Kind(models.TextChoices):
    EPISODIC = "episodic", _("Episodic")
    SEMANTIC = "semantic", _("Semantic")
    PROCEDURAL = "procedural", _("Procedural")


class MemoryState(models.TextChoices):
    ACTIVE = "active", _("Active")
    FADING = "fading", _("Fading")
    ARCHIVED = "archived", _("Archived")
    FORGOTTEN = "forgotten", _("Forgotten")


class Trust(models.TextChoices):
    TRUSTED = "trusted", _("Trusted")
    UNREVIEWED = "unreviewed", _("Unreviewed")
    QUARANTINED = "quarantined", _("Quarantined")


class Scope(models.Model):
    """Whom memories belong to: an agent, a user, a project, or any of them together; empty means not named."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memory_scopes")
    agent = models.CharField(max_length=200, blank=True, default="")
    user = models.CharField(max_length=200, blank=True, default="")
    project = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "agent", "user", "project"], name="memory_scope_is_unique"),
            models.CheckConstraint(condition=~Q(agent="", user="", project=""), name="memory_scope_names_somebody"),
        ]
        indexes = [
            models.Index(fields=["workspace", "user"], name="memory_scope_user"),
            models.Index(fields=["workspace", "project"], name="memory_scope_project"),
        ]

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.as_dict().items() if value)

    def as_dict(self) -> dict[str, str | None]:
        return {"agent": self.agent or None, "user": self.user or None, "project": self.project or None}


class MemoryStore(models.Model):
    """A named store of the memory-stores wire; its memories have a path and the scope `project: <name>`.

    Names may repeat, as on Anthropic's side: a later store of the same name has a longer `project`.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memory_stores")
    public_id = models.CharField(max_length=64, unique=True)
    name = models.CharField(max_length=255)
    project = models.CharField(max_length=500)
    description = models.TextField(blank=True, default="")
    metadata = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    archived_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "project"], name="memory_store_has_a_scope")]

    def __str__(self) -> str:
        return f"{self.public_id} {self.name}"


class MemoryQuerySet(models.QuerySet["Memory"]):
    def out_of_trash(self) -> "MemoryQuerySet":
        """Everything that lists show by default."""
        return self.exclude(state=MemoryState.FORGOTTEN)

    def current(self) -> "MemoryQuerySet":
        """What agents may be told: active or fading, not superseded, not quarantined."""
        return self.filter(
            state__in=[MemoryState.ACTIVE, MemoryState.FADING], superseded_by__isnull=True, superseded_at__isnull=True
        ).exclude(trust=Trust.QUARANTINED)


class Memory(models.Model):
    """One thing an agent or a person wants kept. `importance` is theirs; `strength` is derived from it."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="memories")
    scope = models.ForeignKey(Scope, on_delete=models.PROTECT, related_name="memories", db_index=False)
    store = models.ForeignKey(MemoryStore, on_delete=models.SET_NULL, null=True, blank=True, related_name="memories")
    public_id = models.CharField(max_length=200)
    session = models.ForeignKey(Session, on_delete=models.SET_NULL, null=True, blank=True, related_name="memories")
    event_id = models.CharField(max_length=200, blank=True, default="")
    subject = models.CharField(max_length=200, blank=True, default="")
    content = models.TextField()
    content_sha256 = models.CharField(max_length=64)
    dedupe_key = models.CharField(max_length=64, null=True, blank=True)  # null: may stand beside its like
    path = models.CharField(max_length=1024, null=True, blank=True)
    kind = models.CharField(max_length=12, choices=Kind.choices, default=Kind.SEMANTIC)
    importance = models.FloatField(default=0.5)
    pinned = models.BooleanField(default=False)
    flags = models.JSONField(default=list, blank=True)
    version = models.IntegerField(default=1)

    state = models.CharField(max_length=9, choices=MemoryState.choices, default=MemoryState.ACTIVE)
    state_since = models.DateTimeField()  # when the curve crossed or a person acted, not when a job noticed
    state_by_curve = models.BooleanField(default=True)
    trashed_at = models.DateTimeField(null=True, blank=True)  # when it really went to the trash: 30 days from here
    trust = models.CharField(max_length=11, choices=Trust.choices, default=Trust.TRUSTED)
    superseded_by = models.ForeignKey(
        "self", on_delete=models.SET_NULL, null=True, blank=True, related_name="supersedes"
    )
    superseded_at = models.DateTimeField(null=True, blank=True)

    created_at = models.DateTimeField()
    content_changed_at = models.DateTimeField()
    metadata_changed_at = models.DateTimeField()
    last_accessed_at = models.DateTimeField(null=True, blank=True)
    access_count = models.IntegerField(default=0)
    imported_at = models.DateTimeField(null=True, blank=True)
    valid_from = models.DateTimeField(null=True, blank=True)
    valid_until = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    helpful_count = models.IntegerField(default=0)
    harmful_count = models.IntegerField(default=0)

    # The curve, as domain/decay.py draws it; the job only evaluates it. Moments that lie behind, or never come, are null.
    decay_anchor_at = models.DateTimeField(null=True, blank=True)  # a restore or revert starts the curve anew here
    idle_since = models.DateTimeField()
    daily_loss = models.FloatField(default=0)
    floor = models.FloatField(default=0)
    fades_at = models.DateTimeField(null=True, blank=True)
    archives_at = models.DateTimeField(null=True, blank=True)
    forgets_at = models.DateTimeField(null=True, blank=True)
    strength = models.FloatField(default=0.5)
    strength_at = models.DateTimeField()

    objects = MemoryQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "public_id"], name="memory_public_id_is_unique"),
            models.UniqueConstraint(fields=["scope", "dedupe_key"], name="memory_is_kept_once"),
            models.UniqueConstraint(
                fields=["scope", "path"],
                condition=Q(path__isnull=False) & ~Q(state="forgotten"),
                name="memory_path_is_unique",
            ),
            models.CheckConstraint(
                condition=Q(importance__gte=0, importance__lte=1), name="memory_importance_is_a_share"
            ),
            models.CheckConstraint(condition=Q(state__in=MemoryState.values), name="memory_state_is_known"),
            models.CheckConstraint(condition=Q(trust__in=Trust.values), name="memory_trust_is_known"),
            models.CheckConstraint(condition=Q(kind__in=Kind.values), name="memory_kind_is_known"),
        ]
        indexes = [
            # The orders of lists, each walked from its end. Ascending, so that a new row is put behind the others: in front
            # of them every row moves its neighbours and leaves half empty pages. Behind the order stands what lists are
            # filtered by, so that walking one reads no rows that don't match.
            models.Index(
                fields=["workspace", "content_changed_at", "id", "state", "kind", "trust", "scope", "created_at"],
                name="memory_newest",
            ),
            models.Index(
                fields=["workspace", "created_at", "id", "state", "kind", "trust", "scope"], name="memory_created"
            ),
            models.Index(
                fields=["workspace", "importance", "id", "state", "kind", "trust", "scope"], name="memory_important"
            ),
            models.Index(
                fields=["workspace", "strength", "id", "state", "kind", "trust", "scope"], name="memory_strongest"
            ),
            models.Index(
                fields=["workspace", "idle_since", "id", "state", "kind", "trust", "scope"], name="memory_used"
            ),
            models.Index(fields=["scope", "state", "kind", "trust"], name="memory_in_scope"),
            # What few memories have: the way in for filters that the orders would be walked in vain for.
            models.Index(
                fields=["workspace", "state", "content_changed_at", "id", "kind", "trust", "scope"],
                name="memory_state",
            ),
            models.Index(
                fields=["workspace", "trust", "content_changed_at", "id", "state", "kind", "scope"],
                name="memory_trust",
            ),
            models.Index(
                fields=["workspace", "kind", "content_changed_at", "id", "state", "trust", "scope"],
                name="memory_kind",
            ),
            models.Index(
                fields=["workspace", "content_changed_at", "id"], condition=Q(pinned=True), name="memory_pinned"
            ),
            models.Index(
                fields=["workspace", "content_changed_at", "id"],
                condition=Q(harmful_count__gt=F("helpful_count")),
                name="memory_harmful",
            ),
            models.Index(
                fields=["workspace", "fades_at", "state", "kind", "trust", "scope"],
                condition=Q(fades_at__isnull=False),
                name="memory_fading_soon",
            ),
            # SQLite uses a partial index only where it can prove its condition: a bound on the field itself does.
            models.Index(fields=["fades_at"], condition=Q(fades_at__isnull=False), name="memory_to_fade"),
            models.Index(fields=["archives_at"], condition=Q(archives_at__isnull=False), name="memory_to_archive"),
            models.Index(fields=["forgets_at"], condition=Q(forgets_at__isnull=False), name="memory_to_forget"),
            models.Index(fields=["trashed_at"], condition=Q(trashed_at__isnull=False), name="memory_in_trash"),
            models.Index(
                fields=["scope", "content_sha256"],
                condition=Q(trashed_at__isnull=False),
                name="memory_text_in_trash",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.public_id} v{self.version} {self.state}"

    @property
    def document_key(self) -> int:
        return self.scope_id << SCOPE_SHIFT | self.id


class MemoryOrigin(models.Model):
    """What a foreign format held beside the fields above, kept so that an export gives it back."""

    memory = models.OneToOneField(Memory, on_delete=models.CASCADE, primary_key=True, related_name="origin")
    data = models.JSONField()

    def __str__(self) -> str:
        return f"origin of {self.memory_id}"


class Tag(models.Model):
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="tags")
    name = models.CharField(max_length=200)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "name"], name="tag_name_is_unique")]

    def __str__(self) -> str:
        return self.name


class MemoryTag(models.Model):
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="memory_tags", db_index=False)
    tag = models.ForeignKey(Tag, on_delete=models.CASCADE, related_name="memory_tags", db_index=False)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["memory", "tag"], name="memory_has_a_tag_once")]
        indexes = [models.Index(fields=["tag", "memory"], name="memory_tag_by_tag")]

    def __str__(self) -> str:
        return f"{self.memory_id} #{self.tag_id}"


class Operation(models.TextChoices):
    CREATED = "created", _("Created")
    MODIFIED = "modified", _("Modified")
    DELETED = "deleted", _("Deleted")


class MemoryVersion(models.Model):
    """What a memory was after one write. `facts` are all fields a revert needs; redacting empties the content."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    memory = models.ForeignKey(Memory, on_delete=models.CASCADE, related_name="versions", db_index=False)
    public_id = models.CharField(max_length=64, unique=True)
    number = models.IntegerField()
    operation = models.CharField(max_length=8, choices=Operation.choices)
    content = models.TextField(null=True, blank=True)
    content_sha256 = models.CharField(max_length=64, blank=True, default="")
    facts = models.JSONField(default=dict)
    restored_from = models.IntegerField(null=True, blank=True)
    reason = models.CharField(max_length=500, blank=True, default="")
    actor_kind = models.CharField(max_length=10, blank=True, default="")
    actor_id = models.CharField(max_length=64, blank=True, default="")
    actor_label = models.CharField(max_length=200, blank=True, default="")
    session = models.ForeignKey(Session, on_delete=models.SET_NULL, null=True, blank=True, related_name="+")
    change_set = models.ForeignKey(
        ChangeSet, on_delete=models.SET_NULL, null=True, blank=True, related_name="memory_versions"
    )
    created_at = models.DateTimeField()
    redacted_at = models.DateTimeField(null=True, blank=True)
    redacted_by = models.CharField(max_length=200, blank=True, default="")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["memory", "number"], name="memory_versions_count_up")]

    def __str__(self) -> str:
        return f"{self.memory_id} v{self.number} {self.operation}"
