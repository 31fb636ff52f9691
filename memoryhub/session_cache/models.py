"""Tool results with what proves them, and the event tree of sessions."""

from datetime import datetime

from django.db import models
from django.db.models import Q

from memoryhub.session_cache.domain import event_tree
from memoryhub.workspaces.models import Session, Workspace

# --- Context windows -------------------------------------------------------------------------------------------------


class Blob(models.Model):
    """The bytes of an event's content, once per workspace however often they occur. Lists never touch this table."""

    class Codec(models.IntegerChoices):
        PLAIN = 0
        ZLIB = 1

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    sha256 = models.BinaryField(max_length=32)
    codec = models.PositiveSmallIntegerField(choices=Codec.choices)
    data = models.BinaryField()
    size_bytes = models.PositiveIntegerField()  # before compression

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "sha256"], name="blob_is_stored_once")]

    def __str__(self) -> str:
        return f"blob {self.pk} of {self.size_bytes} bytes"


class Branch(models.Model):
    """A run of events. It grows from a node of its parent branch; `path` is the stretch it inherits from each ancestor."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="branches")
    parent = models.ForeignKey("self", on_delete=models.PROTECT, null=True, blank=True, related_name="children")
    fork_seq = models.PositiveIntegerField(default=0)
    path = models.JSONField(default=list)
    head_seq = models.PositiveIntegerField(default=0)  # the last number given out
    tip_seq = models.PositiveIntegerField(default=0)  # the last conversation event
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(condition=Q(tip_seq__lte=models.F("head_seq")), name="branch_tip_is_within"),
            models.CheckConstraint(
                condition=Q(parent=None, fork_seq=0) | Q(parent__isnull=False, fork_seq__gt=0),
                name="branch_fork_has_parent",
            ),
        ]

    def __str__(self) -> str:
        return f"branch {self.pk} of session {self.session_id}"

    @property
    def inherited(self) -> event_tree.Path:
        return tuple((branch, upto) for branch, upto in self.path)


class PackedHead(models.Model):
    """A branch's newest events in one row, for windows at its head. It can always be made anew from the events."""

    branch = models.OneToOneField(Branch, on_delete=models.CASCADE, primary_key=True, related_name="packed_head")
    first_seq = models.PositiveIntegerField()
    last_seq = models.PositiveIntegerField()
    codec = models.PositiveSmallIntegerField(choices=Blob.Codec.choices)
    data = models.BinaryField()

    def __str__(self) -> str:
        return f"events {self.first_seq} to {self.last_seq} of branch {self.branch_id}"


class SessionTree(models.Model):
    """Where a session stands: its head, and for a fork the node that it grew from. Its row is the writers' lock."""

    session = models.OneToOneField(Session, on_delete=models.CASCADE, primary_key=True, related_name="tree")
    head_branch = models.ForeignKey(Branch, on_delete=models.PROTECT, null=True, related_name="+")
    head_seq = models.PositiveIntegerField(default=0)
    head_path = models.JSONField(default=list)  # of the head's branch, so that a look-up needs no second row
    origin_branch = models.ForeignKey(Branch, on_delete=models.PROTECT, null=True, related_name="+")
    origin_seq = models.PositiveIntegerField(default=0)
    event_count = models.PositiveIntegerField(default=0)
    token_count = models.PositiveBigIntegerField(default=0)

    def __str__(self) -> str:
        return f"session {self.session_id} at ({self.head_branch_id}, {self.head_seq})"

    @property
    def full_path(self) -> event_tree.Path:
        """The past that the head sees, itself included; empty before the first event."""
        if self.head_branch_id is None:
            return ()
        return (*((branch, upto) for branch, upto in self.head_path), (self.head_branch_id, self.head_seq))


class SessionEventQuerySet(models.QuerySet["SessionEvent"]):
    def along(self, path: event_tree.Path) -> "SessionEventQuerySet":
        """Events of these stretches, whichever session they belong to."""
        stretches = Q(pk__in=[])
        for branch, upto in path:
            stretches |= Q(branch_id=branch, seq__lte=upto)
        return self.filter(stretches)

    def conversation(self) -> "SessionEventQuerySet":
        return self.exclude(kind=event_tree.NOTE)


