"""What jobs found out about the ledger, so that pages need not look at single requests again."""

from __future__ import annotations

from django.db import models

from memoryhub.workspaces.models import Workspace


class DailyWaste(models.Model):
    """The unread writes and the waits of a day that is over, in the zone of the daily sums.

    `seen` marks the records that were looked at: requests and cost of the day and of the next one. Where the daily sums say
    something else by now, the row no longer holds.
    """

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="daily_waste", db_index=False)
    day = models.DateField()
    seen = models.CharField(max_length=120)
    unread_requests = models.BigIntegerField(default=0)
    unread_tokens = models.BigIntegerField(default=0)
    unread_premium_pico = models.BigIntegerField(default=0)
    hit_waits = models.JSONField(default=dict)  # requests by class of their wait for the first byte
    miss_waits = models.JSONField(default=dict)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["workspace", "day"], name="daily_waste_is_unique")]

    def __str__(self) -> str:
        return f"waste of {self.day}"


class SessionPlan(models.Model):
    """How a session's requests compare with the cheapest caching plan. `requests` and `cost_pico` mark what was replayed."""

    workspace = models.ForeignKey(Workspace, on_delete=models.CASCADE, related_name="session_plans", db_index=False)
    session = models.CharField(max_length=200)
    last_day = models.DateField()  # of its latest usage, in the zone of the daily sums
    requests = models.BigIntegerField()
    cost_pico = models.BigIntegerField()
    best_plan = models.CharField(max_length=10)
    actual_pico = models.BigIntegerField()  # as the replay bills what was really sent
    best_pico = models.BigIntegerField()
    well_replayed = models.BooleanField()  # the replay of what was sent gives the real bill, nearly

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["workspace", "session"], name="session_plan_is_unique"),
            models.CheckConstraint(
                condition=models.Q(best_pico__lte=models.F("actual_pico")), name="best_plan_is_best"
            ),
        ]
        indexes = [models.Index(fields=["workspace", "last_day"], name="session_plan_day")]

    def __str__(self) -> str:
        return f"{self.session}: {self.best_plan}"
