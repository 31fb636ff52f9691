"""Installs the doorbell when Django starts."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    name = "memoryhub.jobs"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from memoryhub.jobs import connections, tasks  # models exist only from here on
        from memoryhub.work.services import install_doorbell

        install_doorbell(tasks.ring)
        connections.close_those_of_ended_threads()