class SessionEvent(models.Model):
    """One thing that happened in a session, in its place in the tree. Its content lies in a blob."""

    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="events", db_index=False)
    branch = models.ForeignKey(Branch, on_delete=models.CASCADE, related_name="events", db_index=False)
    seq = models.PositiveIntegerField()
    event_id = models.CharField(max_length=200)
    parent_event_id = models.CharField(max_length=200, blank=True)  # spares the lists a look at each parent
    kind = models.CharField(max_length=12, choices=[(kind, kind) for kind in event_tree.KINDS])
    role = models.CharField(max_length=16, blank=True)
    tokens = models.PositiveIntegerField(default=0)
    memory_tokens = models.PositiveIntegerField(default=0)  # how many of them are recalled memories
    tool_call_id = models.CharField(max_length=200, blank=True)
    depth = models.PositiveIntegerField(default=0)
    prefix_hash = models.BinaryField(max_length=32)
    blob = models.ForeignKey(Blob, on_delete=models.PROTECT, related_name="events")
    occurred_at = models.DateTimeField()

    objects = SessionEventQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["branch", "seq"], name="event_place_is_unique"),
            models.UniqueConstraint(fields=["session", "event_id"], name="event_id_is_unique"),
            models.CheckConstraint(condition=Q(kind__in=event_tree.KINDS), name="event_kind_is_known"),
        ]
        indexes = [
            models.Index(fields=["session", "id"], name="event_listing"),
            models.Index(fields=["branch", "seq"], condition=Q(kind="compaction"), name="event_compactions"),
            models.Index(fields=["branch", "seq"], condition=Q(role="system"), name="event_system_texts"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.event_id} at ({self.branch_id}, {self.seq})"


# --- Tool results ----------------------------------------------------------------------------------------------------


class ToolPolicy(models.Model):
    """What may be done with one tool's results. A tool without one is never cached, and may change anything."""

    class Scope(models.TextChoices):
        SESSION = "session"
        WORKSPACE = "workspace"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="tool_policies", db_index=False)
    tool = models.CharField(max_length=200)
    cacheable = models.BooleanField(default=False)
    ttl_seconds = models.FloatField(null=True, blank=True)  # None: the default; for "manual", no end
    ttl_jitter = models.FloatField(default=0)
    strategy = models.CharField(max_length=16)
    scope = models.CharField(max_length=10, choices=Scope.choices, default=Scope.SESSION)
    invalidates = models.JSONField(default=list, blank=True)
    may_change_anything = models.BooleanField(default=False)  # a run may change more than `invalidates` names
    ignore_unknown_writes = models.BooleanField(default=False)  # results stand, whatever else may have been changed
    error_ttl_seconds = models.FloatField(default=0)
    stale_while_revalidate_seconds = models.FloatField(default=0)
    verify_share = models.FloatField(default=0)
    redact_params = models.JSONField(default=list, blank=True)
    normalize_params = models.JSONField(default=list, blank=True)
    average_cost_ms = models.FloatField(null=True, blank=True)
    updated_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "tool"], name="one_policy_per_tool"),
            models.CheckConstraint(
                condition=(Q(ttl_seconds=None) | Q(ttl_seconds__gte=0))
                & Q(error_ttl_seconds__gte=0, stale_while_revalidate_seconds__gte=0),
                name="policy_times_are_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(verify_share__gte=0, verify_share__lte=1, ttl_jitter__gte=0, ttl_jitter__lte=1),
                name="policy_shares_are_shares",
            ),
        ]

    def __str__(self) -> str:
        return f"policy of {self.tool}"


