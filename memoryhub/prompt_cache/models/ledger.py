"""The ledger of model responses and its daily roll-ups."""

from __future__ import annotations

from datetime import datetime

from django.db import models
from django.db.models import Q
from django.db.models.expressions import RawSQL

from memoryhub.workspaces.models import Workspace

# SQLite turns an integer sum that overflows into a float without a word; this bound keeps money exact.
HIGHEST_STORED_PICO = 9 * 10**18


class RecordState(models.IntegerChoices):
    PRICED = 0, "priced"
    UNPRICED = 1, "unpriced"
    EXCLUDED = 2, "left out of sums"


class UsageRecordQuerySet(models.QuerySet["UsageRecord"]):
    def of(self, workspace: Workspace) -> UsageRecordQuerySet:
        return self.filter(workspace=workspace)

    def between(self, start: datetime, end: datetime) -> UsageRecordQuerySet:
        """Records from `start` up to, but not including, `end`."""
        return self.filter(occurred_at__gte=start, occurred_at__lt=end)

    def responses(self) -> UsageRecordQuerySet:
        """One row per model response, without the iterations that are billed beside it."""
        return self.filter(part=0)

    def priced(self) -> UsageRecordQuerySet:
        return self.filter(state=RecordState.PRICED)

    def unpriced(self) -> UsageRecordQuerySet:
        return self.filter(state=RawSQL("1", ()))

    def excluded(self) -> UsageRecordQuerySet:
        return self.filter(state=RawSQL("2", ()))


class UsageRecord(models.Model):
    """The tokens and the money of one billed part of a model response.

    Part 0 is the response itself; higher parts are iterations that its totals leave out (compaction, advisor). Columns that
    sums read stand first: a report over a million rows decodes no more of a row than it needs.
    """

    id = models.BigAutoField(primary_key=True)
    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="usage_records", db_index=False)
    occurred_at = models.DateTimeField()  # decides the day: when it started, or the transcript line's time
    state = models.SmallIntegerField(choices=RecordState.choices)
    part = models.SmallIntegerField(default=0)
    model = models.CharField(max_length=200)
    project = models.CharField(max_length=500, blank=True)
    agent = models.CharField(max_length=200, blank=True)
    user = models.CharField(max_length=200, blank=True)
    session = models.CharField(max_length=200, blank=True)
    input_tokens = models.BigIntegerField(default=0)
    cache_write_5m_tokens = models.BigIntegerField(default=0)
    cache_write_1h_tokens = models.BigIntegerField(default=0)
    cache_read_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_pico = models.BigIntegerField(default=0)
    nocache_pico = models.BigIntegerField(default=0)
    message_id = models.CharField(max_length=200)  # the message's id; without one the request's, then the line's
    request_id = models.CharField(max_length=200, blank=True)
    chain = models.CharField(max_length=500, blank=True)  # a session's main chain, or one of its sub-agents
    kind = models.CharField(max_length=20, default="message")
    source = models.CharField(max_length=20)
    convention = models.CharField(max_length=10, default="anthropic")
    region = models.CharField(max_length=10, blank=True)
    service_tier = models.CharField(max_length=40, blank=True)
    speed = models.CharField(max_length=40, blank=True)
    inference_geo = models.CharField(max_length=40, blank=True)
    sidechain = models.BooleanField(default=False)
    web_search_requests = models.BigIntegerField(default=0)
    web_fetch_requests = models.BigIntegerField(default=0)
    thinking_tokens = models.BigIntegerField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    first_byte_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    price_book_version = models.CharField(max_length=32, blank=True)
    flags = models.JSONField(default=list, blank=True)
    credit = models.CharField(max_length=4300, blank=True)
    stated = models.JSONField(default=list)  # the numbers as stated, missing apart from zero, in the order of Stated
    diagnostics = models.JSONField(null=True, blank=True)
    sightings = models.JSONField(null=True, blank=True)  # both blocks, where it was declared and found in a transcript
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects = UsageRecordQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "message_id", "part"], name="usage_record_is_unique"),
            models.CheckConstraint(condition=Q(state__in=[0, 1, 2]), name="usage_record_state_is_known"),
            models.CheckConstraint(
                condition=Q(state=2)
                | Q(
                    input_tokens__gte=0,
                    cache_write_5m_tokens__gte=0,
                    cache_write_1h_tokens__gte=0,
                    cache_read_tokens__gte=0,
                    output_tokens__gte=0,
                ),
                name="summed_usage_is_not_negative",
            ),
        ]
        indexes = [
            models.Index(fields=["workspace", "occurred_at", "id"], name="usage_record_time"),
            models.Index(fields=["workspace", "session", "occurred_at", "id"], name="usage_record_session"),
            models.Index(fields=["workspace", "chain", "occurred_at", "id"], name="usage_record_chain"),
            models.Index(fields=["workspace", "occurred_at"], name="usage_record_unpriced", condition=Q(state=1)),
            models.Index(fields=["workspace", "occurred_at"], name="usage_record_excluded", condition=Q(state=2)),
            models.Index(fields=["workspace", "model", "id"], name="usage_record_model"),
        ]

    def __str__(self) -> str:
        return f"{self.message_id}/{self.part} {self.model}"

    @property
    def prompt_tokens(self) -> int:
        return self.input_tokens + self.cache_write_5m_tokens + self.cache_write_1h_tokens + self.cache_read_tokens

    @property
    def net_saving_pico(self) -> int:
        return self.nocache_pico - self.cost_pico


