"""Many writers at one ledger: the daily sums stay those of the records, whatever checks, prices and forgets beside them."""

import functools
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import OperationalError, connections

from memoryhub.common import clock
from memoryhub.prompt_cache.domain.reports import UsageReport
from memoryhub.prompt_cache.models import UsageRecord
from memoryhub.prompt_cache.queries import build_report
from memoryhub.prompt_cache.services.findings import find_out
from memoryhub.prompt_cache.services.price_book import PriceDraft, store_prices
from memoryhub.prompt_cache.services.rollups import check_rollups, rebuild_rollups
from memoryhub.prompt_cache.services.tending import forget_old_usage
from memoryhub.prompt_cache.services.usage import record_reports
from memoryhub.workspaces.principals import Actor
from tests.factories import make_workspace

NOON = datetime(2026, 11, 28, 12, tzinfo=UTC)
WRITERS, BATCHES = 4, 5


def batch(writer: int, number: int) -> list[UsageReport]:
    """Responses of three days; every writer sends some that the others send too, in other words."""
    reports = []
    for place in range(6):
        shared = place < 3
        reports.append(
            UsageReport(
                message_id=f"shared-{number}-{place}" if shared else f"own-{writer}-{number}-{place}",
                model=("claude-opus-5-5", "claude-fresh-1", "claude-haiku-4-5")[place % 3],
                started_at=NOON - timedelta(days=place % 3, minutes=number),
                session=f"s{place % 2}",
                project=f"p{writer}" if not shared else "shared",
                usage={"input_tokens": 100 + writer, "output_tokens": 10 * place, "cache_creation_input_tokens": 50},
            )
        )
    return reports


def patiently(work: Callable[[], object]) -> None:
    """Try again while the database is locked: an in-memory database of a test has no busy timeout; a file's has."""
    for _ in range(5_000):
        try:
            work()
            return
        except OperationalError:
            time.sleep(0.005)
    raise AssertionError("never got through")


@pytest.mark.django_db(transaction=True)
def test_sums_are_right_at_every_moment_and_at_the_end() -> None:
    home = make_workspace("busy")
    wrong: list[str] = []
    failed: list[BaseException] = []
    finished = threading.Event()

    def write(writer: int) -> None:
        for number in range(BATCHES):
            patiently(lambda n=number: record_reports(workspace=home, reports=batch(writer, n)))

    def check() -> None:
        while not finished.is_set():
            patiently(lambda: wrong.extend(check_rollups(workspace=home)))
            time.sleep(0.03)

    def tend() -> None:
        actor = Actor("command", "test", "test")
        for number in range(2):
            draft = PriceDraft("claude-fresh-1", Decimal(number + 1), Decimal(5))
            patiently(lambda d=draft: store_prices(workspace=home, actor=actor, drafts=[d]))
            patiently(lambda: forget_old_usage(workspace=home, days=1))
            patiently(lambda: find_out(workspace=home))
            patiently(lambda: rebuild_rollups(workspace=home))

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)
        finally:
            connections["default"].close()

    writers = [threading.Thread(target=run, args=(functools.partial(write, w),)) for w in range(WRITERS)]
    others = [threading.Thread(target=run, args=(tend,)), threading.Thread(target=run, args=(check,))]
    with clock.frozen(NOON + timedelta(hours=1)):
        for thread in (*writers, *others):
            thread.start()
        for thread in (*writers, others[0]):
            thread.join(300)
        finished.set()
        others[1].join(300)

        assert (failed, wrong) == ([], [])
        patiently(lambda: forget_old_usage(workspace=home, days=1))
        assert check_rollups(workspace=home) == []
        totals = build_report(home).totals
    kept = UsageRecord.objects.of(home)
    assert kept.filter(message_id__startswith="shared").count() == BATCHES * 2
    assert kept.filter(message_id__startswith="own").count() == WRITERS * BATCHES * 2
    assert totals.cost_pico == sum(record.cost_pico for record in kept.priced())
    assert {one.input_tokens for one in kept.filter(message_id__startswith="shared")} == {100 + WRITERS - 1}
