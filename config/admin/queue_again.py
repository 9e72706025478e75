"""Queueing a failed task again, by hand."""

from collections.abc import Callable
from typing import Any

from django.utils import timezone
from django_tasks import TaskResultStatus
from django_tasks_db.models import DBTaskResult, get_date_max

from accounts import tasks
from accounts.flows.request_pin import count_send_to


def queue_again(row: DBTaskResult) -> bool:
    """As if it had just been asked for, with all its attempts before it; false if none failed.

    A PIN code is a new request, of which the address's limits know: what is sent is a new code.
    Raises ``RateLimitedError``.
    """
    if row.status != TaskResultStatus.FAILED:
        return False
    renew = _RENEWED.get(row.task_path, _unchanged)
    now = timezone.now()
    failed = DBTaskResult.objects.failed().filter(pk=row.pk)
    return (
        failed.update(
            status=TaskResultStatus.READY,
            args_kwargs={**row.args_kwargs, "args": renew(row.args_kwargs["args"])},
            enqueued_at=now,
            started_at=None,
            finished_at=None,
            run_after=get_date_max(),
            worker_ids=[],
        )
        == 1
    )


def _unchanged(arguments: list[Any]) -> list[Any]:
    return arguments


def _asked_anew(arguments: list[Any]) -> list[Any]:
    count_send_to(arguments[0])
    return arguments


def _delivered_anew(arguments: list[Any]) -> list[Any]:
    email, channel, _ = arguments
    count_send_to(email)
    return [email, channel, timezone.now().isoformat()]


_RENEWED: dict[str, Callable[[list[Any]], list[Any]]] = {
    tasks.deliver_pin.module_path: _asked_anew,
    tasks.deliver_pin_over.module_path: _delivered_anew,
}
