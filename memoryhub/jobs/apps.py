"""Installs the doorbell when Django starts."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "memoryhub.jobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from memoryhub.jobs import connections  # models exist only from here on
        from memoryhub.work.services import install_doorbell

        install_doorbell(_ring)
        connections.close_those_of_ended_threads()


def _ring(job_id: int) -> None:
    """Ring for a job. The tasks import every room's jobs, which takes half a second that a short command need not wait."""
    from memoryhub.jobs import tasks

    tasks.ring(job_id)
