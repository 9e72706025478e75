from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
from django.core.cache import close_caches
from django.core.handlers.base import reset_urlconf
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, reset_queries


class MoonhookConfig(AppConfig):
    """The composition root, with its checks and commands."""

    name = "config"
    label = "moonhook"
    verbose_name = "Moonhook"

    def ready(self) -> None:
        # Imported for its registrations, which need the settings.
        from config import checks  # noqa: F401
        from config.admin.sessions import forget_admin_sessions
        from core.database.sqlite.disk_space import return_free_pages
        from core.logs.context import follow_requests, follow_tasks
        from core.upkeep import register_duties

        follow_requests()
        follow_tasks()
        register_duties(forget_admin_sessions, return_free_pages)
        _close_connections_once()


def _close_connections_once() -> None:
    """Close old connections at the end of a request only, not at its start too.

    No cache is configured, so there are no cache connections to close, and no request sets a
    URLconf of its own, so there is none to reset.
    """
    request_started.disconnect(close_old_connections)
    request_started.disconnect(reset_queries)
    request_finished.disconnect(close_caches)
    request_finished.disconnect(reset_urlconf)


class MoonhookAdminConfig(AdminConfig):
    """The admin, with Moonhook's own site."""

    default_site = "config.admin.site.MoonhookAdminSite"
