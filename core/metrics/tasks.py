"""Metrics of background tasks: the queue in the database, and the tasks that have finished."""

from collections.abc import Iterable
from typing import Any

from django.db import DatabaseError, connection
from django.db.models import Count, Min, Q
from django.utils import timezone
from django_tasks import TaskResult, TaskResultStatus
from django_tasks.signals import task_finished, task_started
from django_tasks_db.models import DBTaskResult
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from core.bounded import Bounded, NoAnswer
from core.metrics.catalogue import TASKS_FINISHED
from core.metrics.processes import announce

_SECONDS = 2.0
_UP = "moonhook_database_up"
_UP_HELP = "Whether the database answered within 2 seconds."


class TaskCollector(Collector):
    """Queries the database with a time limit, so that a hanging one does not delay /metrics."""

    def __init__(self) -> None:
        self._ask = Bounded(_figures, seconds=_SECONDS)

    def collect(self) -> Iterable[Metric]:
        try:
            counts, oldest_seconds = self._ask()
        except (DatabaseError, NoAnswer):
            yield GaugeMetricFamily(_UP, _UP_HELP, 0)
            return
        yield GaugeMetricFamily(_UP, _UP_HELP, 1)
        tasks = GaugeMetricFamily(
            "moonhook_tasks", "Background tasks in the queue, on all nodes.", labels=["status"]
        )
        for status, count in counts.items():
            tasks.add_metric([status], count)
        yield tasks
        yield GaugeMetricFamily(
            "moonhook_tasks_oldest_waiting_seconds",
            "Time since the oldest due task was enqueued.",
            oldest_seconds,
        )


def _figures() -> tuple[dict[str, int], float]:
    """Returns the number of tasks by status, and the seconds that the oldest due one has waited."""
    now = timezone.now()
    try:
        waiting = DBTaskResult.objects.ready().aggregate(
            count=Count("pk"), oldest=Min("enqueued_at")
        )
        others = DBTaskResult.objects.aggregate(
            running=Count("pk", filter=Q(status=TaskResultStatus.RUNNING)),
            failed=Count("pk", filter=Q(status=TaskResultStatus.FAILED)),
        )
    finally:
        connection.close()
    oldest = waiting["oldest"] or now
    return {"waiting": waiting["count"], **others}, max(0.0, (now - oldest).total_seconds())


def count_tasks() -> None:
    task_started.connect(_announce)
    task_finished.connect(_count)


def _announce(sender: Any, **kwargs: Any) -> None:
    announce("background worker")


def _count(sender: Any, task_result: TaskResult[Any], **kwargs: Any) -> None:
    TASKS_FINISHED.labels(task_result.task.name, task_result.status.lower()).inc()