class Dimension(models.TextChoices):
    """What a day's sums are kept by."""

    ALL = "all", "all"
    MODEL = "model", "model"
    PROJECT = "project", "project"
    AGENT = "agent", "agent"
    USER = "user", "user"
    SESSION = "session", "session"
    UNPRICED = "unpriced", "unpriced model"
    QUARTER = "quarter", "quarter of an hour"


class DailyUsage(models.Model):
    """The sums of one local day, in total or for one model, project, agent, user or session.

    And in total for each quarter of an hour in UTC, `day` and `value` ("14:45") being its beginning: every zone's days are
    made of them.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="daily_usage", db_index=False)
    dimension = models.CharField(max_length=10, choices=Dimension.choices)
    day = models.DateField()
    value = models.CharField(max_length=500, blank=True)
    requests = models.BigIntegerField(default=0)
    input_tokens = models.BigIntegerField(default=0)
    cache_write_5m_tokens = models.BigIntegerField(default=0)
    cache_write_1h_tokens = models.BigIntegerField(default=0)
    cache_read_tokens = models.BigIntegerField(default=0)
    output_tokens = models.BigIntegerField(default=0)
    cost_pico = models.BigIntegerField(default=0)
    nocache_pico = models.BigIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "dimension", "day", "value"], name="daily_usage_is_unique"),
            models.CheckConstraint(
                condition=Q(
                    requests__gte=0,
                    input_tokens__gte=0,
                    cache_write_5m_tokens__gte=0,
                    cache_write_1h_tokens__gte=0,
                    cache_read_tokens__gte=0,
                    output_tokens__gte=0,
                ),
                name="daily_usage_is_not_negative",
            ),
            models.CheckConstraint(
                condition=Q(cost_pico__gte=0, cost_pico__lte=HIGHEST_STORED_PICO)
                & Q(nocache_pico__gte=0, nocache_pico__lte=HIGHEST_STORED_PICO),
                name="daily_usage_money_is_exact",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.dimension} {self.value}"


class LedgerState(models.Model):
    """One row per workspace: the zone its roll-ups are kept in, and when usage last came. Writers of the ledger lock it."""

    workspace = models.OneToOneField(Workspace, on_delete=models.CASCADE, primary_key=True, related_name="ledger_state")
    time_zone = models.CharField(max_length=64)
    last_arrival_at = models.DateTimeField(null=True)  # of a record that was not there before

    def __str__(self) -> str:
        return f"ledger of {self.workspace_id} in {self.time_zone}"
