"""`manage.py worker`: do jobs until TERM."""

import logging
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from memoryhub.common import stopping
from memoryhub.common.collecting import settle
from memoryhub.jobs import tasks, watcher
from memoryhub.jobs.heartbeat import beat_forever


class Command(BaseCommand):
    help = "Do jobs: the doorbell's, the sweep's and the schedule's. `manage.py up` starts one beside the server."

    def handle(self, *args: Any, **options: Any) -> None:
        logging.getLogger("huey").setLevel(logging.WARNING)
        stopping.watch(then=stopping.end_this_process)
        beat_forever()
        watcher.watch_forever()
        tasks.sweep_now()
        consumer = tasks.huey.create_consumer(
            workers=settings.WORKER_THREADS,
            periodic=True,
            initial_delay=0.05,
            max_delay=0.5,
            graceful_signal="TERM",
            shutdown_timeout=4,
        )
        settle()
        consumer.run()
