"""What Moonhook knows about its own settings: ``manage.py check`` and ``check --deploy``."""

from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register

from scripts_engine.sandbox.limits import MAX_WALL_SECONDS


@register()
def threads_outnumber_sandboxes(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.WEB_THREADS > settings.SANDBOX_SLOTS:
        return []
    return [
        Error(
            "There are not more web threads than sandboxes: slow scripts would hold up /session.",
            hint="Raise WEB_THREADS above SANDBOX_SLOTS.",
            id="moonhook.E001",
        )
    ]


@register()
def scripts_end_before_the_server_stops(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.GRACEFUL_TIMEOUT_SECONDS > MAX_WALL_SECONDS:
        return []
    return [
        Error(
            "A stopping server would not wait for the longest script.",
            hint=f"Raise GRACEFUL_TIMEOUT above {MAX_WALL_SECONDS:g} seconds.",
            id="moonhook.E002",
        )
    ]


@register()
def every_thread_finds_a_connection(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    pool = settings.DATABASES["default"]["OPTIONS"].get("pool")
    if pool is None or pool["max_size"] >= settings.WEB_THREADS:
        return []
    return [
        checks.Warning(
            "There are fewer database connections than web threads: under load requests wait.",
            hint="Raise DATABASE_POOL_SIZE to WEB_THREADS.",
            id="moonhook.W002",
        )
    ]


@register()
def tasks_end_before_others_take_them_up(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.TASK_LEASE_SECONDS > settings.TASK_TIMEOUT_SECONDS:
        return []
    return [
        Error(
            "A task that is still running would be taken up by another worker.",
            hint="Raise TASK_LEASE above TASK_TIMEOUT, by more than the nodes' clocks differ.",
            id="moonhook.E003",
        )
    ]


@register(Tags.security, deploy=True)
def public_url_is_https(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    if settings.IS_PUBLIC_URL_HTTPS:
        return []
    return [
        checks.Warning(
            "PUBLIC_URL is plain http: secrets and sessions travel readable.",
            hint="Put a proxy with TLS in front and set PUBLIC_URL to its https address.",
            id="moonhook.W001",
        )
    ]
