"""Which request or background task an event belongs to."""

import sys
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse
from django_structlog.middlewares import RequestMiddleware
from django_tasks import TaskResult, TaskResultStatus
from django_tasks.signals import log_task_finished, log_task_started, task_finished, task_started
from structlog.contextvars import bind_contextvars, clear_contextvars

from core.http.request_id import request_id_of

logger = structlog.get_logger(__name__)


class RequestContext(RequestMiddleware):
    """django-structlog's middleware without what every webhook call would have to pay for.

    There is no line when a request begins, and when it ends the access log has the one. An
    exception that no view caught is written down as the library does it.
    """

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Cleared here and not at the end: the access line is written after the reply is sent.
        clear_contextvars()
        bind_contextvars(request_id=request_id_of(request))
        response: HttpResponse = self.get_response(request)  # type: ignore[assignment]
        self.bind_user_id(request)
        return response

    @staticmethod
    def bind_user_id(request: HttpRequest) -> None:
        """Who is logged in, if the view wanted to know: nobody is looked up for the log.

        A look-up could fail too, in the middle of an answer to just such a failure.
        """
        user = getattr(request, "_cached_user", None)
        if user is not None and user.pk:
            bind_contextvars(user_id=user.pk)

    @staticmethod
    def format_request(request: HttpRequest) -> str:
        """Without the query, which may hold secrets of others."""
        return f"{request.method} {request.path}"


REQUEST_ID = "request_id"


def follow_tasks() -> None:
    """Binds each task's context while it runs, and writes down its end in place of the queue."""
    task_started.disconnect(log_task_started)
    task_finished.disconnect(log_task_finished)
    task_started.connect(_bind)
    task_finished.connect(_finish)


def _bind(sender: Any, task_result: TaskResult[Any], **kwargs: Any) -> None:
    clear_contextvars()
    bind_contextvars(task=task_result.id, task_name=task_result.task.name)
    # A task that takes the id of the request that enqueued it has it in its events too.
    if request_id := task_result.kwargs.get(REQUEST_ID):
        bind_contextvars(request_id=request_id)
    logger.debug("Task started")


def _finish(sender: Any, task_result: TaskResult[Any], **kwargs: Any) -> None:
    if task_result.status == TaskResultStatus.FAILED:
        # Sent where the exception is handled: its traceback is at hand.
        logger.error("Task failed", exc_info=sys.exc_info())
    else:
        logger.info("Task succeeded", duration_ms=_duration_ms(task_result))
    clear_contextvars()


def _duration_ms(result: TaskResult[Any]) -> float | None:
    if result.started_at is None or result.finished_at is None:
        return None
    return round((result.finished_at - result.started_at).total_seconds() * 1000, 3)