class ToolSpace(models.Model):
    """The room that one session's results may take, or the workspace's shared ones (no session). Its row is the lock."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    session = models.OneToOneField(Session, on_delete=models.CASCADE, null=True, blank=True, related_name="tool_space")
    capacity_bytes = models.PositiveBigIntegerField(null=True, blank=True)  # None: as the settings say
    used_bytes = models.BigIntegerField(default=0)
    entry_count = models.IntegerField(default=0)
    floor = models.FloatField(default=0)  # the priority of the entry that was evicted last
    evicted_count = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace"], condition=Q(session=None), name="one_shared_space"),
            models.CheckConstraint(condition=Q(used_bytes__gte=0, entry_count__gte=0), name="space_is_not_negative"),
        ]
        indexes = [models.Index(fields=["workspace"], name="space_of_workspace")]

    def __str__(self) -> str:
        return f"space of {self.session_id or 'workspace'}: {self.used_bytes} bytes"


class ToolResultQuerySet(models.QuerySet["ToolResult"]):
    def expired(self, now: datetime) -> "ToolResultQuerySet":
        """Entries that no look-up may serve any more because of their time."""
        return self.filter(usable_until__lte=now)

    def first_to_evict(self) -> "ToolResultQuerySet":
        return self.order_by("priority", "id")


class ToolResult(models.Model):
    """What a tool answered: bytes, what they depend on, and where and when they were seen."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    space = models.ForeignKey(ToolSpace, on_delete=models.CASCADE, related_name="entries", db_index=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="tool_results")
    key = models.CharField(max_length=64)
    tool = models.CharField(max_length=200)
    tool_version = models.CharField(max_length=200, blank=True)
    root = models.CharField(max_length=500, blank=True)
    env = models.JSONField(default=dict)
    params = models.TextField()  # canonical, as stored and shown: what sounds like a secret is hidden
    params_hash = models.CharField(max_length=64)  # of the parameters as called
    value = models.BinaryField()
    etag = models.CharField(max_length=64)
    size_bytes = models.PositiveIntegerField()
    cost_ms = models.FloatField(null=True)
    is_error = models.BooleanField(default=False)
    depends_on = models.TextField(default="[]")  # JSON; the table of dependencies is its index
    strategy = models.CharField(max_length=16)
    generation = models.BigIntegerField()
    stored_at = models.DateTimeField()
    expires_at = models.DateTimeField(null=True)
    usable_until = models.DateTimeField(null=True)
    priority = models.FloatField()
    hit_count = models.PositiveIntegerField(default=0)
    last_hit_at = models.DateTimeField(null=True)
    seen_branch_id = models.BigIntegerField(null=True)  # where the session stood; a branch may be collected, this stays
    seen_seq = models.PositiveIntegerField(default=0)
    source_event = models.CharField(max_length=200, blank=True)

    objects = ToolResultQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "key"], name="tool_key_is_unique")]
        indexes = [
            models.Index(fields=["space", "priority", "id"], name="tool_result_eviction"),
            models.Index(fields=["workspace", "tool", "id", "size_bytes"], name="tool_result_by_tool"),
            models.Index(fields=["workspace", "-id"], name="tool_result_newest"),
            models.Index(fields=["workspace", "-size_bytes", "-id"], name="tool_result_largest"),
            models.Index(fields=["usable_until"], name="tool_result_expiry"),
        ]

    def __str__(self) -> str:
        return f"{self.tool} {self.key[:12]}"


class ToolDependency(models.Model):
    """The index behind "who depends on this": one row for each thing that a stored result depends on."""

    result = models.ForeignKey(ToolResult, on_delete=models.CASCADE, related_name="dependencies")
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    kind = models.CharField(max_length=10)
    name = models.TextField()

    class Meta:
        indexes = [models.Index(fields=["workspace", "kind", "name"], name="tool_dependency_name")]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class ToolKey(models.Model):
    """What is known of a key besides its entry: why the last entry is gone, and who is computing the next one."""

    class Gone(models.TextChoices):
        EXPIRED = "expired"
        STALE = "stale"
        INVALIDATED = "invalidated"
        EVICTED = "evicted"

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    key = models.CharField(max_length=64)
    gone = models.CharField(max_length=12, choices=Gone.choices, blank=True)
    lease_token = models.CharField(max_length=64, blank=True)
    lease_expires_at = models.DateTimeField(null=True)
    lease_generation = models.BigIntegerField(default=0)
    updated_at = models.DateTimeField(db_index=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "key"], name="tool_key_state_is_unique")]

    def __str__(self) -> str:
        return f"key {self.key[:12]}"


class ToolUsage(models.Model):
    """Hits, misses by reason and time saved, per session and tool. Written in batches, never by a hit."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="+", db_index=False)
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="tool_usage", db_index=False)
    tool = models.CharField(max_length=200)
    hits = models.PositiveBigIntegerField(default=0)
    misses = models.PositiveBigIntegerField(default=0)
    missed_absent = models.PositiveBigIntegerField(default=0)
    missed_expired = models.PositiveBigIntegerField(default=0)
    missed_stale = models.PositiveBigIntegerField(default=0)
    missed_invalidated = models.PositiveBigIntegerField(default=0)
    missed_evicted = models.PositiveBigIntegerField(default=0)
    missed_uncacheable = models.PositiveBigIntegerField(default=0)
    refused = models.PositiveBigIntegerField(default=0)  # results that could not be stored
    saved_ms = models.FloatField(default=0)
    lookup_ms = models.FloatField(default=0)  # what the hub itself spent on look-ups
    verified = models.PositiveBigIntegerField(default=0)  # hits that were run again to compare
    verified_stale = models.PositiveBigIntegerField(default=0)  # of those, how many differed

    class Meta:
        constraints = [models.UniqueConstraint(fields=["session", "tool"], name="one_usage_row_per_tool")]
        indexes = [models.Index(fields=["workspace", "tool"], name="tool_usage_tool")]

    def __str__(self) -> str:
        return f"usage of {self.tool} in session {self.session_id}"
