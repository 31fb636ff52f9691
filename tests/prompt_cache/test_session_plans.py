"""What the report says of the best plan: sessions are replayed by a job, the dearest first, and again when they went on."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from memoryhub.common import clock
from memoryhub.jobs.schedule import enqueue_due_jobs
from memoryhub.jobs.tasks import run_now
from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.domain.simulator import PLANS
from memoryhub.prompt_cache.models import SessionPlan
from memoryhub.prompt_cache.queries import Span
from memoryhub.prompt_cache.queries.plans import regrets_of, sum_regret
from memoryhub.prompt_cache.queries.replays import replay_session
from memoryhub.prompt_cache.services import findings
from memoryhub.prompt_cache.services.findings import plan_sessions
from memoryhub.prompt_cache.services.usage import record_reports
from memoryhub.work.models import Job
from memoryhub.workspaces.models import Workspace

TEN = datetime(2026, 11, 10, 10, tzinfo=UTC)
DAYS = Span(date(2026, 11, 1), date(2026, 11, 30), ZoneInfo("UTC"))


def record(workspace: Workspace, session: str, number: int, *, read: int = 0, write: int = 0, rest: int = 0) -> None:
    usage = {"input_tokens": rest, "cache_read_input_tokens": read, "cache_creation_input_tokens": write}
    at = TEN + timedelta(minutes=10 * number)
    one = UsageReport(
        message_id=f"{session}-{number}", model="claude-opus-5-5", session=session, started_at=at, usage=usage
    )
    record_reports(workspace=workspace, reports=[one])


def uncached(workspace: Workspace, session: str, tokens: int, requests: int = 3) -> None:
    """A session that never used the cache, with pauses of ten minutes: an hour's marker would have paid."""
    for number in range(requests):
        record(workspace, session, number, rest=tokens)


def test_the_regret_is_what_the_planner_says(workspace: Workspace) -> None:
    uncached(workspace, "s1", 100_000)

    assert plan_sessions(workspace=workspace) == 1

    simulation = replay_session(workspace, session="s1", plans=PLANS).simulation
    costs = {one.plan: one.cost_pico or 0 for one in simulation.replays}
    found = sum_regret(workspace, DAYS)
    assert (found.sessions, found.actual_pico) == (1, costs["actual"])
    assert found.regret_pico == costs["actual"] - min(costs.values()) > 0
    assert costs[found.best_plan] == min(costs.values())
    assert regrets_of(workspace, ["s1", "nobody"])["s1"].best_plan == found.best_plan


def test_a_session_is_replayed_again_when_it_went_on(workspace: Workspace) -> None:
    uncached(workspace, "s1", 100_000)
    plan_sessions(workspace=workspace)

    assert plan_sessions(workspace=workspace) == 0
    record(workspace, "s1", 9, rest=5_000)
    assert plan_sessions(workspace=workspace) == 1
    assert SessionPlan.objects.get().requests == 4


def test_the_dearest_come_first_and_a_run_is_bounded(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(findings, "SESSIONS_PER_RUN", 1)
    for session, tokens in (("cheap", 1_000), ("dear", 900_000), ("single", 10**6)):
        uncached(workspace, session, tokens, requests=1 if session == "single" else 3)

    assert [plan_sessions(workspace=workspace) for _ in range(3)] == [1, 1, 0]
    assert list(SessionPlan.objects.order_by("id").values_list("session", flat=True)) == ["dear", "cheap"]


def test_a_job_finds_out_by_itself(workspace: Workspace) -> None:
    uncached(workspace, "s1", 100_000)

    with clock.frozen(TEN + timedelta(days=2)):
        enqueue_due_jobs()
        job = Job.objects.get(kind="find_out", workspace=workspace)
        run_now(job.pk)

    job.refresh_from_db()
    assert (job.state, job.result) == ("done", {"days": 1, "sessions": 1})
    assert sum_regret(workspace, DAYS).sessions == 1


def test_sessions_of_other_days_and_workspaces_are_not_counted(
    workspace: Workspace, other_workspace: Workspace
) -> None:
    uncached(workspace, "s1", 100_000)
    plan_sessions(workspace=workspace)

    october = Span(date(2026, 10, 1), date(2026, 10, 31), ZoneInfo("UTC"))
    assert sum_regret(workspace, october).sessions == 0
    assert sum_regret(other_workspace, DAYS).sessions == 0


def test_a_replay_that_does_not_explain_the_bill_is_left_out(workspace: Workspace) -> None:
    """Two requests that read what nobody wrote: the replay gives another bill."""
    for number in range(2):
        record(workspace, "s1", number, read=100_000)

    plan_sessions(workspace=workspace)

    assert not SessionPlan.objects.get().well_replayed
    assert sum_regret(workspace, DAYS).sessions == 0


def test_a_session_that_nobody_can_price_is_looked_at_once(workspace: Workspace) -> None:
    uncached(workspace, "s1", 100_000)
    one = UsageReport(
        message_id="odd", model="claude-who-knows", session="s1", started_at=TEN, usage={"input_tokens": 9}
    )
    record_reports(workspace=workspace, reports=[one])

    assert [plan_sessions(workspace=workspace) for _ in range(2)] == [1, 0]
    assert not SessionPlan.objects.get().well_replayed
