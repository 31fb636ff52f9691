"""What happens when a job is rung for."""

import pytest

from memoryhub.common import clock
from memoryhub.common.errors import Invalid, Unavailable
from memoryhub.jobs import handlers, schedule, tasks
from memoryhub.work import services
from memoryhub.work.models import Job
from tests.factories import NOON


@pytest.fixture
def at_once(settings):
    settings.JOBS_IMMEDIATE = True


@pytest.fixture
def job_of(workspace, monkeypatch, at_once):
    def make(handler):
        monkeypatch.setitem(handlers.HANDLERS, "sample", handler)
        return services.enqueue_job(workspace=workspace, kind="sample")

    return make


def test_a_handlers_result_is_kept(job_of):
    job = job_of(lambda job: {"answer": 42})

    tasks.run_now(job.pk)

    job.refresh_from_db()
    assert (job.state, job.result) == ("done", {"answer": 42})


def test_a_job_that_is_done_is_not_done_again(job_of):
    calls = []
    job = job_of(lambda job: calls.append(1) or {})

    tasks.run_now(job.pk)
    tasks.run_now(job.pk)

    assert calls == [1]


def _raise(error):
    raise error


@pytest.mark.parametrize(
    ("error", "state"),
    [(ValueError("x"), "failed"), (Unavailable("down"), "failed"), (Invalid("no such file"), "dead")],
)
def test_a_fault_is_retried_and_a_broken_rule_is_not(job_of, error, state):
    job = job_of(lambda job: _raise(error))

    tasks.run_now(job.pk)

    job.refresh_from_db()
    assert job.state == state
    assert str(error) in job.error


def test_an_unknown_kind_is_dead_with_its_reason(workspace, at_once):
    job = services.enqueue_job(workspace=workspace, kind="from-the-future")

    tasks.run_now(job.pk)

    job.refresh_from_db()
    assert job.state == "dead"
    assert "from-the-future" in job.error


def test_the_bell_rings_after_the_commit(job_of, django_capture_on_commit_callbacks):
    with django_capture_on_commit_callbacks(execute=True):
        job = job_of(lambda job: {})
        assert Job.objects.get(pk=job.pk).state == "queued"

    assert Job.objects.get(pk=job.pk).state == "done"


def test_a_queue_that_is_down_loses_no_job(workspace, monkeypatch, django_capture_on_commit_callbacks):
    monkeypatch.setattr(tasks, "do_job", lambda job_id: _raise(ConnectionError("queue down")))

    with django_capture_on_commit_callbacks(execute=True):
        job = services.enqueue_job(workspace=workspace, kind="housekeeping")

    assert Job.objects.get(pk=job.pk).state == "queued"


def test_the_sweep_does_what_nobody_rang_for(job_of):
    job = job_of(lambda job: {})

    tasks.sweep_now()

    job.refresh_from_db()
    assert job.state == "done"


def test_the_schedule_queues_each_period_once(workspace, other_workspace):
    with clock.frozen(NOON):
        first = schedule.enqueue_due_jobs()
        assert schedule.enqueue_due_jobs() == 0

    assert first == Job.objects.count() > 0
    hub_wide = [due for due in schedule.SCHEDULE if not due.per_workspace]
    assert Job.objects.filter(workspace=None).count() == len(hub_wide)


def test_every_scheduled_kind_has_a_handler():
    assert {due.kind for due in schedule.SCHEDULE} <= handlers.HANDLERS.keys()


def test_a_message_that_somebody_else_signed_is_refused():
    message = tasks.huey.serializer.serialize([1, 2, 3])

    with pytest.raises(ValueError, match="mismatch"):
        tasks.huey.serializer.deserialize(message[:-1] + (b"0" if message[-1:] != b"0" else b"1"))
