"""A job is done by one worker at a time, and by another one when that one dies."""

from datetime import timedelta

import pytest

from memoryhub.common import clock
from memoryhub.work import services
from memoryhub.work.models import Job, JobState
from memoryhub.work.queries import UnknownJob, list_due_job_ids, summarize_queue
from tests.factories import NOON


@pytest.fixture
def job(workspace):
    with clock.frozen(NOON):
        return services.enqueue_job(workspace=workspace, kind="decay")


def test_only_one_worker_gets_the_lease(job):
    with clock.frozen(NOON):
        first, second = services.take_lease(job_id=job.pk), services.take_lease(job_id=job.pk)

    assert first.state == JobState.RUNNING
    assert second is None


def test_a_dead_workers_job_is_taken_over_when_its_lease_runs_out(job):
    with clock.frozen(NOON):
        dead = services.take_lease(job_id=job.pk)
    with clock.frozen(NOON + timedelta(seconds=services.LEASE_SECONDS + 1)):
        assert list_due_job_ids() == [job.pk]
        heir = services.take_lease(job_id=job.pk)
        with pytest.raises(services.LeaseLost):
            services.finish_job(job=dead, result={"by": "the dead"})
        services.finish_job(job=heir, result={"by": "the heir"})

    job.refresh_from_db()
    assert (job.state, job.result, job.attempts) == ("done", {"by": "the heir"}, 2)


def test_a_renewed_lease_is_not_taken_over(job):
    with clock.frozen(NOON):
        held = services.take_lease(job_id=job.pk)
    with clock.frozen(NOON + timedelta(seconds=50)):
        services.report_progress(held, 5, 10)
    with clock.frozen(NOON + timedelta(seconds=100)):
        assert services.take_lease(job_id=job.pk) is None


def test_a_failed_job_waits_longer_each_time_and_dies_at_last(job):
    moment = NOON
    pauses = []
    for _ in range(job.max_attempts):
        with clock.frozen(moment):
            services.fail_job(job=services.take_lease(job_id=job.pk), error="no route")
            job.refresh_from_db()
            pauses.append((job.run_after - moment).total_seconds())
            moment = job.run_after

    assert pauses == [10, 20, 40, 80, 0]
    assert (job.state, job.error) == ("dead", "no route")
    assert list_due_job_ids() == []


def test_the_pause_is_an_hour_at_the_most():
    assert services.retry_pause_seconds(50) == services.LAST_RETRY_SECONDS


def test_a_job_whose_every_worker_died_becomes_dead(job):
    moment = NOON
    for _ in range(job.max_attempts + 1):
        with clock.frozen(moment):
            services.take_lease(job_id=job.pk)
        moment += timedelta(seconds=services.LEASE_SECONDS + 1)

    job.refresh_from_db()
    assert job.state == "dead"
    assert "died" in job.error


def test_a_dead_job_can_be_retried_by_a_person(job, workspace):
    with clock.frozen(NOON):
        services.fail_job(job=services.take_lease(job_id=job.pk), error="bad", retry=False)
        services.retry_job(workspace=workspace, public_id=job.public_id)
        assert list_due_job_ids() == [job.pk]
        with pytest.raises(services.NotRetryable):
            services.retry_job(workspace=workspace, public_id=job.public_id)


def test_a_stranger_cannot_retry_it(job, other_workspace):
    with clock.frozen(NOON):
        services.fail_job(job=services.take_lease(job_id=job.pk), error="bad", retry=False)
        with pytest.raises(UnknownJob):
            services.retry_job(workspace=other_workspace, public_id=job.public_id)


def test_an_idempotency_key_makes_one_job(workspace):
    first = services.enqueue_job(workspace=workspace, kind="decay", idempotency_key="decay:today")
    again = services.enqueue_job(workspace=workspace, kind="decay", idempotency_key="decay:today")

    assert first.pk == again.pk


def test_a_job_for_later_is_not_due_now(workspace):
    with clock.frozen(NOON):
        services.enqueue_job(workspace=workspace, kind="decay", run_after=NOON + timedelta(minutes=1))
        assert list_due_job_ids() == []
        assert summarize_queue().waiting == 1


def test_done_jobs_are_forgotten_after_a_month(job):
    with clock.frozen(NOON):
        services.finish_job(job=services.take_lease(job_id=job.pk))
    with clock.frozen(NOON + timedelta(days=31)):
        assert services.forget_old_jobs() == 1
    assert not Job.objects.exists()
