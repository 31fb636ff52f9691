"""Listens to the log when Django starts."""

from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "memoryhub.webhooks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from memoryhub.audit.services import install_listener  # models exist only from here on
        from memoryhub.webhooks.services import leave_messages

        install_listener(leave_messages)
