"""All Huey tasks. The Job rows are the truth, Huey only rings: a lost bell is rung again by the minute's sweep."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, close_old_connections, connection
from huey import Huey, PostgresHuey, RedisHuey, SqliteHuey, crontab
from huey.serializer import SignedSerializer

from memoryhub.common import errors
from memoryhub.jobs import schedule
from memoryhub.jobs.handlers import HANDLERS
from memoryhub.work import queries, services
from memoryhub.work.models import Job

logger = logging.getLogger(__name__)
RENEW_EVERY_SECONDS = services.LEASE_SECONDS / 3


def make_huey() -> Huey:
    """Return the queue that MEMORYHUB_QUEUE names; its messages are signed, so nobody else's are run."""
    options: dict[str, Any] = {
        "results": False,
        "immediate": False,
        "serializer": SignedSerializer(secret=settings.SECRET_KEY, salt="memoryhub.jobs"),
    }
    if settings.QUEUE_URL == "sqlite":
        # The queue has a file of its own, so that ringing never waits for a long write to the hub's data.
        return SqliteHuey("memoryhub", filename=str(Path(settings.DATA_DIR) / "queue.sqlite3"), fsync=False, **options)
    if settings.QUEUE_URL == "postgres":
        database = settings.DATABASES["default"]
        parameters = {"dbname": "NAME", "user": "USER", "password": "PASSWORD", "host": "HOST", "port": "PORT"}
        given = {name: database[key] for name, key in parameters.items() if database[key]}
        return PostgresHuey("memoryhub", **given, **options)
    return RedisHuey("memoryhub", url=settings.QUEUE_URL, **options)


huey = make_huey()


def ring(job_id: int) -> None:
    """Ring for one job; a bell that can't be rung is only logged, the sweep will find the row."""
    if settings.JOBS_IMMEDIATE:
        run_now(job_id)
        return
    try:
        do_job(job_id)
    except Exception as error:  # any store of the queue may be down, each with exceptions of its own
        logger.warning("could not ring for job %s (%s); the sweep will", job_id, error)


@huey.task()
def do_job(job_id: int) -> None:
    """Do one job, if it is still to be done."""
    with _fresh_connection():
        run_now(job_id)


@huey.periodic_task(crontab(minute="*"))
def sweep() -> None:
    """Ring again for every due job, and queue what the schedule asks for."""
    with _fresh_connection():
        sweep_now()


def sweep_now() -> int:
    """Queue what is due by itself, ring for all that waits and return for how many."""
    schedule.enqueue_due_jobs()
    due = queries.list_due_job_ids()
    for job_id in due:
        ring(job_id)
    return len(due)


def run_now(job_id: int) -> None:
    """Take the job's lease, do it, and end it; a job that someone else holds is left alone."""
    job = services.take_lease(job_id=job_id)
    if job is None:
        return
    handler = HANDLERS.get(job.kind)
    if handler is None:
        services.fail_job(job=job, error=f"This hub knows no job of the kind {job.kind!r}.", retry=False)
        return
    try:
        with _lease_kept(job):
            result = handler(job)
        services.finish_job(job=job, result=result)
    except services.LeaseLost:
        logger.warning("%s was taken over by another worker", job)
    except errors.HubError as error:  # the job's own terms are broken; doing it again would end the same way
        services.fail_job(job=job, error=error.detail, retry=error.status >= 500)
    except Exception as error:  # a handler may fail in any way; the row keeps why
        logger.exception("job %s failed", job)
        services.fail_job(job=job, error=f"{type(error).__name__}: {error}")


@contextmanager
def _lease_kept(job: Job) -> Iterator[None]:
    """Renew the lease while the handler runs, from a thread with a connection of its own."""
    if settings.JOBS_IMMEDIATE:
        yield
        return
    done = threading.Event()

    def renew() -> None:
        while not done.wait(RENEW_EVERY_SECONDS):
            try:
                services.renew_lease(job=job)
            except (services.LeaseLost, DatabaseError) as error:
                logger.warning("could not renew the lease of %s: %s", job, error)
        connection.close()

    keeper = threading.Thread(target=renew, name=f"lease-{job.pk}", daemon=True)
    keeper.start()
    try:
        yield
    finally:
        done.set()
        keeper.join(timeout=5)


@contextmanager
def _fresh_connection() -> Iterator[None]:
    close_old_connections()
    try:
        yield
    finally:
        close_old_connections()
