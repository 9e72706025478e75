"""What cannot be right: ``manage.py check``, and every start."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004

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


@register(Tags.security)
def data_is_private(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    directory = settings.DATA_DIR
    if not directory.exists() or not directory.stat().st_mode & 0o077:
        return []
    return [
        Warning(
            f"Others on this machine may look into {directory}.",
            hint=f"chmod 700 {directory}",
            id="moonhook.W007",
        )
    ]
