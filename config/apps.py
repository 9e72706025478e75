from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.core.cache import close_caches
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, reset_queries


class MoonhookConfig(AppConfig):
    """The composition root: its own checks and commands."""

    name = "config"
    label = "moonhook"
    verbose_name = "Moonhook"

    def ready(self) -> None:
        # Imported for its registrations, which need the settings.
        from config import checks  # noqa: F401, PLC0415
        from config.admin import background_tasks  # noqa: F401, PLC0415
        from core.logs.context import follow_tasks  # noqa: PLC0415
        from core.metrics.tasks import count_tasks  # noqa: PLC0415

        follow_tasks()
        count_tasks()
        _look_after_connections_once()


def _look_after_connections_once() -> None:
    """At the end of a request: what Django does at its beginning too is then done already.

    Nothing is cached, so no cache has connections.
    """
    request_started.disconnect(close_old_connections)
    request_started.disconnect(reset_queries)
    request_finished.disconnect(close_caches)


class MoonhookAdminConfig(AdminConfig):
    """The admin on Moonhook's own site."""

    default_site = "config.admin.site.MoonhookAdminSite"
